"""Finds the SELECTs that return the first rows of one table, and those that compute nothing."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from icebergds.expr.sql import column_parts
from icebergds.operations.read.first_rows import FirstRows, Order
from icebergds.spec.types import NestedField
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.analysis import QueryAnalysis
from icebergds.statements.queries.derived import selects_of
from icebergds.statements.queries.joins import is_plain
from icebergds.statements.queries.outputs import is_star

# A node of sqlglot's tree.
_Node = Any

# Parts of a SELECT.
_PARTS = frozenset(
    {"expressions", "from_", "from", "where", "order", "limit", "offset", "with_", "with"}
)
# Expressions that give one row for each row.
_OF_ROWS = frozenset(
    """
    alias paren identifier column dot star literal boolean null add sub mul div mod neg and or not
    eq neq gt gte lt lte is between in like case if coalesce cast trycast datatype datatypeparam abs
    round ceil floor upper lower length substring concat trim year month day tsordstodate
    """.split()  # noqa: SIM905
)
_MOST = 1_000_000


def first_rows(tree: _Node, analysis: QueryAnalysis) -> Mapping[int, FirstRows]:
    """The first rows that the SELECTs of a query need, by the number of the table."""
    found = {}
    for select in selects_of(tree):
        numbers = analysis.numbers(select)
        if len(numbers) == 1 and numbers[0] is not None and is_plain(select):
            first = _first(select, analysis, numbers[0])
            if first is not None:
                found[numbers[0]] = first
    return found


def plain_selects(tree: _Node, analysis: QueryAnalysis) -> Set[int]:
    """The tables, by number, of which a SELECT shows columns, by a condition that is exact.

    Spark computes what is in its plan itself, and not always as it does for files: it compares
    times without a zone with instants by other rules, and fails to compile `typeof`. Nothing of
    these remains in such a SELECT.
    """
    found = set()
    for select in selects_of(tree):
        numbers = analysis.numbers(select)
        if len(numbers) != 1 or numbers[0] is None or not is_plain(select):
            continue
        if not {name for name, value in select.args.items() if value} <= _PARTS:
            continue
        order = select.args.get("order")
        shown = [item.unalias() for item in select.expressions]
        shown += [] if order is None else [each.this for each in order.expressions]
        if all(is_star(node) or node.key == "column" for node in shown) and (
            analysis.exact_condition(select) is not None
        ):
            found.add(numbers[0])
    return found


def _first(select: _Node, analysis: QueryAnalysis, number: int) -> FirstRows | None:
    count = _count(select)
    relation = analysis.relations[number]
    if count is None or not isinstance(relation.source, NamedTable):
        return None
    if relation.source.metadata_table is not None or relation.reference.suffix.is_sampled:
        return None
    if not {name for name, value in select.args.items() if value} <= _PARTS:
        return None
    if any(node.key not in _OF_ROWS for item in select.expressions for node in item.walk()):
        return None
    order = select.args.get("order")
    first = None
    if order is not None:
        first = _order(select, order.expressions[0], analysis)
        if first is None:
            return None
    condition = analysis.exact_condition(select)
    return None if condition is None else FirstRows(count, condition, first)


def _count(select: _Node) -> int | None:
    """How many rows a SELECT needs, with those that it skips; None if it needs all."""
    total = 0
    for name in ("limit", "offset"):
        node = select.args.get(name)
        if node is None:
            if name == "limit":
                return None
            continue
        value = node.args.get("expression")
        if value is None or value.key != "literal" or not value.is_int:
            return None
        total += int(value.this)
    return total if 0 < total <= _MOST else None


def _order(select: _Node, ordered: _Node, analysis: QueryAnalysis) -> Order | None:
    if ordered.key != "ordered" or ordered.args.get("with_fill"):
        return None
    column = _column(select, ordered.this, analysis)
    if column is None:
        return None
    return Order(
        column, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first", False))
    )


def _column(select: _Node, node: _Node, analysis: QueryAnalysis) -> NestedField | None:
    """The column of the table that rows are ordered by; None for other expressions."""
    listed = select.expressions
    if node.key == "literal":
        if any(map(is_star, listed)) or not node.is_int or not 1 <= int(node.this) <= len(listed):
            return None
        node = listed[int(node.this) - 1].unalias()
    elif (parts := column_parts(node)) is not None and len(parts) == 1:
        # Names are those of the result first.
        named = [item for item in listed if item.alias.lower() == parts[0].lower()]
        if len(named) > 1:
            return None
        if named:
            node = named[0].unalias()
    parts = column_parts(node)
    return None if parts is None else analysis.own_column(select, parts)
