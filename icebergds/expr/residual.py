"""Computes residuals: what is left of a filter in one partition (spec: Scan Planning, note 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icebergds.expr.evaluate import matches
from icebergds.expr.nodes import (
    FALSE,
    TRUE,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundPredicate,
    Expr,
    Or,
    and_,
    bound_expected,
    conjuncts,
    disjuncts,
    or_,
)
from icebergds.expr.project import project, project_strict
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema


def residual(expr: Expr, spec: PartitionSpec, schema: Schema, partition: tuple[Any, ...]) -> Expr:
    """Simplifies a filter bound to `schema` for the rows of one partition.

    `partition` holds one in-memory value per field of `spec`. The residual selects the same rows of
    the partition, without the predicates that the partition values decide: it is TRUE if they
    select all rows and FALSE if they select none.
    """
    return residual_evaluator(expr, spec, schema)(partition)


def residual_evaluator(
    expr: Expr, spec: PartitionSpec, schema: Schema
) -> Callable[[tuple[Any, ...]], Expr]:
    """Returns `residual` as a function of the partition, for use on many partitions.

    The filter is projected only once.
    """
    positions = {part.field_id: position for position, part in enumerate(spec.fields)}
    return _evaluator(expr, spec, schema, positions)


def _evaluator(
    expr: Expr, spec: PartitionSpec, schema: Schema, positions: dict[int, int]
) -> Callable[[tuple[Any, ...]], Expr]:
    match expr:
        case And():
            parts = [_evaluator(part, spec, schema, positions) for part in conjuncts(expr)]
            return lambda partition: and_(*(part(partition) for part in parts))
        case Or():
            parts = [_evaluator(part, spec, schema, positions) for part in disjuncts(expr)]
            return lambda partition: or_(*(part(partition) for part in parts))
        case BoundPredicate():
            return _predicate_evaluator(expr, spec, schema, positions)
        case AlwaysTrue() | AlwaysFalse():
            return lambda _: expr
        case _:
            raise bound_expected(expr)


def _predicate_evaluator(
    predicate: BoundPredicate, spec: PartitionSpec, schema: Schema, positions: dict[int, int]
) -> Callable[[tuple[Any, ...]], Expr]:
    inclusive = project(predicate, spec, schema)
    strict = project_strict(predicate, spec, schema)
    if inclusive == TRUE and strict == FALSE:
        return lambda _: predicate

    def evaluate(partition: tuple[Any, ...]) -> Expr:
        def value_of(field_id: int) -> Any:
            return partition[positions[field_id]]

        if matches(strict, value_of):
            return TRUE
        return predicate if matches(inclusive, value_of) else FALSE

    return evaluate
