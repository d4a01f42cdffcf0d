"""Finds the columns that a query can need of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField
from icebergds.statements.queries.joins import relations_of
from icebergds.statements.text.cursor import Cursor

# A class of sqlglot's tree.
_Node = Any


def words_of(query: Cursor) -> frozenset[str]:
    """All words and names of a query, in lower case: whatever it needs is among them."""
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
) -> Sequence[str] | None:
    """The columns that a query can need; None for all of the table's and no others.

    Args:
        words: of the query.
        further: the table's metadata columns.
        takes_all: whether it may need columns that it does not name.
    """
    own = [field.name for field in schema.fields]
    known = {name.lower() for name in own}
    metadata_columns = [
        field.name for field in further if field.name in words and field.name not in known
    ]
    if takes_all:
        return [*own, *metadata_columns] if metadata_columns else None
    wanted = [name for name in own if name.lower() in words] + metadata_columns
    # A row has at least one column.
    return wanted or own[:1]


def _stars(select: _Node) -> Sequence[_Node]:
    from sqlglot.expressions import Star

    return list(select.find_all(Star))


def _selects_of(star: _Node) -> Iterator[_Node]:
    """The SELECTs whose relations a star may stand for: its own, and those around LATERAL."""
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
