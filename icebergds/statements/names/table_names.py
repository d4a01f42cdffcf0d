"""Reads the names of tables in statements, also those that `IDENTIFIER(...)` gives."""

from __future__ import annotations

from icebergds.errors import InvalidFilterError, InvalidStatementError
from icebergds.expr.names import split_name
from icebergds.statements.names.scope import NameScope
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor


def read_table_name(scope: NameScope, cursor: Cursor) -> tuple[str, ...]:
    """Reads the parts of a name, or those of the text that `IDENTIFIER(...)` gives."""
    parts = cursor.name("the name of a table")
    if len(parts) > 1 or parts[0].upper() != "IDENTIFIER" or not cursor.is_at_sign("("):
        return parts
    expression = cursor.group()
    if expression.is_at_text() and expression.at + 1 == expression.end:
        return _split(expression.text())
    [row] = spark_sql(scope.spark, f"SELECT {expression.written}", Arguments()).collect()
    return _split(str(row[0]))


def _split(name: str) -> tuple[str, ...]:
    try:
        return split_name(name)
    except InvalidFilterError:
        raise InvalidStatementError(f"{name!r} is not the name of a table") from None
