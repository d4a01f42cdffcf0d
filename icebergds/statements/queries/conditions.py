"""Derives, from the conditions of a SELECT, what holds for the rows of one relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.conditions import Conditions
from icebergds.expr.nodes import (
    AlwaysTrue,
    And,
    BoundPredicate,
    Expr,
    Operation,
    Or,
    conjuncts,
    disjuncts,
)
from icebergds.expr.sql import SqlTree, column_parts
from icebergds.spec.schema import Schema

# A node of sqlglot's tree.
_Node = Any


@dataclass(frozen=True, slots=True)
class Source:
    """A relation of a SELECT.

    Attributes:
        qualifiers: what may qualify its columns: an alias, or parts of a name, in lower case.
        columns: their names, in lower case; None if they are not known.
    """

    qualifiers: frozenset[tuple[str, ...]]
    columns: frozenset[str] | None


@dataclass(frozen=True)
class Names:
    """Resolves the column names of a SELECT.

    Attributes:
        joined: names of columns that a join merges from both sides; None if not known.
        case_sensitive: whether Spark distinguishes names by case.
    """

    sources: Sequence[Source]
    joined: frozenset[str] | None
    case_sensitive: bool = False

    def owners(self, condition: _Node, visible: int) -> frozenset[int]:
        """The relations whose columns a condition uses."""
        from sqlglot.expressions import Column

        found = (self.owner(column, visible) for column in condition.find_all(Column))
        return frozenset(owner[0] for owner in found if owner is not None)

    def owner(self, node: _Node, visible: int) -> tuple[int, tuple[str, ...]] | None:
        """The relation and path of a column; None if the node is not a relation's column.

        Args:
            visible: how many relations, from the first on, the name may refer to.
        """
        parts = column_parts(node)
        return None if parts is None else self.resolved(parts, visible)

    def column_of(self, at: int, visible: int) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
        """A function from names to paths of one relation's columns; it rejects other names."""

        def path(parts: tuple[str, ...]) -> tuple[str, ...]:
            found = self.resolved(parts, visible)
            if found is None or found[0] != at:
                raise InvalidFilterError(f"{'.'.join(parts)} may be another relation's")
            return found[1]

        return path

    def resolved(self, parts: tuple[str, ...], visible: int) -> tuple[int, tuple[str, ...]] | None:
        """The relation and path of the column with a name; None if it is not known."""
        lowered = tuple(part.lower() for part in parts)
        with_column = [at for at in self._by_column.get(lowered[0], ()) if at < visible]
        qualified: dict[int, tuple[str, ...]] = {}
        for length in range(len(parts) - 1, 0, -1):
            for at in self._by_qualifier.get(lowered[:length], ()):
                if at < visible:
                    qualified.setdefault(at, parts[length:])
        if qualified:
            # Spark tries qualifiers first, then fields of a struct with the qualifier's name.
            if len(qualified) > 1 or (self.case_sensitive and with_column):
                return None
            [(at, path)] = qualified.items()
            return (at, path) if path[0].lower() in (self.sources[at].columns or ()) else None
        if self.joined is None or lowered[0] in self.joined or len(with_column) != 1:
            return None
        return None if any(at < visible for at in self._unknown) else (with_column[0], parts)

    @cached_property
    def _by_qualifier(self) -> Mapping[tuple[str, ...], Sequence[int]]:
        found: dict[tuple[str, ...], list[int]] = {}
        for at, source in enumerate(self.sources):
            for qualifier in source.qualifiers:
                found.setdefault(qualifier, []).append(at)
        return found

    @cached_property
    def _by_column(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for at, source in enumerate(self.sources):
            for column in source.columns or ():
                found.setdefault(column, []).append(at)
        return found

    @cached_property
    def _unknown(self) -> Sequence[int]:
        return [at for at, source in enumerate(self.sources) if source.columns is None]


def said_by(
    node: _Node,
    tree: SqlTree,
    schema: Schema,
    *,
    time_zone: str | None,
    means_the_same: Callable[[Expr], bool],
) -> Expr:
    """What holds for every row of a table for which a condition is true; bound.

    Args:
        tree: of the node; it rejects names of other relations.
        schema: the table's.
        means_the_same: whether Spark compares the values as we do.
    """

    def settle(parsed: Expr) -> Expr:
        if not means_the_same(parsed):
            raise InvalidFilterError("Spark may compare other values")
        return bind(parsed, schema, case_sensitive=False)

    return Conditions(tree, time_zone).at_least(node, settle)


def is_true_for_nulls(condition: Expr) -> bool:
    """Whether a bound condition is true if all of its columns are null."""
    match condition:
        case AlwaysTrue():
            return True
        case And():
            return all(map(is_true_for_nulls, conjuncts(condition)))
        case Or():
            return any(map(is_true_for_nulls, disjuncts(condition)))
        case BoundPredicate():
            return condition.op in (Operation.IS_NULL, Operation.NOT_NAN)
        case _:
            return False


def conjuncts_of(node: _Node) -> list[_Node]:
    """The parts of a condition that must all be true."""
    if node.key == "paren":
        return conjuncts_of(node.this)
    if node.key != "and":
        return [node]
    return [part for operand in node.flatten() for part in conjuncts_of(operand)]
