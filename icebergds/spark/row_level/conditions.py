"""Checks conditions and values given as SQL or Spark columns, and finds the columns they name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from itertools import zip_longest
from typing import Any, TypeAlias

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, functions as f

from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.spark.errors import unlogged

Value: TypeAlias = str | Column | bool | int | float | Decimal | date | datetime
"""A value to assign: SQL text, a Spark column, or a plain Python value."""

_NOT_DETERMINISTIC = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_AMBIGUOUS = "AMBIGUOUS_REFERENCE"
_OF_OTHERS = "MISSING_ATTRIBUTES"
_PLACE = re.compile(r"\s*SQLSTATE:.*")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_STAR = re.compile(r"[(,.]\s*\*|unresolvedstar", re.IGNORECASE)
# How Spark abbreviates the text of long columns.
_SHORTENED = re.compile(r"more fields|\.\.\.")


def as_column(value: Any, what: str, *, expected: str = "SQL text or a Column") -> Column:
    """Converts SQL text to a column; returns a column as it is.

    Raises:
        InvalidOptionError: it is neither, or the SQL cannot be parsed.
    """
    if isinstance(value, str):
        try:
            with unlogged():
                return f.expr(value)
        except PySparkException as error:
            raise InvalidOptionError(f"{what} {value!r}: {first_line(error)}") from None
    if _is_column(value):
        column: Column = value
        return column
    raise InvalidOptionError(f"{what} {value!r} is a {type(value).__name__}; expected {expected}")


def as_value(value: Any, what: str) -> Column:
    """Converts a value to assign to a column.

    A `datetime` without a zone is a wall-clock time, as in SQL's `TIMESTAMP_NTZ`.

    Raises:
        InvalidOptionError: it is not a `Value`, or the SQL cannot be parsed.
    """
    match value:
        case datetime(tzinfo=None):
            return f.lit(value.isoformat()).cast("timestamp_ntz")
        case int() if not isinstance(value, bool):
            # Spark's lit does not accept an int of more than 64 bits.
            return f.lit(value if -(2**63) <= value < 2**63 else Decimal(value))
        case bool() | float() | Decimal() | date():
            return f.lit(value)
        case _:
            expected = "SQL text, a Column, a number, bool or date (a null is the text 'null')"
            return as_column(value, what, expected=expected)


def described(what: str, value: Any) -> str:
    """Describes a condition or value for messages; includes it if it is text."""
    return f"{what} {value!r}" if isinstance(value, str) else what


def check_condition(frame: DataFrame, condition: Column, what: str) -> None:
    """Checks that a condition is a deterministic boolean over the rows of a DataFrame.

    Raises:
        InvalidFilterError: it names unknown columns, is not a boolean, aggregates, or is not
            deterministic.
    """
    try:
        with unlogged():
            _ = frame.where(condition).schema
    except AnalysisException as error:
        raise InvalidFilterError(f"{what}: {first_line(error)}") from None
    try:
        # Spark itself refuses nondeterministic conditions of joins.
        with unlogged():
            _ = frame.join(frame.sparkSession.range(0).select(), condition, "left_semi").schema
    except AnalysisException as error:
        # Filters support more than joins, such as some subqueries.
        if error.getCondition() == _NOT_DETERMINISTIC:
            raise InvalidFilterError(
                f"{what} is not deterministic: its value may differ each time it is evaluated; "
                "add the value to the rows first"
            ) from None


def named_columns(values: Iterable[str | Column], available: Iterable[str]) -> list[str]:
    """The columns of a table that conditions or values may need.

    A column counts as needed if its name occurs anywhere in their text.

    Raises:
        InvalidFilterError: there is a `*`, which would also include other columns.
    """
    texts = [value if isinstance(value, str) else str(value) for value in values]
    for text in texts:
        if _STAR.search(_QUOTED.sub("''", _without_queries(text))):
            raise InvalidFilterError(f"{text}: * is not supported; list the columns instead")
    if any(_SHORTENED.search(text) for text in texts):
        return list(available)
    lowered = "\n".join(texts).lower()
    return [
        name
        for name in available
        if name.lower() in lowered or name.lower().replace("`", "``") in lowered
    ]


def first_line(error: PySparkException) -> str:
    """The first line of Spark's message, without the SQLSTATE."""
    text = _PLACE.sub("", str(error).strip().split("\n", 1)[0])
    condition = error.getCondition() or ""
    if condition == _AMBIGUOUS:
        return f"{text} Qualify the column with one of these names"
    if condition.startswith(_OF_OTHERS):
        return f"{text} It names a column of a DataFrame; name the table's, as in col('id')"
    return text


def _without_queries(text: str) -> str:
    """Empties the sub-queries of a condition; returns it unchanged if it cannot be tokenized."""
    tokens = sql_tokens(text) or ()
    kept: list[str] = []
    at = depth = 0
    opened: int | None = None
    for token, then in zip_longest(tokens, tokens[1:]):
        if token.is_sign("("):
            if opened is None and then is not None and then.is_word(*_QUERIES):
                kept.append(text[at : token.end])
                opened = depth
            depth += 1
        elif token.is_sign(")"):
            depth -= 1
            if depth == opened:
                at, opened = token.start, None
    return "".join((*kept, text[at:]))


_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


def _is_column(value: Any) -> bool:
    # Classic and Connect columns do not share a base class in all versions.
    return isinstance(value, Column) or type(value).__name__ == "Column"
