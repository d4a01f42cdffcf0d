"""Evaluates filters on the metrics of files, and on the partition summaries of manifests.

Spec: Scan Planning, and Manifest Lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from icebergds.expr.bounds import Bounds, decode_bounds, is_floating, might_hold, must_hold
from icebergds.expr.evaluate import TRUE_OF_NAN
from icebergds.expr.nodes import BoundPredicate, Expr, Operation, evaluate
from icebergds.spec.manifest import DataFile, FieldSummary
from icebergds.spec.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from icebergds.spec.types import StructType, is_scalar

INHERITED = frozenset({ROW_ID.field_id, LAST_UPDATED_SEQUENCE_NUMBER.field_id})
"""Columns in which a stored null is read as a value inherited from the manifest entry (spec: Row
Lineage), so their metrics do not describe what is read."""


class ColumnMetrics(Protocol):
    """Counts and serialised bounds by field id, as `spec.manifest.DataFile` has them."""

    @property
    def record_count(self) -> int: ...
    @property
    def value_counts(self) -> Mapping[int, int]: ...
    @property
    def null_value_counts(self) -> Mapping[int, int]: ...
    @property
    def nan_value_counts(self) -> Mapping[int, int]: ...
    @property
    def lower_bounds(self) -> Mapping[int, bytes]: ...
    @property
    def upper_bounds(self) -> Mapping[int, bytes]: ...


def might_match(expr: Expr, metrics: ColumnMetrics) -> bool:
    """Whether a file may hold a row that a bound filter selects; False only if proven.

    A column without metrics may hold anything: if it is not in the file, its rows have the field's
    initial default or null.
    """
    if metrics.record_count <= 0:
        # Negative: unknown to the writer.
        return metrics.record_count < 0
    return evaluate(expr, lambda predicate: _might(predicate, metrics))


def must_match(expr: Expr, metrics: ColumnMetrics) -> bool:
    """Whether a bound filter selects every row of a file; True only if proven."""
    return metrics.record_count == 0 or evaluate(expr, lambda predicate: _must(predicate, metrics))


def _might(predicate: BoundPredicate, metrics: ColumnMetrics) -> bool:
    field_id, op = predicate.field_id, predicate.op
    if field_id in INHERITED:
        return True
    rows = metrics.record_count
    nulls, nans = _counts(predicate, metrics)
    match op:
        case Operation.IS_NULL:
            return nulls != 0
        case Operation.NOT_NULL:
            return nulls != rows
        case Operation.IS_NAN:
            return nulls != rows and nans != 0
        case Operation.NOT_NAN:
            return nans != rows
    if nulls == rows:
        return False
    if nans == rows:
        return op in TRUE_OF_NAN
    return might_hold(predicate, _bounds(predicate, metrics, nans))


def _must(predicate: BoundPredicate, metrics: ColumnMetrics) -> bool:
    field_id, op = predicate.field_id, predicate.op
    if field_id in INHERITED:
        return False
    rows = metrics.record_count
    nulls, nans = _counts(predicate, metrics)
    match op:
        case Operation.IS_NULL:
            return nulls == rows
        case Operation.NOT_NULL:
            return nulls == 0
        case Operation.IS_NAN:
            return nans == rows
        case Operation.NOT_NAN:
            return nans == 0 or nulls == rows
    if nulls != 0:
        return False
    return must_hold(predicate, _bounds(predicate, metrics, nans))


def _bounds(predicate: BoundPredicate, metrics: ColumnMetrics, nans: int | None) -> Bounds:
    return decode_bounds(
        predicate.field_type,
        metrics.lower_bounds.get(predicate.field_id),
        metrics.upper_bounds.get(predicate.field_id),
        nans == 0,
        metrics.file_format if isinstance(metrics, DataFile) else None,
    )


def _counts(predicate: BoundPredicate, metrics: ColumnMetrics) -> tuple[int | None, int | None]:
    """How many of a file's rows are null and NaN in a column; None if unknown."""
    field_id, rows = predicate.field_id, metrics.record_count
    # Counts of values are counts of rows only if there are as many values as rows. ORC writers
    # count fewer if a struct around the column is null, and columns inside lists have more.
    if rows <= 0 or metrics.value_counts.get(field_id) != rows:
        return None, None
    if not is_scalar(predicate.field_type):
        return None, None
    nans = metrics.nan_value_counts.get(field_id) if is_floating(predicate.field_type) else 0
    return metrics.null_value_counts.get(field_id), nans


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
        return summary is None or _summary_might(predicate, summary)

    return evaluate(expr, might)


def _summary_might(predicate: BoundPredicate, summary: FieldSummary) -> bool:
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
