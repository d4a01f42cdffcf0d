"""Prunes the entries of a manifest column by column, before creating objects for them.

Gives the results of `expr.metrics.might_match`; predicates that numpy and Arrow cannot evaluate
keep all entries here, and `might_match` itself evaluates them afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.expr.bounds import FIRST_GREGORIAN, is_floating
from icebergds.expr.metrics import INHERITED, might_match
from icebergds.expr.nodes import (
    TRUE,
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundPredicate,
    Expr,
    Operation,
    Or,
    bound_expected,
)
from icebergds.formats.manifests.bound_values import NUMBERS, decode_numbers
from icebergds.formats.manifests.contradicted import contradicted
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.spec.manifest import FileFormat, ManifestEntry
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.types import TypeId, is_scalar

_Mask = npt.NDArray[np.bool_]
_Counts = npt.NDArray[np.int64]
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Pruned:
    """The entries of a manifest whose files may have matching rows, and how many were skipped.

    Attributes:
        by_partition, by_metrics: the number of files skipped by their partition values, and by
            the counts and bounds of their columns.
        contradicted: for each entry, whether partition columns have values other than the
            partition's (see `contradicted`); empty if there is no such file.
        beyond: how many of these the partition filter does not select.
    """

    entries: list[ManifestEntry]
    by_partition: int = 0
    by_metrics: int = 0
    contradicted: tuple[bool, ...] = ()
    beyond: int = 0


def matching_entries(
    columns: EntryColumns, partition_filter: Expr, row_filter: Expr
) -> list[ManifestEntry]:
    """The entries that `prune_entries` keeps if no file contradicts its partition."""
    if partition_filter != TRUE:
        columns = columns.filter(columns.in_partitions(partition_filter))
    return _matching_metrics(columns, row_filter)


def prune_entries(
    columns: EntryColumns, partition_filter: Expr, row_filter: Expr, spec: PartitionSpec
) -> Pruned:
    """The live entries whose files may have rows that match.

    Args:
        partition_filter: bound to the partition type of the manifest's spec.
        row_filter: bound to the table's schema; `columns` has the metrics of its columns.
        spec: the manifest's partition spec.
    """
    listed = len(columns)
    odd = contradicted(columns, spec)
    beyond: list[ManifestEntry] = []
    if partition_filter != TRUE:
        in_partition = columns.in_partitions(partition_filter)
        if (outside := odd & ~in_partition).any():
            beyond = _matching_metrics(columns.filter(outside), row_filter)
        columns, odd = columns.filter(in_partition), odd[in_partition]
    in_partitions = len(columns)
    if odd.any():
        kept = _matching_metrics(columns.filter(~odd), row_filter)
        others = _matching_metrics(columns.filter(odd), row_filter)
    else:
        kept, others = _matching_metrics(columns, row_filter), []
    by_metrics = in_partitions - len(kept) - len(others)
    by_partition = listed - in_partitions - len(beyond)
    flags = (False,) * len(kept) + (True,) * (len(others) + len(beyond))
    return Pruned(
        [*kept, *others, *beyond] if any(flags) else kept,
        by_partition,
        by_metrics,
        flags if any(flags) else (),
        len(beyond),
    )


def _matching_metrics(columns: EntryColumns, row_filter: Expr) -> list[ManifestEntry]:
    if row_filter == TRUE or not len(columns):
        return columns.entries()
    metrics = _MetricsMask(columns)
    rows = columns.record_count
    # A negative count is unknown.
    columns = columns.filter((metrics.evaluate(row_filter) & (rows > 0)) | (rows < 0))
    entries = columns.entries()
    if metrics.is_exact:
        return entries
    return [entry for entry in entries if might_match(row_filter, entry.data_file)]


def _as_counts(values: pa.Array) -> _Counts:
    """Counts, with -1 for unknown ones."""
    counts: _Counts = pc.fill_null(values, _UNKNOWN).to_numpy(zero_copy_only=False)
    return counts


@dataclass(slots=True)
class _MetricsMask:
    """Evaluates a filter over the metrics of many files at once."""

    columns: EntryColumns
    is_exact: bool = True
    _counts: dict[int, tuple[_Counts, _Counts]] = field(default_factory=dict)

    def evaluate(self, expr: Expr) -> _Mask:
        match expr:
            case AlwaysTrue():
                return np.ones(len(self.columns), np.bool_)
            case AlwaysFalse():
                return np.zeros(len(self.columns), np.bool_)
            case And(left, right):
                return self.evaluate(left) & self.evaluate(right)
            case Or(left, right):
                return self.evaluate(left) | self.evaluate(right)
            case BoundPredicate():
                return self._predicate(expr)
            case _:
                raise bound_expected(expr)

    def _predicate(self, predicate: BoundPredicate) -> _Mask:
        rows = self.columns.record_count
        if predicate.field_id in INHERITED:
            return np.ones(len(rows), np.bool_)
        nulls, nans = self._known_counts(predicate)
        match predicate.op:
            case Operation.IS_NULL:
                return _mask(nulls != 0)
            case Operation.NOT_NULL:
                return _mask(nulls != rows)
            case Operation.IS_NAN:
                return _mask((nulls != rows) & (nans != 0))
            case Operation.NOT_NAN:
                return _mask(nans != rows)
        only_nulls = (nulls == rows) & (rows > 0)
        only_nans = (nans == rows) & (rows > 0)
        nan_matters = predicate.op in (Operation.GT, Operation.GT_EQ)
        by_bounds = self._by_bounds(predicate)
        if is_floating(predicate.field_type) and nan_matters:
            by_bounds |= nans != 0
        elif is_floating(predicate.field_type) and predicate.op in (
            Operation.LT,
            Operation.LT_EQ,
            Operation.EQ,
            Operation.IN,
        ):
            by_bounds &= ~only_nans
        return _mask(by_bounds & ~only_nulls)

    def _known_counts(self, predicate: BoundPredicate) -> tuple[_Counts, _Counts]:
        """Null and NaN counts of each file, -1 if not known (see `expr.metrics`)."""
        known = self._counts.get(predicate.field_id)
        if known is not None:
            return known
        rows = self.columns.record_count
        stats = self.columns.stats[predicate.field_id]
        usable = (_as_counts(stats.value_count) == rows) & (rows > 0)
        if not is_scalar(predicate.field_type):
            usable[:] = False
        nulls = np.where(usable, _as_counts(stats.null_value_count), _UNKNOWN)
        nans = (
            np.where(usable, _as_counts(stats.nan_value_count), _UNKNOWN)
            if is_floating(predicate.field_type)
            else np.where(usable, 0, _UNKNOWN)
        )
        self._counts[predicate.field_id] = (nulls, nans)
        return nulls, nans

    def _by_bounds(self, predicate: BoundPredicate) -> _Mask:
        type_id = getattr(predicate.field_type, "type_id", None)
        stats = self.columns.stats[predicate.field_id]
        if type_id in NUMBERS:
            widths = NUMBERS[type_id]
            lower, has_lower = decode_numbers(stats.lower_bound, widths)
            upper, has_upper = decode_numbers(stats.upper_bound, widths)
            # Bounds of another width may be from before a type promotion.
            odd = _is_valid(stats.lower_bound) & ~has_lower
            odd |= _is_valid(stats.upper_bound) & ~has_upper
            self.is_exact &= not odd.any()
            if predicate.field_type in FIRST_GREGORIAN:
                # As in `decode_bounds`.
                first, others = FIRST_GREGORIAN[predicate.field_type], ~self._is_orc()
                has_lower &= others | (lower >= first)
                has_upper &= others | (upper >= first)
            return self._by_numbers(predicate, lower, has_lower, upper, has_upper) | odd
        if type_id is TypeId.STRING:
            return self._by_text(predicate, stats.lower_bound, stats.upper_bound)
        self.is_exact = False
        return np.ones(len(self.columns), np.bool_)

    def _is_orc(self) -> _Mask:
        return _mask(np.asarray(pc.equal(self.columns.file_format, FileFormat.ORC)))

    def _by_numbers(
        self,
        predicate: BoundPredicate,
        lower: npt.NDArray[Any],
        has_lower: _Mask,
        upper: npt.NDArray[Any],
        has_upper: _Mask,
    ) -> _Mask:
        # If a bound is NaN, or lower is above upper, both are ignored.
        broken = (has_lower & (lower != lower)) | (has_upper & (upper != upper))
        broken |= has_lower & has_upper & (lower > upper)
        has_lower, has_upper = has_lower & ~broken, has_upper & ~broken
        match predicate.op:
            case Operation.LT:
                return _mask(~has_lower | (lower < predicate.value))
            case Operation.LT_EQ:
                return _mask(~has_lower | (lower <= predicate.value))
            case Operation.GT:
                return _mask(~has_upper | (upper > predicate.value))
            case Operation.GT_EQ:
                return _mask(~has_upper | (upper >= predicate.value))
            case Operation.EQ | Operation.IN:
                values = np.array(predicate.values, dtype=lower.dtype)
                first = np.where(has_lower, np.searchsorted(values, lower, "left"), 0)
                last = np.where(has_upper, np.searchsorted(values, upper, "right"), len(values))
                return _mask(first < last)
            case Operation.NOT_EQ | Operation.NOT_IN if not is_floating(predicate.field_type):
                values = np.array(predicate.values, dtype=lower.dtype)
                single = has_lower & has_upper & (lower == upper)
                return _mask(~(single & np.isin(lower, values)))
            case _:
                self.is_exact = False
                return np.ones(len(self.columns), np.bool_)

    def _by_text(self, predicate: BoundPredicate, lower: pa.Array, upper: pa.Array) -> _Mask:
        def at_most(value: str) -> _Mask:
            return _or_unknown(pc.less_equal(lower, pa.scalar(value.encode(), pa.binary())))

        def at_least(value: str) -> _Mask:
            return _or_unknown(pc.greater_equal(upper, pa.scalar(value.encode(), pa.binary())))

        # `might_match` decides on crossed and equal bounds.
        self.is_exact = False
        if not (_is_text(lower) and _is_text(upper)):
            return np.ones(len(self.columns), np.bool_)
        match predicate.op:
            case Operation.LT | Operation.LT_EQ:
                return at_most(predicate.value) | _crossed(lower, upper)
            case Operation.GT | Operation.GT_EQ:
                return at_least(predicate.value) | _crossed(lower, upper)
            case Operation.EQ | Operation.IN if predicate.values:
                within = at_most(predicate.values[-1]) & at_least(predicate.values[0])
                return within | _crossed(lower, upper)
            case Operation.STARTS_WITH:
                prefix = predicate.value.encode()
                begins = _or_unknown(pc.starts_with(lower, prefix))
                within = (at_most(predicate.value) | begins) & at_least(predicate.value)
                return within | _crossed(lower, upper)
            case _:
                return np.ones(len(self.columns), np.bool_)


def _mask(values: Any) -> _Mask:
    mask: _Mask = values
    return mask


def _or_unknown(values: pa.Array) -> _Mask:
    mask: _Mask = pc.fill_null(values, True).to_numpy(zero_copy_only=False)
    return mask


def _is_valid(bounds: pa.Array) -> _Mask:
    mask: _Mask = bounds.is_valid().to_numpy(zero_copy_only=False)
    return mask


def _is_text(bounds: pa.Array) -> bool:
    try:
        bounds.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _crossed(lower: pa.Array, upper: pa.Array) -> _Mask:
    mask: _Mask = pc.fill_null(pc.greater(lower, upper), False).to_numpy(zero_copy_only=False)
    return mask
