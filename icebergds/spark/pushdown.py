"""Converts filters that Spark pushes down to predicates, for loads with `pushdown` = `true`.

A filter that cannot be converted becomes `TRUE`; Spark evaluates all of them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pyspark.sql import datasource as spark

from icebergds.errors import InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.names import quote_name
from icebergds.expr.nodes import (
    TRUE,
    BoundPredicate,
    Expr,
    Operation,
    Predicate,
    and_,
    map_leaves,
    not_,
    or_,
)
from icebergds.spark.reader import IcebergReader
from icebergds.spark.types import READ_AS_ANOTHER_TYPE
from icebergds.spec.schema import Schema

# Decimals with this many digits or more may have been rounded on the way to Python.
_EXACT_DECIMAL_DIGITS = 28


class PushdownReader(IcebergReader):
    """A reader that accepts pushed filters; used with `option("pushdown", "true")`."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:
        """Adds the usable filters to the filter of the scan; Spark evaluates all of them again."""
        schema = self._plan.table_schema
        pushed = and_(*(bound_spark_filter(item, schema) for item in filters))
        self._plan = replace(self._plan, row_filter=and_(self._plan.row_filter, pushed))
        yield from filters


def bound_spark_filter(pushed: spark.Filter, schema: Schema) -> Expr:
    """A bound predicate that is true for every row for which Spark's filter is true."""
    unbound = _convert(pushed)
    if unbound is None:
        return TRUE
    try:
        bound = bind(unbound, schema, case_sensitive=True)
    except InvalidFilterError:
        return TRUE
    unusable = []

    def check(leaf: BoundPredicate) -> Expr:
        if getattr(leaf.field_type, "type_id", None) in READ_AS_ANOTHER_TYPE:
            unusable.append(leaf)
        return leaf

    map_leaves(bound, check)
    return TRUE if unusable else bound


def _convert(pushed: spark.Filter) -> Expr | None:
    match pushed:
        case spark.Not(child=child):
            inner = _convert(child)
            return None if inner is None else not_(inner)
        case spark.IsNull(attribute=path):
            return Predicate(Operation.IS_NULL, quote_name(path))
        case spark.IsNotNull(attribute=path):
            return Predicate(Operation.NOT_NULL, quote_name(path))
        case spark.EqualNullSafe(attribute=path, value=value):
            return None if value is None else _usable(Operation.EQ, path, (value,), null_safe=True)
        case spark.In(attribute=path, value=values):
            return _usable(Operation.IN, path, tuple(values))
        case spark.StringStartsWith(attribute=path, value=value):
            return _usable(Operation.STARTS_WITH, path, (value,))
        case _:
            return _convert_comparison(pushed)


def _convert_comparison(pushed: spark.Filter) -> Expr | None:
    match pushed:
        case spark.EqualTo(attribute=path, value=value):
            return _usable(Operation.EQ, path, (value,))
        case spark.GreaterThan(attribute=path, value=value):
            return _usable(Operation.GT, path, (value,))
        case spark.GreaterThanOrEqual(attribute=path, value=value):
            return _usable(Operation.GT_EQ, path, (value,))
        case spark.LessThan(attribute=path, value=value):
            return _usable(Operation.LT, path, (value,))
        case spark.LessThanOrEqual(attribute=path, value=value):
            return _usable(Operation.LT_EQ, path, (value,))
        case _:
            return None


def _usable(
    operation: Operation, path: tuple[str, ...], values: tuple[Any, ...], null_safe: bool = False
) -> Expr | None:
    for value in values:
        if isinstance(value, Decimal) and len(value.as_tuple().digits) >= _EXACT_DECIMAL_DIGITS:
            return None
    name = quote_name(path)
    if not null_safe:
        return Predicate(operation, name, values)
    # not (a <=> x) is (a != x or a is null).
    return not_(
        or_(
            Predicate(Operation.NOT_EQ, name, values),
            Predicate(Operation.IS_NULL, name),
        )
    )
