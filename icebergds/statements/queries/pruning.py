"""Finds out what a query can need of each table: a condition and columns.

sqlglot parses the query for this alone; Spark runs it as it is, over rows of which at least those
that matter are there. What cannot be analysed prunes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from icebergds.expr.nodes import TRUE, Expr, and_
from icebergds.operations.conditions import Setting, is_read_by_setting, means_the_same
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.columns import named_columns, takes_all, words_of
from icebergds.statements.queries.conditions import (
    Names,
    Source,
    at_least,
    is_true_for_nulls,
    predicate_of,
)
from icebergds.statements.queries.dates import DateTerms
from icebergds.statements.queries.joins import (
    deciding_conditions,
    is_plain,
    joined_names,
    relations_of,
)
from icebergds.statements.queries.needed import Needed
from icebergds.statements.queries.outline import Outline, outline_of
from icebergds.statements.queries.relations import Relation
from icebergds.statements.text.cursor import Cursor, Span

# A class of sqlglot's tree.
_Node = Any


def prune(
    query: Cursor, relations: Sequence[Relation], setting: Setting, time_zone: str | None
) -> list[Needed]:
    """What a query can need of each relation: more than that, where it is not known.

    Args:
        setting: of the session that runs the query.
        time_zone: of timestamps without an offset.

    Raises:
        InvalidStatementError: a query names metadata columns beside `*`.
    """
    tree, outline = _parsed(query, relations)
    conditions: dict[int, Expr] = {}
    explicit: set[int] = set()
    if tree is not None and outline is not None:
        analysis = _Analysis(relations, outline, setting, time_zone, datetime.now(UTC))
        has_same_text = not is_read_by_setting(query.written, setting)
        for select in _selects(tree):
            numbers = analysis.numbers(select)
            if not takes_all(select):
                explicit |= analysis.named(select, numbers)
            if has_same_text and is_plain(select):
                conditions |= analysis.conditions(select, numbers)
    words = words_of(query)
    is_turned = not words.isdisjoint({"pivot", "unpivot", "identifier"})
    return [
        _needed(relation, words, conditions.get(at, TRUE), at in explicit and not is_turned)
        for at, relation in enumerate(relations)
    ]


@dataclass(frozen=True, slots=True)
class _Analysis:
    """Reads the conditions of the SELECTs of a query."""

    relations: Sequence[Relation]
    outline: Outline
    setting: Setting
    time_zone: str | None
    now: datetime

    def numbers(self, select: _Node) -> list[int | None]:
        """Which of our relations each relation of a SELECT is; None for others."""
        starts = {each.reference.start: at for at, each in enumerate(self.relations)}
        return [
            None if (place := self._place(node)) is None else starts.get(place)
            for node in relations_of(select)
        ]

    def named(self, select: _Node, numbers: Sequence[int | None]) -> set[int]:
        """Those of our relations whose columns the query calls by their own names."""
        return {
            number
            for node, number in zip(relations_of(select), numbers, strict=True)
            if number is not None and not _renames_columns(node)
        }

    def conditions(self, select: _Node, numbers: Sequence[int | None]) -> dict[int, Expr]:
        """What a SELECT says of the rows of our relations, by their number."""
        nodes = relations_of(select)
        sources = [self._source(*each) for each in zip(nodes, numbers, strict=True)]
        names = Names(sources, joined_names(select))
        found: dict[int, Expr] = {}
        for deciding in deciding_conditions(select):
            for at in deciding.decided:
                number = numbers[at]
                schema = None if number is None else self.relations[number].schema
                if number is None or schema is None or self._is_sampled(number):
                    continue
                read = partial(
                    predicate_of,
                    literals=self.outline.literals,
                    schema=schema,
                    terms=DateTerms(self.outline.literals, self.now),
                    time_zone=self.time_zone,
                    name_of=names.column_of(at, deciding.visible),
                    means_the_same=partial(self._means_the_same, number),
                )
                condition = at_least(deciding.node, read)
                if at in deciding.nullable and is_true_for_nulls(condition):
                    continue
                found[number] = and_(found.get(number, TRUE), condition)
        return found

    def _means_the_same(self, number: int, parsed: Expr) -> bool:
        schema = self.relations[number].schema
        return schema is not None and means_the_same(parsed, schema, self.setting)

    def _is_sampled(self, number: int) -> bool:
        # The sample is taken of all rows.
        return self.relations[number].reference.suffix.is_sampled

    def _place(self, node: _Node) -> int | None:
        """Where a table that sqlglot found is named in the query; None for other relations."""
        if node.key != "table" or node.args.get("joins") or not hasattr(node.parts[0], "meta"):
            return None
        start = node.parts[0].meta.get("start")
        return None if start is None else self.outline.places.get(start)

    def _source(self, node: _Node, number: int | None) -> Source:
        alias = str(node.alias_or_name).lower()
        if number is None:
            return Source(frozenset({(alias,)}), None)
        relation = self.relations[number]
        qualifiers: frozenset[tuple[str, ...]]
        if relation.reference.suffix.alias is not None:
            qualifiers = frozenset({(relation.reference.suffix.alias.lower(),)})
        else:
            full = (relation.name.catalog, *relation.name.parts)
            names: list[tuple[str, ...]] = [full, relation.reference.name]
            qualifiers = frozenset(
                tuple(part.lower() for part in name[first:])
                for name in names
                for first in range(len(name))
            )
        if relation.schema is None or _renames_columns(node):
            return Source(qualifiers, None)
        return Source(qualifiers, frozenset(f.name.lower() for f in relation.schema.fields))


def _parsed(query: Cursor, relations: Sequence[Relation]) -> tuple[_Node | None, Outline | None]:
    hidden = [
        Span(_end_of_name(query, each.reference.start), each.reference.span.end)
        for each in relations
    ]
    outline = outline_of(query, hidden)
    return (None, None) if outline is None else (outline.parsed(), outline)


def _end_of_name(query: Cursor, start: int) -> int:
    at = next(n for n in range(query.at, query.end) if query.tokens[n].start == start)
    cursor = Cursor(query.statement, query.tokens, at, query.end)
    cursor.name()
    return query.tokens[cursor.at - 1].end


def _selects(tree: _Node) -> list[_Node]:
    from sqlglot.expressions import Select

    return list(tree.find_all(Select))


def _renames_columns(node: _Node) -> bool:
    """Whether a relation is given names of its columns, as in `t AS x(a, b)`."""
    alias = node.args.get("alias")
    return bool(alias is not None and alias.args.get("columns"))


def _needed(
    relation: Relation, words: frozenset[str], condition: Expr, is_explicit: bool
) -> Needed:
    source = relation.source
    if relation.schema is None or not isinstance(source, NamedTable):
        return Needed()
    columns = named_columns(
        words,
        source.table.metadata,
        relation.schema,
        takes_all=not is_explicit,
        name=str(relation.name),
    )
    return Needed(condition, columns)
