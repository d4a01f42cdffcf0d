"""Finds aggregates and first rows in what a Spark Connect DataFrame asks for.

The client resolves nothing. What Spark would refuse, such as an ambiguous name, it refuses all the
same: the plan that it analyzes has the question beside the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from pyspark.sql.connect.expressions import (
    CastExpression,
    ColumnAlias,
    ColumnReference,
    Expression,
    LiteralExpression,
    SortOrder,
    UnresolvedFunction,
    UnresolvedStar,
)
from pyspark.sql.types import DateType

from icebergds.errors import InvalidFilterError
from icebergds.expr.names import split_name
from icebergds.expr.nodes import LOCAL_DAY, LOCAL_YEAR, Expr
from icebergds.operations.read.aggregates import Aggregate, Function, GroupKey
from icebergds.operations.read.first_rows import FirstRows, Order
from icebergds.spark.frames.answers import AggregateQuery
from icebergds.spec.types import DATE, TIMESTAMP, TIMESTAMPTZ, NestedField

_Found = TypeVar("_Found")
_FUNCTIONS = {"count": Function.COUNT, "min": Function.MIN, "max": Function.MAX}


def aggregate_query(
    aggregate: Any, condition: Expr, columns: Sequence[NestedField], time_zone: str | None
) -> AggregateQuery | None:
    """The aggregates of a plan of Spark Connect; None if metadata cannot answer them.

    Args:
        aggregate: a `pyspark.sql.connect.plan.Aggregate`.
        condition: of the rows that count, bound; the only ones that the plan aggregates.
        columns: those of the rows.
    """
    if aggregate._group_type != "groupby":
        return None
    keys = _all(_key(each._expr, columns) for each in aggregate._grouping_cols)
    results = _all(_output(each._expr, columns) for each in aggregate._aggregate_cols)
    if keys is None or results is None:
        return None
    return AggregateQuery.of(condition, keys, [*keys, *results], time_zone)


def distinct_query(
    names: Sequence[str], condition: Expr, columns: Sequence[NestedField]
) -> AggregateQuery | None:
    """The distinct rows of columns; None if metadata cannot answer them.

    Args:
        names: of columns, in their order.

    Further arguments are those of `aggregate_query`.
    """
    keys = [GroupKey(each) for name in names for each in columns if each.name == name]
    if len(keys) != len(names):
        return None
    return AggregateQuery.of(condition, keys, keys, None)


def first_rows(
    count: int, sort: Any, condition: Expr, columns: Sequence[NestedField]
) -> FirstRows | None:
    """The first rows of a plan; None if all may be needed.

    Args:
        count: how many rows are asked for.
        sort: a `pyspark.sql.connect.plan.Sort` of all rows; None if they have no order.

    Further arguments are those of `aggregate_query`.
    """
    if count <= 0:
        return None
    if sort is None:
        return FirstRows(count, condition)
    by = sort.columns[0]._expr if sort.is_global and sort.columns else None
    if not isinstance(by, SortOrder) or (column := _column(by._child, columns)) is None:
        return None
    return FirstRows(count, condition, Order(column, not by._ascending, by._nullsFirst))


def _all(found: Iterable[_Found | None]) -> list[_Found] | None:
    """What is found; None if one is not."""
    found = list(found)
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _output(expression: Expression, columns: Sequence[NestedField]) -> Aggregate | None:
    if isinstance(expression, ColumnAlias) and len(expression._alias) == 1:
        expression = expression._child
    match expression:
        case UnresolvedFunction(_name=name, _args=[of], _is_distinct=False) if name in _FUNCTIONS:
            function, column = _FUNCTIONS[name], _column(of, columns)
            if column is not None:
                return Aggregate(function, column)
            is_constant = isinstance(of, LiteralExpression) and of._value is not None
            is_star = isinstance(of, UnresolvedStar) and of._unparsed_target is None
            if function is Function.COUNT and (is_constant or is_star):
                return Aggregate(function)
    return None


def _key(expression: Expression, columns: Sequence[NestedField]) -> GroupKey | None:
    if isinstance(expression, ColumnAlias) and len(expression._alias) == 1:
        expression = expression._child
    column = _column(expression, columns)
    if column is not None:
        return GroupKey(column)
    day = _day(expression, columns)
    if day is not None:
        return GroupKey(day, LOCAL_DAY)
    if isinstance(expression, UnresolvedFunction) and expression._name == "year":
        [of] = expression._args
        # Spark makes a date of a time by itself, but of no text.
        column = _column(of, columns)
        is_time = column is not None and column.field_type in (DATE, TIMESTAMP, TIMESTAMPTZ)
        known = column if is_time else _day(of, columns)
        return None if known is None else GroupKey(known, LOCAL_YEAR)
    return None


def _day(expression: Expression, columns: Sequence[NestedField]) -> NestedField | None:
    """The column whose day an expression is."""
    match expression:
        case CastExpression(_data_type="date" | DateType(), _eval_mode=None):
            return _column(expression._expr, columns)
        case UnresolvedFunction(_name="to_date", _args=[of]):
            return _column(of, columns)
    return None


def _column(expression: Expression, columns: Sequence[NestedField]) -> NestedField | None:
    """The column that an expression names; None if it is another one, or names several."""
    if not isinstance(expression, ColumnReference) or expression._is_metadata_column:
        return None
    try:
        parts = split_name(expression._unparsed_identifier)
    except InvalidFilterError:
        return None
    named = [each for each in columns if [each.name.lower()] == [part.lower() for part in parts]]
    return named[0] if len(named) == 1 else None
