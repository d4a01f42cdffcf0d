"""Replaces the word DEFAULT in what INSERT writes."""

from __future__ import annotations

from collections.abc import Iterator

from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.sql_tokens import Token
from icebergds.spark.sql_constants import constant_text
from icebergds.spec.types import NestedField, is_scalar
from icebergds.statements.commands.rows.inserted_columns import InsertedColumns
from icebergds.statements.spark_sql import Replacement, spliced_pieces, written
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.user_text import Piece

_ENDS_OF_SELECT = (
    *("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "LATERAL", "WINDOW"),
    *("UNION", "INTERSECT", "EXCEPT", "MINUS", "SORT", "CLUSTER", "DISTRIBUTE"),
)


def with_defaults(query: Cursor, columns: InsertedColumns) -> list[Piece]:
    """The text of a query, in pieces, with the defaults of columns where it says DEFAULT.

    As in Spark these are whole values of VALUES and of the SELECT that gives the rows.

    Raises:
        UnsupportedFeatureError: a nested column has a default.
    """
    if columns.is_by_name:
        return [written(query)]
    inner = query
    while inner.is_at_sign("(") and (group := _copy(inner).group()).end + 1 == inner.end:
        inner = group
    fields = columns.fields()
    found: list[Replacement] = []
    for row in _rows(_copy(inner)):
        for value, field in zip(row, fields, strict=False):
            if (token := _only_token(value)) is not None and token.is_word("DEFAULT"):
                found.append(Replacement(Span(token.start, token.end), _text(field)))
    return spliced_pieces(query, found)


def _rows(query: Cursor) -> Iterator[list[Cursor]]:
    """The values of the rows of VALUES, or of a SELECT."""
    if query.take("VALUES"):
        for row in query.items():
            yield row.group().items() if row.is_at_sign("(") else [row]
    elif query.take("SELECT"):
        yield query.until(*_ENDS_OF_SELECT).items()


def _only_token(value: Cursor) -> Token | None:
    return value.peek() if value.at + 1 == value.end else None


def _copy(cursor: Cursor) -> Cursor:
    return Cursor(cursor.statement, cursor.tokens, cursor.at, cursor.end)


def _text(field: NestedField) -> str:
    value = field.write_default
    if value is None:
        return "NULL"
    if not is_scalar(field.field_type):
        raise UnsupportedFeatureError(
            f"write defaults of nested columns are not supported, and column {field.name!r} has "
            "one; give it a value"
        )
    return constant_text(field.field_type, value)
