"""Conditions and values that users write, as SQL or as columns of Spark: checked, looked into."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from icebergds.errors import InvalidFilterError, InvalidOptionError

_NOT_DETERMINISTIC = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
_AMBIGUOUS = "AMBIGUOUS_REFERENCE"
_PLACE = re.compile(r"\s*SQLSTATE:.*")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_STAR = re.compile(r"[(,.]\s*\*|unresolvedstar", re.IGNORECASE)
# How Spark shows columns of many parts.
_SHORTENED = re.compile(r"more fields|\.\.\.")


def as_column(value: Any, what: str) -> Column:
    """SQL text or a column, as a column.

    Raises:
        InvalidOptionError: it is neither, or no SQL.
    """
    if isinstance(value, str):
        try:
            return f.expr(value)
        except PySparkException as error:
            raise InvalidOptionError(f"{what} {value!r}: {first_line(error)}") from None
    if _is_column(value):
        column: Column = value
        return column
    raise InvalidOptionError(
        f"{what} {value!r} is a {type(value).__name__}, expected SQL as text, or a Column"
    )


def described(what: str, value: Any) -> str:
    """How messages name a condition or value: with its text, where it is text."""
    return f"{what} {value!r}" if isinstance(value, str) else what


def check_condition(frame: DataFrame, condition: Column, what: str) -> None:
    """Refuses what is no condition on the rows of a frame, or is not the same each time.

    Raises:
        InvalidFilterError: it names unknown columns, is no boolean, aggregates, or is not
            deterministic.
    """
    try:
        _ = frame.where(condition).schema
    except AnalysisException as error:
        raise InvalidFilterError(f"{what}: {first_line(error)}") from None
    try:
        # Joins are where Spark itself refuses what is not deterministic.
        _ = frame.join(frame.sparkSession.range(0).select(), condition, "left_semi").schema
    except AnalysisException as error:
        # Filters take more than joins do, such as some subqueries.
        if error.getCondition() == _NOT_DETERMINISTIC:
            raise InvalidFilterError(
                f"{what} is not deterministic: it may be another each time a row is looked at; "
                "add its value to the rows first"
            ) from None


def named_columns(values: Iterable[str | Column], available: Iterable[str]) -> list[str]:
    """Those of a table's columns that conditions or values may name; others they do not need.

    A name that stands in the text of one is taken for that of a column.

    Raises:
        InvalidFilterError: there is a `*`, which would stand for other columns, too.
    """
    texts = [value if isinstance(value, str) else str(value) for value in values]
    for text in texts:
        if _STAR.search(_QUOTED.sub("''", text)):
            raise InvalidFilterError(f"{text}: name the columns that * stands for")
    if any(_SHORTENED.search(text) for text in texts):
        return list(available)
    lowered = "\n".join(texts).lower()
    return [
        name
        for name in available
        if name.lower() in lowered or name.lower().replace("`", "``") in lowered
    ]


def first_line(error: PySparkException) -> str:
    """What Spark says, without where it found it."""
    text = _PLACE.sub("", str(error).strip().split("\n", 1)[0])
    if error.getCondition() == _AMBIGUOUS:
        return f"{text} Say whose it is, as in source.id or target.id"
    return text


def _is_column(value: Any) -> bool:
    # Classic columns and those of Connect have no other base in all versions.
    return isinstance(value, Column) or type(value).__name__ == "Column"
