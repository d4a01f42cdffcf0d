"""Finds the queries within a query whose results are relations of it (`DerivedQueries`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from icebergds.statements.queries.joins import is_plain, relations_of
from icebergds.statements.queries.outputs import (
    Output,
    branches_of,
    has_more_than,
    outputs_of,
    renamed,
    unwrapped,
)

# A node of sqlglot's tree.
_Node = Any


@dataclass(frozen=True, slots=True)
class Use:
    """A relation of a SELECT that is the result of a query.

    Attributes:
        at: which of the SELECT's relations it is.
    """

    select: _Node
    at: int

    @property
    def relation(self) -> _Node:
        return relations_of(self.select)[self.at]


@dataclass(frozen=True)
class DerivedQueries:
    """The queries within a query whose results are relations of it.

    Attributes:
        tree: sqlglot's tree.
        is_ours: whether a table is one of our relations.
        columns_of_table: the columns of a table, in their order; None if they are not known.
    """

    tree: _Node
    is_ours: Callable[[_Node], bool]
    columns_of_table: Callable[[_Node], Sequence[str] | None]

    def query_of(self, relation: _Node) -> _Node | None:
        """The query whose result is a relation of a SELECT; None for other relations."""
        if relation.key != "table":
            return unwrapped(relation) if relation.key == "subquery" else None
        common = self._common_of(relation)
        return None if common is None else unwrapped(common.this)

    def columns_of(self, relation: _Node) -> Sequence[str | None] | None:
        """The columns of a relation, in their order; None if they are not known.

        Those of expressions without an alias are None.
        """
        found = self.result_of(relation)
        if found is None:
            return self.columns_of_table(relation)
        return [output.name for output in found]

    def result_of(self, relation: _Node) -> list[Output] | None:
        """The columns of the result of a query that is a relation; None if they are not known."""
        query = self.query_of(relation)
        branches = None if query is None else branches_of(query)
        return None if not branches else self.named(self.outputs(branches[0]), relation)

    def outputs(self, select: _Node) -> list[Output] | None:
        """The columns of a SELECT's result; None if they are not known."""
        found = self._outputs
        if id(select) not in found:
            # PIVOT gives a relation other columns.
            known = is_plain(select)
            found[id(select)] = outputs_of(select, self.columns_of) if known else None
        return found[id(select)]

    def named(self, outputs: Sequence[Output] | None, relation: _Node) -> list[Output] | None:
        """Renames outputs of the query behind a relation to the relation's column names."""
        for naming in (self._common_of(relation), relation):
            if outputs is not None and naming is not None:
                outputs = renamed(outputs, naming)
        return None if outputs is None else list(outputs)

    def uses(self) -> list[tuple[_Node, list[Use]]]:
        """The inner queries, each after those that read it, with all relations that read it."""
        found: dict[int, tuple[_Node, list[Use]]] = {}
        for select in selects_of(self.tree):
            for at, relation in enumerate(relations_of(select)):
                query = self.query_of(relation)
                if query is not None:
                    found.setdefault(id(query), (query, []))[1].append(Use(select, at))
        return _ordered(found)

    def _common_of(self, relation: _Node) -> _Node | None:
        """The common table expression that a relation refers to; None for others."""
        common = self._common.get(relation.name.lower()) if relation.key == "table" else None
        return common if common is not None and self._may_be(relation, common) else None

    @cached_property
    def _outputs(self) -> dict[int, list[Output] | None]:
        """Columns already found for SELECTs, keyed by `id`."""
        return {}

    @cached_property
    def _common(self) -> Mapping[str, _Node]:
        """Common table expressions by name, if all references to them are known."""
        from sqlglot.expressions import CTE, Anonymous, Table, With

        clauses = list(self.tree.find_all(With))
        if not clauses or any(each.args.get("recursive") for each in clauses):
            return {}
        if any(each.name.upper() == "IDENTIFIER" for each in self.tree.find_all(Anonymous)):
            # It may name any of them.
            return {}
        found: dict[str, list[_Node]] = {}
        for each in self.tree.find_all(CTE):
            found.setdefault(each.alias.lower(), []).append(each)
        known = {
            id(relation)
            for select in selects_of(self.tree)
            for relation in relations_of(select)
            if not has_more_than(relation, "this", "alias")
        }
        for table in self.tree.find_all(Table):
            name = table.name.lower()
            if id(table) not in known and any(
                self._may_be(table, each) for each in found.get(name, ())
            ):
                del found[name]
        return {name: each[0] for name, each in found.items() if len(each) == 1}

    def _may_be(self, table: _Node, common: _Node) -> bool:
        """Whether a table that has a common table expression's name is within the scope of that."""
        if (
            table.args.get("db")
            or self.is_ours(table)
            or not _is_within(table, common.parent.parent)
        ):
            return False
        listed = common.parent.expressions
        at = next(at for at, each in enumerate(listed) if each is common)
        return not any(_is_within(table, each) for each in listed[: at + 1])


def selects_of(tree: _Node) -> list[_Node]:
    """All SELECTs of a query, outer ones before those within them."""
    from sqlglot.expressions import Select

    return list(tree.find_all(Select))


def _ordered(found: Mapping[int, tuple[_Node, list[Use]]]) -> list[tuple[_Node, list[Use]]]:
    readers: dict[int, int] = {}
    for key, (query, _) in found.items():
        for select in branches_of(query) or ():
            readers[id(select)] = key
    ordered: dict[int, tuple[_Node, list[Use]]] = {}

    def add(key: int) -> None:
        if key not in ordered:
            for use in found[key][1]:
                reader = readers.get(id(use.select))
                if reader is not None:
                    add(reader)
            ordered[key] = found[key]

    for key in found:
        add(key)
    return list(ordered.values())


def _is_within(node: _Node, other: _Node) -> bool:
    """Whether a node of the tree is below another one."""
    while node is not None and node is not other:
        node = node.parent
    return node is other
