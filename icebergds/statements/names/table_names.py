"""Reads names in statements, including `IDENTIFIER(...)`, and writes them as Spark does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark.errors import PySparkException

from icebergds.errors import InvalidFilterError, InvalidStatementError
from icebergds.expr.names import in_backticks, split_name
from icebergds.statements.names.scope import NameScope
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor


def read_name(
    scope: NameScope, cursor: Cursor, expected: str = "the name of a table"
) -> tuple[str, ...]:
    """Reads the parts of a name, or of the text that `IDENTIFIER(...)` evaluates to."""
    parts = cursor.name(expected)
    if len(parts) > 1 or parts[0].upper() != "IDENTIFIER" or not cursor.is_at_sign("("):
        return parts
    return _split(_text(scope, cursor.group(), Arguments()))


def name_in_query(
    scope: NameScope, arguments: Arguments, expression: Cursor
) -> tuple[str, ...] | None:
    """The parts of the name in `IDENTIFIER(expression)`; None if Spark has to evaluate it."""
    given = arguments.parameters
    if isinstance(given, Sequence):
        markers = [token.is_sign("?") for token in expression.tokens[: expression.end]]
        given = given[sum(markers[: expression.at]) : sum(markers)]
    try:
        return _split(_text(scope, expression, Arguments(given)))
    except (InvalidStatementError, PySparkException):
        return None


def _text(scope: NameScope, expression: Cursor, arguments: Arguments) -> str:
    if expression.is_at_text() and expression.at + 1 == expression.end:
        return expression.text()
    rows = spark_sql(scope.spark, f"SELECT ({expression.written})", arguments).collect()
    text = rows[0][0] if len(rows) == 1 else None
    if not isinstance(text, str):
        raise InvalidStatementError(
            f"IDENTIFIER({expression.written}): expected an expression whose value is one text"
        )
    return text


def _split(name: str) -> tuple[str, ...]:
    try:
        return split_name(name)
    except InvalidFilterError:
        raise InvalidStatementError(f"{name!r} is not the name of a table") from None


_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def shown_name(parts: Iterable[str]) -> str:
    """Joins parts to a name, with backticks around parts that SQL would not read as one name."""
    return ".".join(part if _PLAIN.fullmatch(part) else in_backticks([part]) for part in parts)
