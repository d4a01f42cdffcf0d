"""Reads the assignments of UPDATE and MERGE, and finds where their expressions end."""

from __future__ import annotations

from collections.abc import Callable

from icebergds.errors import InvalidStatementError
from icebergds.expr.names import quote_name
from icebergds.spark.row_level.assignments import default_column
from icebergds.spark.row_level.conditions import Value
from icebergds.spec.types import NestedField
from icebergds.statements.commands.rows.target import StatementTarget
from icebergds.statements.text.cursor import Cursor


def read_assignments(
    listed: Cursor, target: StatementTarget, text: Callable[[Cursor], str], statement: str
) -> dict[str, Value]:
    """Reads all of `column = value, ...`; a value may be DEFAULT.

    Args:
        text: writes a value for Spark.
        statement: for messages.

    Returns:
        The values by columns, dotted for fields of structs.

    Raises:
        InvalidStatementError: it is malformed, or a column is unknown or set twice.
    """
    values: dict[str, Value] = {}
    for item in listed.items():
        field = target.column(item.name("a column"), statement)
        if not item.take_sign("=") and not item.take_sign("=="):
            raise item.error("'='")
        add_value(values, field, item, target, text, statement)
    return values


def add_value(
    values: dict[str, Value],
    field: NestedField,
    value: Cursor,
    target: StatementTarget,
    text: Callable[[Cursor], str],
    statement: str,
) -> None:
    """Adds the value of a column to the values.

    Raises:
        InvalidStatementError: there is no value, or the column already has one.
    """
    path = quote_name(target.table.schema().paths_by_id[field.field_id])
    if path in values:
        raise InvalidStatementError(
            f"{statement}: table {target.named.name}: {path} is set twice; set it once"
        )
    if value.is_done:
        raise value.error("a value")
    if value.is_at("DEFAULT") and value.at + 1 == value.end:
        values[path] = default_column(field, f"{statement}: table {target.named.name}")
    else:
        values[path] = text(value)


def expression_until(cursor: Cursor, *words: str) -> Cursor:
    """Reads up to one of these keywords, or to the end.

    Keywords in parentheses, or between CASE and END, belong to the expression.
    """
    start, depth = cursor.at, 0
    while (token := cursor.peek()) is not None:
        before = cursor.peek(-1)
        if before is None or not before.is_sign("."):
            if depth == 0 and token.is_word(*words):
                break
            depth += token.is_word("CASE") - token.is_word("END")
        depth += token.is_sign("(", "[") - token.is_sign(")", "]")
        cursor.at += 1
    return cursor.part(start, cursor.at)
