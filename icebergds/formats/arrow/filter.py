"""Evaluates bound filters on Arrow batches, by the semantics of `expr.nodes`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.expr.bounds import is_floating
from icebergds.expr.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundPredicate,
    Expr,
    Operation,
    Or,
    bound_expected,
)
from icebergds.formats.arrow.types import to_arrow
from icebergds.spec.types import IcebergType


def filter_mask(
    expr: Expr, batch: pa.RecordBatch, column_of: Callable[[int], pa.Array]
) -> pa.BooleanArray:
    """The rows of a batch that a bound filter selects, as a mask without nulls.

    `column_of` takes a field id and returns that field's values for the rows of the batch, in the
    Arrow type of `arrow.types.to_arrow`; a value is also null if a struct around it is.
    """
    match expr:
        case AlwaysTrue():
            return pa.repeat(pa.scalar(True), batch.num_rows)
        case AlwaysFalse():
            return pa.repeat(pa.scalar(False), batch.num_rows)
        case And(left, right):
            return pc.and_(
                filter_mask(left, batch, column_of), filter_mask(right, batch, column_of)
            )
        case Or(left, right):
            return pc.or_(filter_mask(left, batch, column_of), filter_mask(right, batch, column_of))
        case BoundPredicate():
            return _predicate_mask(expr, column_of(expr.field_id))
        case _:
            raise bound_expected(expr)


_COMPARISONS: dict[Operation, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    Operation.LT: pc.less,
    Operation.LT_EQ: pc.less_equal,
    Operation.GT: pc.greater,
    Operation.GT_EQ: pc.greater_equal,
    Operation.EQ: pc.equal,
    Operation.NOT_EQ: pc.not_equal,
}


def _predicate_mask(predicate: BoundPredicate, column: pa.Array) -> pa.BooleanArray:
    match predicate.op:
        case Operation.IS_NULL:
            return pc.is_null(column)
        case Operation.NOT_NULL:
            return pc.is_valid(column)
        case Operation.IS_NAN:
            return pc.fill_null(pc.is_nan(column), False)
        case Operation.NOT_NAN:
            return pc.invert(pc.fill_null(pc.is_nan(column), False))
        case Operation.STARTS_WITH:
            return pc.fill_null(pc.starts_with(column, predicate.value), False)
        case Operation.NOT_STARTS_WITH:
            return pc.fill_null(pc.invert(pc.starts_with(column, predicate.value)), False)
        case Operation.IN:
            return _is_in(predicate, column)
        case Operation.NOT_IN:
            return pc.and_not(pc.is_valid(column), _is_in(predicate, column))
        case _:
            return pc.fill_null(_compared(predicate, column), False)


def _compared(predicate: BoundPredicate, column: pa.Array) -> pa.Array:
    if not _fits(predicate.value, predicate.field_type):
        # A value projected through `truncate` may be outside the range of its type.
        is_above = predicate.value > 0
        holds = predicate.op is Operation.NOT_EQ or predicate.op in (
            (Operation.LT, Operation.LT_EQ) if is_above else (Operation.GT, Operation.GT_EQ)
        )
        return pc.and_(pc.is_valid(column), pa.scalar(holds))
    value = pa.scalar(predicate.value, to_arrow(predicate.field_type))
    mask = _COMPARISONS[predicate.op](column, value)
    # Arrow compares NaN as IEEE does (only != holds); here NaN is greater than all values.
    if predicate.op in (Operation.GT, Operation.GT_EQ) and is_floating(predicate.field_type):
        return pc.or_(mask, pc.is_nan(column))
    return mask


def _is_in(predicate: BoundPredicate, column: pa.Array) -> pa.BooleanArray:
    values: Sequence[Any] = predicate.values
    if is_floating(predicate.field_type) and 0.0 in values:
        values = (*values, 0.0, -0.0)  # Arrow compares bits
    fitting = [value for value in values if _fits(value, predicate.field_type)]
    return pc.is_in(column, value_set=_array(fitting, predicate.field_type))


def _fits(value: Any, field_type: IcebergType) -> bool:
    """Whether a number is in the range of the type."""
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        return True
    try:
        pa.scalar(value, to_arrow(field_type))
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def _array(values: Sequence[Any], field_type: IcebergType) -> pa.Array:
    return pa.array(values, to_arrow(field_type))
