"""Evaluates filters on the partition summaries of manifests (spec: Manifest Lists)."""

from __future__ import annotations

from collections.abc import Sequence

from icebergds.expr.bounds import decode_bounds, might_hold
from icebergds.expr.nodes import BoundPredicate, Expr, Operation, evaluate
from icebergds.spec.manifest import FieldSummary
from icebergds.spec.types import StructType


def manifest_might_match(
    expr: Expr, partition_type: StructType, summaries: Sequence[FieldSummary]
) -> bool:
    """Whether a manifest may track a file whose partition a filter selects; False only if proven.

    `expr` is a filter on partition values, from `project.project`; `summaries` are in the order of
    the fields of `partition_type`, and there may be fewer, or none.
    """
    by_id = {
        field.field_id: summary
        for field, summary in zip(partition_type.fields, summaries, strict=False)
    }

    def might(predicate: BoundPredicate) -> bool:
        summary = by_id.get(predicate.field_id)
        return summary is None or _might(predicate, summary)

    return evaluate(expr, might)


def _might(predicate: BoundPredicate, summary: FieldSummary) -> bool:
    match predicate.op:
        case Operation.IS_NULL:
            return summary.contains_null is not False
        case Operation.IS_NAN:
            return summary.contains_nan is not False
        case Operation.NOT_NULL | Operation.NOT_NAN:
            # Missing bounds do not prove that all values are null: not all writers store them.
            return True
    bounds = decode_bounds(
        predicate.field_type,
        summary.lower_bound,
        summary.upper_bound,
        summary.contains_nan is False,
    )
    return might_hold(predicate, bounds)
