"""Finds out what the SELECTs of a query say of the rows of our tables (`QueryAnalysis`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from icebergds.expr.nodes import TRUE, Expr, and_
from icebergds.operations.conditions import Setting, means_the_same
from icebergds.statements.queries.conditions import (
    Names,
    Source,
    at_least,
    conjuncts_of,
    is_true_for_nulls,
    predicate_of,
)
from icebergds.statements.queries.dates import DateTerms
from icebergds.statements.queries.joins import (
    Deciding,
    deciding_conditions,
    is_plain,
    joined_names,
    relations_of,
)
from icebergds.statements.queries.outline import Outline
from icebergds.statements.queries.relations import Relation

# A class of sqlglot's tree.
_Node = Any

Path: TypeAlias = tuple[str, ...]
"""A column, or a field in one."""


@dataclass(frozen=True, slots=True)
class Equality:
    """Rows of a relation matter only if a column has a value that a column of another one has.

    Attributes:
        number, column: of the relation whose rows matter.
        by, by_column: of the other one.
    """

    number: int
    column: Path
    by: int
    by_column: Path


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """What the SELECTs of a query say of our relations, which go by their number."""

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
        """What is true for all rows of a relation that a SELECT needs."""
        names = self._names(select, numbers)
        found: dict[int, Expr] = {}
        for deciding in deciding_conditions(select):
            said: dict[int, Expr] = {}
            for part in conjuncts_of(deciding.node):
                for at in names.owners(part, deciding.visible) & deciding.decided:
                    number = numbers[at]
                    if number is not None and not self._is_sampled(number):
                        name_of = names.column_of(at, deciding.visible)
                        said[at] = and_(said.get(at, TRUE), self._read(part, number, name_of))
            for at, condition in said.items():
                number = numbers[at]
                if number is None or (at in deciding.nullable and is_true_for_nulls(condition)):
                    continue
                found[number] = and_(found.get(number, TRUE), condition)
        return found

    def equalities(self, select: _Node, numbers: Sequence[int | None]) -> Iterator[Equality]:
        """The columns of relations that must be equal to columns of others."""
        names = self._names(select, numbers)
        for deciding in deciding_conditions(select):
            for conjunct in conjuncts_of(deciding.node):
                for at, path, by, by_path in self._equal(conjunct, names, numbers, deciding):
                    number = numbers[at]
                    if at in deciding.decided and number is not None:
                        yield Equality(number, path, by, by_path)

    def _equal(
        self, node: _Node, names: Names, numbers: Sequence[int | None], deciding: Deciding
    ) -> Iterator[tuple[int, Path, int, Path]]:
        """Columns of the SELECT, by their place in it, with columns of ours that they equal."""
        if node.key == "eq":
            left, right = (
                names.owner(side, deciding.visible) for side in (node.this, node.expression)
            )
            if left is None or right is None or left[0] == right[0]:
                return
            for (at, path), (by, by_path) in ((left, right), (right, left)):
                number = numbers[by]
                # The name of a hidden relation is one of another SELECT around.
                if number is not None and by not in deciding.hidden:
                    yield at, path, number, by_path
        elif node.key == "in" and (query := node.args.get("query")) is not None:
            found, chosen = names.owner(node.this, deciding.visible), self._chosen(query.this)
            if found is not None and chosen is not None:
                yield *found, *chosen

    def _chosen(self, select: _Node) -> tuple[int, Path] | None:
        """The relation and column whose values a sub-query chooses from, if it is of one table."""
        if select.key != "select" or len(select.expressions) != 1 or not is_plain(select):
            return None
        numbers = self.numbers(select)
        if len(numbers) != 1 or numbers[0] is None or select.args.get("laterals"):
            return None
        found = self._names(select, numbers).owner(select.expressions[0].unalias(), 1)
        return None if found is None else (numbers[0], found[1])

    def _names(self, select: _Node, numbers: Sequence[int | None]) -> Names:
        nodes = relations_of(select)
        sources = [self._source(*each) for each in zip(nodes, numbers, strict=True)]
        return Names(sources, joined_names(select))

    def _read(
        self, node: _Node, number: int, name_of: Callable[[tuple[str, ...]], tuple[str, ...]]
    ) -> Expr:
        schema = self.relations[number].schema
        if schema is None:
            return TRUE
        read = partial(
            predicate_of,
            literals=self.outline.literals,
            schema=schema,
            terms=DateTerms(self.outline.literals, self.now),
            time_zone=self.time_zone,
            name_of=name_of,
            means_the_same=partial(self._means_the_same, number),
        )
        return at_least(node, read)

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


def _renames_columns(node: _Node) -> bool:
    """Whether a relation is given names of its columns, as in `t AS x(a, b)`."""
    alias = node.args.get("alias")
    return bool(alias is not None and alias.args.get("columns"))
