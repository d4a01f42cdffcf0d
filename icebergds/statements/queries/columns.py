"""Finds the columns, and fields of structs, that a query can need from a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from icebergds.expr.sql_tokens import Token
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, StructType
from icebergds.statements.queries.joins import relations_of
from icebergds.statements.queries.needed import ColumnPath
from icebergds.statements.text.cursor import Cursor

# A node of sqlglot's tree.
_Node = Any


def words_of(query: Cursor) -> frozenset[str]:
    """All words and names of a query in lower case, which include all that it needs."""
    tokens = query.tokens[query.at : query.end]
    return frozenset(token.identifier.lower() for token in tokens if token.is_identifier)


def takes_all(select: _Node) -> bool:
    """Whether a SELECT may need columns of its relations that it does not name."""
    if not select.expressions:
        return True
    return any(
        star.parent.key != "count" and any(each is select for each in _selects_of(star))
        for star in _stars(select)
    ) or any(join.args.get("method") for join in select.args.get("joins") or ())


def named_columns(
    words: frozenset[str],
    schema: Schema,
    further: Sequence[NestedField],
    *,
    takes_all: bool,
    query: Cursor | None = None,
) -> Sequence[ColumnPath] | None:
    """The columns that a query can need; None for exactly the table's own columns.

    Args:
        words: of the query.
        further: the table's metadata columns.
        takes_all: whether it may need columns that it does not name.
        query: its text, if the fields of structs can be derived from it.
    """
    own = [field.name for field in schema.fields]
    known = {name.lower() for name in own}
    metadata_columns = [
        (field.name,) for field in further if field.name in words and field.name not in known
    ]
    if takes_all:
        return [*((name,) for name in own), *metadata_columns] if metadata_columns else None
    wanted = [
        path
        for field in schema.fields
        if field.name.lower() in words
        for path in ([(field.name,)] if query is None else _named_fields(query, field))
    ]
    # A row has at least one column.
    return wanted + metadata_columns or [(own[0],)]


def _named_fields(query: Cursor, column: NestedField) -> list[ColumnPath]:
    """The fields of a struct that a query names; the column if the query may need all of it."""
    whole = (column.name,)
    if not isinstance(column.field_type, StructType):
        return [whole]
    tokens = query.tokens[query.at : query.end]
    name = column.name.lower()
    found = dict.fromkeys(
        _path_at(tokens, at, column)
        for at, token in enumerate(tokens)
        if token.is_identifier and token.identifier.lower() == name
    )
    within = [path for path in found if not any(path[:n] in found for n in range(1, len(path)))]
    return within or [whole]


def _path_at(tokens: Sequence[Token], at: int, column: NestedField) -> ColumnPath:
    """The field that a dotted name leads to through structs."""
    path, field_type = [column.name], column.field_type
    while isinstance(field_type, StructType):
        ahead = tokens[at + 1 : at + 3]
        if len(ahead) < 2 or not ahead[0].is_sign(".") or not ahead[1].is_identifier:
            break
        name = ahead[1].identifier.lower()
        fields = [field for field in field_type.fields if field.name.lower() == name]
        if len(fields) != 1:
            break
        path.append(fields[0].name)
        field_type, at = fields[0].field_type, at + 2
    return tuple(path)


def _stars(select: _Node) -> Sequence[_Node]:
    from sqlglot.expressions import Star

    return list(select.find_all(Star))


def _selects_of(star: _Node) -> Iterator[_Node]:
    """The SELECTs whose relations a star may expand to: its own, and those around LATERAL."""
    from sqlglot.expressions import Lateral, Select

    select = star.find_ancestor(Select)
    yield select
    if star.parent.key != "column" and relations_of(select):
        return
    while (around := select.find_ancestor(Select, Lateral)) is not None and (
        around.key == "lateral"
    ):
        select = around.find_ancestor(Select)
        yield select
