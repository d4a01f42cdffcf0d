"""Pushes conditions on the results of inner queries into those queries.

In `SELECT * FROM (SELECT id AS i, day FROM t) AS d WHERE d.i = 1`, rows of `t` matter only if
`id = 1`. The condition is added to the inner WHERE in sqlglot's tree only: Spark runs the query
unchanged. A common table expression that is read in several places gets the conditions joined with
OR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from icebergds.expr.nodes import Term as OfColumn
from icebergds.expr.sql import as_node
from icebergds.spec.types import IcebergType
from icebergds.statements.queries.conditions import Names, conjuncts_of
from icebergds.statements.queries.derived import DerivedQueries, Use
from icebergds.statements.queries.joins import deciding_conditions, is_plain
from icebergds.statements.queries.outputs import (
    Output,
    Parts,
    Term,
    branches_of,
    by_name,
    has_more_than,
    keys_of,
)

# A node of sqlglot's tree.
_Node = Any
# Limit for the conditions pushed into one query: their size may double at each level.
_MOST_NODES = 5000


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the result of a query.

    Attributes:
        node: a node of sqlglot's tree.
        path_of: gives the path of the result's column that a node refers to; None for other nodes.
    """

    node: _Node
    path_of: Callable[[_Node], Parts | None]


@dataclass(frozen=True, slots=True)
class Reader:
    """What reads the result of a query.

    Attributes:
        conditions: true for all rows that it needs.
        named: names the columns of the result as the conditions do.
    """

    conditions: Sequence[Condition]
    named: Callable[[Sequence[Output]], Sequence[Output] | None]


@dataclass(frozen=True, slots=True)
class Carrier:
    """Pushes conditions inwards.

    Attributes:
        names_of: resolves the columns of a SELECT.
        type_of: the type of a SELECT's term; None if it is not known.
    """

    derived: DerivedQueries
    names_of: Callable[[_Node], Names]
    type_of: Callable[[_Node, Term], IcebergType | None]

    def carry(self) -> None:
        """Adds to the WHERE of each inner query that at least one of its readers needs the row."""
        for query, uses in self.derived.uses():
            self.add(query, [self._reader(use) for use in uses])

    def add(
        self, query: _Node, readers: Sequence[Reader], types: Sequence[IcebergType] | None = None
    ) -> None:
        """Adds to the WHERE of a query that at least one of its readers needs the row.

        Args:
            types: the types that the result's columns are cast to, in their order, if they are.
        """
        branches = branches_of(query)
        if not branches or not all(reader.conditions for reader in readers):
            return
        conditions = [each.node for reader in readers for each in reader.conditions]
        if sum(1 for node in conditions for _ in node.walk()) > _MOST_NODES:
            return
        columns = self._columns(branches, types)
        if columns is None or not all(map(lets_conditions_in, branches)):
            return
        from sqlglot.expressions import and_, or_

        for select, outputs in zip(branches, columns, strict=True):
            needed = []
            for reader in readers:
                terms = by_name(reader.named(outputs) or ())
                needed.append(
                    and_(*(_inner(each, terms) for each in reader.conditions), copy=False)
                )
            _add_to_where(select, or_(*needed, copy=False))

    def _reader(self, use: Use) -> Reader:
        conditions: list[Condition] = []
        if is_plain(use.select):
            names = self.names_of(use.select)
            for deciding in deciding_conditions(use.select):
                if use.at not in deciding.decided - deciding.nullable:
                    continue
                path_of = partial(_path_of, names, use.at, deciding.visible)
                conditions.extend(
                    Condition(part, path_of)
                    for part in conjuncts_of(deciding.node)
                    if use.at in names.owners(part, deciding.visible) and not _has_query(part)
                )
        return Reader(conditions, partial(self.derived.named, relation=use.relation))

    def _columns(
        self, branches: Sequence[_Node], types: Sequence[IcebergType] | None
    ) -> list[list[Output]] | None:
        """The result's columns in each of its SELECTs; None if they are not known."""
        found = [self.derived.outputs(select) for select in branches]
        known = [each for each in found if each is not None]
        if len(known) < len(found) or len({len(each) for each in known}) > 1:
            return None
        if types is not None and len(types) != len(known[0]):
            return None
        keys = [
            keys_of(select, outputs, partial(same_column, self.names_of(select)))
            for select, outputs in zip(branches, known, strict=True)
        ]
        columns: list[list[Output]] = [[] for _ in branches]
        for at, output in enumerate(known[0]):
            terms: Sequence[Term | None] = [outputs[at].term for outputs in known]
            if types is not None or len(branches) > 1:
                wanted = None if types is None else types[at]
                terms = self._of_one_type(branches, terms, wanted)
            for column, term, usable in zip(columns, terms, keys, strict=True):
                column.append(Output(output.name, term if at in usable else None))
        return columns

    def _of_one_type(
        self,
        branches: Sequence[_Node],
        terms: Sequence[Term | None],
        wanted: IcebergType | None,
    ) -> Sequence[Term | None]:
        """Columns that are combined into one of the result without a cast; None for others.

        Args:
            wanted: the type of the result's column; None for the type of the first one.
        """
        for select, term in zip(branches, terms, strict=True):
            found = None if term is None else self.type_of(select, term)
            wanted = wanted or found
            if found is None or found != wanted:
                return [None] * len(terms)
        return terms


def _path_of(names: Names, at: int, visible: int, node: _Node) -> Parts | None:
    owner = names.owner(node, visible)
    return None if owner is None or owner[0] != at else owner[1]


def same_column(names: Names, term: Term) -> tuple[int | None, Parts, OfColumn | None]:
    """A key that is equal for two names of the same column."""
    at, path = names.resolved(term.parts, len(names.sources)) or (None, term.parts)
    return at, tuple(part.lower() for part in path), term.of_column


def _has_query(condition: _Node) -> bool:
    from sqlglot.expressions import Query

    return condition.find(Query) is not None


def _inner(condition: Condition, terms: Mapping[str, Term | None]) -> _Node:
    """A condition with columns named as within the inner query."""
    from sqlglot.expressions import Paren

    def replaced(node: _Node) -> _Node:
        if node.key != "column":
            return node
        path = condition.path_of(node)
        term = None if path is None else terms.get(path[0].lower())
        if path is None or term is None or (term.of_column and len(path) > 1):
            # No column has this name, so nothing is known about a condition on it.
            return as_node(("",), None)
        return as_node((*term.parts, *path[1:]), term.of_column)

    return Paren(this=condition.node.copy()).transform(replaced, copy=False)


def _add_to_where(select: _Node, condition: _Node) -> None:
    from sqlglot.expressions import Where, and_

    where = select.args.get("where")
    whole = condition if where is None else and_(where.this, condition, copy=False)
    select.set("where", Where(this=whole))


def lets_conditions_in(select: _Node) -> bool:
    """Whether a condition on the result may be applied to the rows that a SELECT reads."""
    from sqlglot.expressions import Func

    if has_more_than(select, *_PARTS):
        return False
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        return False
    return all(_NOT_OF_ROWS.isdisjoint(_names(each)) for each in select.find_all(Func))


def _names(function: _Node) -> Sequence[str]:
    return [function.name.upper()] if function.key == "anonymous" else function.sql_names()


_PARTS = (
    *("with_", "with", "hint", "distinct", "expressions", "from_", "from", "joins", "laterals"),
    *("where", "group", "having", "order", "sort", "cluster", "distribute"),
)
# Functions whose value for a row changes if other rows are not read.
_NOT_OF_ROWS = frozenset(
    """
    INPUT_FILE_BLOCK_LENGTH INPUT_FILE_BLOCK_START INPUT_FILE_NAME MONOTONICALLY_INCREASING_ID RAND
    RANDN RANDOM RANDSTR SHUFFLE SPARK_PARTITION_ID UNIFORM UUID
    """.split()  # noqa: SIM905
)
