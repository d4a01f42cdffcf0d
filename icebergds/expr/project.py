"""Projects filters on rows to filters on partition tuples (spec: Scan Planning).

An inclusive projection selects the partition of every row that the filter selects; a strict one
selects only partitions all of whose rows the filter selects. Partition fields with an unknown, void
or multi-argument transform are not used.

Three kinds of partition values in existing tables differ from the specification, and the
projections allow for them:

* Java Iceberg up to 0.10 computed years, months, days and hours before 1970 one too late, unless
  the time was exactly on the boundary;
* truncated integers within a width of their type's minimum wrap around to its maximum;
* Java Iceberg's truncation of 32-bit integers to widths above 2**30 overflows and so does not
  preserve order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from icebergds.expr.nodes import (
    FALSE,
    SETS,
    TRUE,
    BoundPredicate,
    Expr,
    Operation,
    and_,
    map_leaves,
    or_,
)
from icebergds.spec.partition import PartitionField, PartitionSpec, partition_type
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    apply,
    can_transform,
)
from icebergds.spec.types import DATE, INT, LONG, DecimalType, IcebergType, NestedField
from icebergds.spec.values.decimals import from_unscaled, unscaled


def project(expr: Expr, spec: PartitionSpec, schema: Schema) -> Expr:
    """The inclusive projection of a filter bound to `schema` onto the partitions of a spec.

    The fields of the result are partition fields: their ids, and the types of their values.
    """
    targets = _targets(spec, schema)
    return map_leaves(
        expr,
        lambda leaf: and_(*(_inclusive(leaf, *pair) for pair in _usable(leaf, targets))),
        lambda leaf: and_(
            *(
                _on(target, Operation.IN, leaf.buckets)
                for part, target in targets
                if part.source_ids == (leaf.field_id,)
                and part.transform == BucketTransform(leaf.count)
            )
        ),
    )


def project_strict(expr: Expr, spec: PartitionSpec, schema: Schema) -> Expr:
    """The strict projection of a filter bound to `schema` onto the partitions of a spec.

    The fields of the result are partition fields: their ids, and the types of their values.
    """
    targets = _targets(spec, schema)
    return map_leaves(
        expr, lambda leaf: or_(*(_strict(leaf, *pair) for pair in _usable(leaf, targets)))
    )


_Target = tuple[PartitionField, NestedField]

# What a comparison becomes under an order-preserving transform: the operation, and the distance
# that the value is moved first (x < 5 is x <= 4 for integers).
_INCLUSIVE_STEPS = {
    Operation.LT: (Operation.LT_EQ, -1),
    Operation.LT_EQ: (Operation.LT_EQ, 0),
    Operation.GT: (Operation.GT_EQ, 1),
    Operation.GT_EQ: (Operation.GT_EQ, 0),
    Operation.EQ: (Operation.IN, 0),
    Operation.IN: (Operation.IN, 0),
}
_STRICT_STEPS = {
    Operation.LT: (Operation.LT, 0),
    Operation.LT_EQ: (Operation.LT, 1),
    Operation.GT: (Operation.GT, 0),
    Operation.GT_EQ: (Operation.GT, -1),
    Operation.NOT_EQ: (Operation.NOT_IN, 0),
    Operation.NOT_IN: (Operation.NOT_IN, 0),
}
_Steps = dict[Operation, tuple[Operation, int]]


def _targets(spec: PartitionSpec, schema: Schema) -> list[_Target]:
    return list(zip(spec.fields, partition_type(spec, schema).fields, strict=True))


def _usable(predicate: BoundPredicate, targets: Iterable[_Target]) -> list[_Target]:
    """The partition fields through which a predicate can be projected."""
    return [
        (part, target)
        for part, target in targets
        if part.source_ids == (predicate.field_id,)
        and can_transform(part.transform, predicate.field_type)
    ]


def _inclusive(predicate: BoundPredicate, part: PartitionField, target: NestedField) -> Expr:
    return _projected(predicate, part.transform, target, _INCLUSIVE_STEPS) or TRUE


def _strict(predicate: BoundPredicate, part: PartitionField, target: NestedField) -> Expr:
    return _projected(predicate, part.transform, target, _STRICT_STEPS) or FALSE


def _projected(
    predicate: BoundPredicate, transform: Transform, target: NestedField, steps: _Steps
) -> Expr | None:
    source_type = predicate.field_type
    if isinstance(transform, VoidTransform | UnknownTransform):
        return None
    if isinstance(transform, IdentityTransform) or (
        isinstance(transform, DayTransform) and source_type == DATE
    ):
        return _on(target, predicate.op, predicate.values)
    if predicate.op in (Operation.IS_NULL, Operation.NOT_NULL):
        return _on(target, predicate.op)
    match transform:
        case BucketTransform():
            return _bucketed(predicate, transform, target, steps)
        case TruncateTransform(width) if source_type in (INT, LONG):
            return _truncated_integer(predicate, width, target, steps)
        case TruncateTransform() if isinstance(source_type, DecimalType):
            return _stepped(predicate, transform, target, steps, _decimal_neighbour)
        case TruncateTransform(width):
            return _truncated_text(predicate, width, target, steps)
        case _:
            return _off_by_one(_stepped(predicate, transform, target, steps, _integer_neighbour))


def _on(target: NestedField, op: Operation, values: Iterable[Any] = ()) -> BoundPredicate:
    return BoundPredicate(op, target.field_id, target.field_type, tuple(values))


def _bucketed(
    predicate: BoundPredicate, transform: Transform, target: NestedField, steps: _Steps
) -> Expr | None:
    op, _ = steps.get(predicate.op, (None, 0))
    if op is not Operation.IN and op is not Operation.NOT_IN:
        return None
    return _on(target, op, (apply(transform, predicate.field_type, v) for v in predicate.values))


def _stepped(
    predicate: BoundPredicate,
    transform: Transform,
    target: NestedField,
    steps: _Steps,
    neighbour: Callable[[IcebergType, Any, int], Any],
) -> BoundPredicate | None:
    """The projection through an order-preserving transform: a <= b implies T(a) <= T(b)."""
    if predicate.op not in steps:
        return None
    op, distance = steps[predicate.op]
    source_type = predicate.field_type
    return _on(
        target,
        op,
        (
            apply(transform, source_type, neighbour(source_type, value, distance))
            for value in predicate.values
        ),
    )


def _integer_neighbour(_: IcebergType, value: int, distance: int) -> int:
    return value + distance


def _decimal_neighbour(source_type: IcebergType, value: Any, distance: int) -> Any:
    assert isinstance(source_type, DecimalType)
    return from_unscaled(unscaled(value, source_type.scale) + distance, source_type.scale)


def _no_neighbour(_: IcebergType, value: Any, __: int) -> Any:
    return value


def _off_by_one(projected: BoundPredicate | None) -> Expr | None:
    """Allows for negative values v that are in the partition of v + 1."""
    if projected is None:
        return None
    op, values = projected.op, projected.values
    match op:
        case Operation.IN | Operation.NOT_IN:
            values = (*values, *(value + 1 for value in values if value < 0))
        case Operation.LT_EQ | Operation.GT:
            values = tuple(value + 1 if value < 0 else value for value in values)
    return BoundPredicate(op, projected.field_id, projected.field_type, values)


# Up to this width, remainder plus width fits into 32 bits.
_WIDEST_IN_ORDER = 2**30


def _truncated_integer(
    predicate: BoundPredicate, width: int, target: NestedField, steps: _Steps
) -> Expr | None:
    if predicate.op not in steps or width > _WIDEST_IN_ORDER:
        return None
    op, distance = steps[predicate.op]
    moved = [value + distance for value in predicate.values]
    # Not `apply`, which wraps around: only the true multiples are in order.
    values = [value - value % width for value in moved]
    wrapped = _wrapped_multiples(predicate.field_type, width)
    if wrapped and op is Operation.LT_EQ:
        return or_(_on(target, op, values), _on(target, Operation.IN, wrapped.values()))
    if wrapped and op is Operation.GT:
        return and_(_on(target, op, values), _on(target, Operation.NOT_IN, wrapped.values()))
    if op in SETS:
        values += [wrapped[value] for value in values if value in wrapped]
    return _on(target, op, values)


def _wrapped_multiples(source_type: IcebergType, width: int) -> dict[int, int]:
    """Multiples of the width below a type's minimum, with the values that they wrap around to."""
    # A long column may have been an int column when its files were written.
    multiples = {}
    for bits in (32,) if source_type == INT else (32, 64):
        lowest = -(2 ** (bits - 1))
        if lowest % width:
            multiples[lowest - lowest % width] = lowest - lowest % width + 2**bits
    return multiples


def _truncated_text(
    predicate: BoundPredicate, width: int, target: NestedField, steps: _Steps
) -> Expr | None:
    transform, inclusive = TruncateTransform(width), steps is _INCLUSIVE_STEPS
    if predicate.op not in (Operation.STARTS_WITH, Operation.NOT_STARTS_WITH):
        return _stepped(predicate, transform, target, steps, _no_neighbour)
    if len(predicate.value) <= width:
        return _on(target, predicate.op, predicate.values)
    cut = (predicate.value[:width],)
    if predicate.op is Operation.STARTS_WITH:
        return _on(target, Operation.EQ, cut) if inclusive else None
    return None if inclusive else _on(target, Operation.NOT_EQ, cut)
