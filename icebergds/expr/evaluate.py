"""Evaluates bound filters on the values of one row or one partition tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icebergds.expr.nodes import BoundPredicate, Expr, Operation, contains, evaluate


def matches(expr: Expr, value_of: Callable[[int], Any]) -> bool:
    """Whether a bound filter selects a row.

    `value_of` takes a field id and returns its in-memory value; None also if a struct around the
    field is null.
    """
    return evaluate(expr, lambda predicate: holds(predicate, value_of(predicate.field_id)))


def holds(predicate: BoundPredicate, value: Any) -> bool:
    """Whether a predicate is true for a value of its column, by the semantics of `nodes`."""
    op = predicate.op
    if value is None:
        return op is Operation.IS_NULL or op is Operation.NOT_NAN
    if isinstance(value, float) and value != value:
        return op in TRUE_OF_NAN
    match op:
        case Operation.LT:
            return bool(value < predicate.value)
        case Operation.LT_EQ:
            return bool(value <= predicate.value)
        case Operation.GT:
            return bool(value > predicate.value)
        case Operation.GT_EQ:
            return bool(value >= predicate.value)
        case Operation.EQ:
            return bool(value == predicate.value)
        case Operation.NOT_EQ:
            return bool(value != predicate.value)
        case Operation.IN:
            return contains(predicate.values, value)
        case Operation.NOT_IN:
            return not contains(predicate.values, value)
        case Operation.STARTS_WITH:
            return bool(value.startswith(predicate.value))
        case Operation.NOT_STARTS_WITH:
            return not value.startswith(predicate.value)
        case Operation.NOT_NULL | Operation.NOT_NAN:
            return True
        case Operation.IS_NULL | Operation.IS_NAN:
            return False


# NaN is greater than every value that a bound predicate can hold.
TRUE_OF_NAN = frozenset(
    {
        Operation.GT,
        Operation.GT_EQ,
        Operation.NOT_EQ,
        Operation.NOT_IN,
        Operation.NOT_NULL,
        Operation.IS_NAN,
    }
)
