"""Finds aggregates and first rows in the plan of a classic DataFrame."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from icebergds.expr.bind import bind
from icebergds.expr.conditions import UNREADABLE
from icebergds.expr.nodes import LOCAL_DAY, LOCAL_YEAR, TRUE, Expr, and_
from icebergds.operations.read.aggregates import Aggregate, Function, GroupKey
from icebergds.operations.read.first_rows import FirstRows, Order
from icebergds.spark.frames.answers import AggregateQuery
from icebergds.spark.frames.classic_conditions import converted_exactly
from icebergds.spec.schema import Schema
from icebergds.spec.types import DATE, NestedField

Columns: TypeAlias = Mapping[int, NestedField]
"""The columns of a load by the expression ids of their attributes."""

# Nodes above an aggregate stay as they are; those beneath it choose rows and columns.
_ABOVE = ("Project", "Filter", "Sort", "GlobalLimit", "LocalLimit")
_FUNCTIONS = {"Count": Function.COUNT, "Min": Function.MIN, "Max": Function.MAX}


class _Unreadable(Exception):  # noqa: N818
    """A plan is not understood."""


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """An aggregate in a plan, of the rows of one load.

    Attributes:
        node: the Catalyst node, a JVM object.
        depth: how many nodes are above it.
    """

    node: Any
    depth: int
    query: AggregateQuery


def aggregate_in(
    plan: Any, schema: Schema, columns: Columns, time_zone: str | None
) -> AggregatePlan | None:
    """The aggregate or the distinct rows of an analyzed plan, if metadata may answer them.

    Args:
        plan: a Catalyst plan whose nodes have one child each, a JVM object.
        schema: the table's.
        time_zone: of the session.
    """
    depth = 0
    while (kind := _kind(plan)) not in ("Aggregate", "Deduplicate"):
        if kind not in _ABOVE:
            return None
        plan, depth = plan.children().head(), depth + 1
    try:
        condition = _condition(plan.children().head(), schema, columns)
        if kind == "Deduplicate":
            keys = _output_keys(plan, columns)
            return AggregatePlan(plan, depth, AggregateQuery.of(condition, keys, keys, time_zone))
        [tree, *_] = json.loads(plan.toJSON())
        keys = [_key(each, columns) for each in tree["groupingExpressions"]]
        outputs = [
            _output(each, tree["groupingExpressions"], keys, columns)
            for each in tree["aggregateExpressions"]
        ]
    except _Unreadable:
        return None
    return AggregatePlan(plan, depth, AggregateQuery.of(condition, keys, outputs, time_zone))


def first_rows_in(plan: Any, schema: Schema, columns: Columns) -> FirstRows | None:
    """The first rows that an analyzed plan needs of a load; None if it may need all.

    Arguments are those of `aggregate_in`.
    """
    while (kind := _kind(plan)) != "GlobalLimit":
        if kind not in _ABOVE:
            return None
        plan = plan.children().head()
    try:
        count = _limit(plan)
        plan = plan.children().head().children().head()
        order = None
        if _kind(plan) == "Sort":
            order = _order(json.loads(plan.toJSON())[0], columns)
            plan = plan.children().head()
        return FirstRows(count, _condition(plan, schema, columns, computes=True), order)
    except _Unreadable:
        return None


def _limit(plan: Any) -> int:
    """The number of rows of `GlobalLimit` over `LocalLimit`."""
    if _kind(plan.children().head()) != "LocalLimit":
        raise _Unreadable
    [limit] = json.loads(plan.limitExpr().toJSON())
    if _class(limit) != "Literal" or not str(limit.get("value")).isdecimal():
        raise _Unreadable
    count = int(limit["value"])
    if not count:
        raise _Unreadable
    return count


def _order(sort: Mapping[str, Any], columns: Columns) -> Order:
    if sort.get("global") is not True or not sort["order"]:
        raise _Unreadable
    by, *tree = sort["order"][0]
    if _class(by) != "SortOrder" or [_class(node) for node in tree] != ["AttributeReference"]:
        raise _Unreadable
    direction, nulls = (_class({"class": by[name]["object"]}) for name in _OF_ORDER)
    return Order(_column(tree[0], columns), direction == "Descending$", nulls == "NullsFirst$")


_OF_ORDER = ("direction", "nullOrdering")


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _condition(plan: Any, schema: Schema, columns: Columns, *, computes: bool = False) -> Expr:
    """The condition of the rows beneath a node, bound.

    Args:
        computes: whether there may be new columns.
    """
    condition: Expr = TRUE
    while not plan.children().isEmpty():
        match _kind(plan):
            case "Filter":
                exact, _ = converted_exactly(plan.condition(), schema, columns)
                if exact is None:
                    raise _Unreadable
                try:
                    condition = and_(condition, bind(exact, schema))
                except UNREADABLE:
                    raise _Unreadable from None
            case "Project" if computes or plan.outputSet().subsetOf(plan.inputSet()):
                pass
            case _:
                raise _Unreadable
        plan = plan.children().head()
    return condition


def _key(tree: Sequence[Any], columns: Columns) -> GroupKey:
    match [_class(node) for node in tree]:
        case ["AttributeReference"]:
            return GroupKey(_column(tree[0], columns))
        case ["Cast", "AttributeReference"] if tree[0].get("dataType") == "date":
            return GroupKey(_column(tree[1], columns), LOCAL_DAY)
        case ["ParseToDate", "AttributeReference"]:
            return GroupKey(_column(tree[1], columns), LOCAL_DAY)
        case ["Year", "Cast", "AttributeReference"] if tree[1].get("dataType") == "date":
            return GroupKey(_column(tree[2], columns), LOCAL_YEAR)
        case ["Year", "AttributeReference"]:
            column = _column(tree[1], columns)
            if column.field_type == DATE:
                return GroupKey(column, LOCAL_YEAR)
    raise _Unreadable


def _output_keys(plan: Any, columns: Columns) -> list[GroupKey]:
    """The columns of distinct rows; each takes calls to the JVM."""
    output = plan.output()
    if output.size() > _MOST_KEYS or not plan.outputSet().subsetOf(plan.references()):
        raise _Unreadable
    ids = [output.apply(at).exprId().id() for at in range(output.size())]
    if not columns.keys() >= set(ids):
        raise _Unreadable
    return [GroupKey(columns[each]) for each in ids]


# More are never the columns of partitions alone.
_MOST_KEYS = 8


def _output(
    tree: Sequence[Any], grouping: Sequence[Any], keys: Sequence[GroupKey], columns: Columns
) -> GroupKey | Aggregate:
    if _class(tree[0]) == "Alias":
        tree = tree[1:]
    for expression, key in zip(grouping, keys, strict=True):
        if tree == expression:
            return key
    match [_class(node) for node in tree]:
        case ["AggregateExpression", "Count" | "Min" | "Max" as kind, inner]:
            whole, _, of = tree
            if whole.get("isDistinct") is not False or whole.get("filter") is not None:
                raise _Unreadable
            function = _FUNCTIONS[kind]
            if inner == "AttributeReference":
                return Aggregate(function, _column(of, columns))
            is_constant = inner == "Literal" and of.get("value") is not None
            if function is Function.COUNT and is_constant:
                return Aggregate(function)
    raise _Unreadable


def _column(node: Mapping[str, Any], columns: Columns) -> NestedField:
    column = columns.get(node["exprId"]["id"])
    if column is None:
        raise _Unreadable
    return column


def _class(node: Mapping[str, Any]) -> str:
    return str(node["class"]).rpartition(".")[2]
