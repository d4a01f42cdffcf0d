"""Finds files that store other values in partition columns than their partitions have.

Java's `add_files` lists such files: their partition is that of their folder. The values that count
are those in the file (spec: Column Projection), so what the partition says must not be used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.expr.bounds import FIRST_GREGORIAN
from icebergds.formats.arrow.arrays import storage
from icebergds.formats.manifests.bound_values import NUMBERS, decode_bound_column, decode_numbers
from icebergds.formats.manifests.columns import ColumnStats, EntryColumns
from icebergds.spec.manifest import FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import FixedType, IcebergType, TypeId, is_scalar

_Mask = npt.NDArray[np.bool_]

# Bounds of these may be shortened, or are compared by their bytes.
_OF_BYTES = frozenset({TypeId.STRING, TypeId.BINARY})
# Bounds of ORC files are rounded to milliseconds, and by some writers to the one beyond.
_WITHIN_TWO_MILLISECONDS = {
    TypeId.TIMESTAMP: 1_999,
    TypeId.TIMESTAMPTZ: 1_999,
    TypeId.TIMESTAMP_NS: 1_999_999,
    TypeId.TIMESTAMPTZ_NS: 1_999_999,
}


def contradicted(columns: EntryColumns, spec: PartitionSpec) -> _Mask:
    """Marks the entries of which some row must have another value than the partition.

    Only identity partition columns are compared, and of these the ones whose statistics were read.
    Files without statistics of a column, which may not store it, do not contradict.

    Args:
        spec: that of the entries.
    """
    mask = np.zeros(len(columns), np.bool_)
    if not len(columns):
        return mask
    by_id = {
        part.field_id: (part.field_type, values)
        for part, values in zip(columns.partition_type.fields, columns.partition, strict=True)
    }
    is_orc = _mask(pc.equal(columns.file_format, FileFormat.ORC))
    for part in spec.fields:
        if not isinstance(part.transform, IdentityTransform) or part.field_id not in by_id:
            continue
        field_type, values = by_id[part.field_id]
        stats = columns.stats.get(part.source_id)
        if stats is not None and is_scalar(field_type):
            mask |= _differ(field_type, values, stats, is_orc)
    return mask


def _differ(field_type: IcebergType, values: pa.Array, stats: ColumnStats, is_orc: _Mask) -> _Mask:
    is_null = ~_mask(values.is_valid())
    lower, upper = stats.lower_bound, stats.upper_bound
    has_values = _mask(lower.is_valid()) | _mask(upper.is_valid())
    has_values |= _mask(pc.greater(stats.value_count, stats.null_value_count))
    has_nulls = _mask(pc.greater(stats.null_value_count, 0))
    differ = has_nulls | _bounds_differ(field_type, values, lower, upper, is_orc)
    if pa.types.is_floating(values.type):
        differ |= _mask(pc.greater(stats.nan_value_count, 0)) & ~_mask(pc.is_nan(values))
    return np.where(is_null, has_values, differ)


def _bounds_differ(
    field_type: IcebergType, values: pa.Array, lower: pa.Array, upper: pa.Array, is_orc: _Mask
) -> _Mask:
    type_id = getattr(field_type, "type_id", None)
    if type_id in NUMBERS:
        return _numbers_differ(field_type, values, lower, is_orc, is_lower=True) | _numbers_differ(
            field_type, values, upper, is_orc, is_lower=False
        )
    if type_id is TypeId.UUID:
        return _uuids_differ(storage(values), lower, upper)
    if type_id in _OF_BYTES or isinstance(field_type, FixedType):
        return _bytes_differ(storage(values).cast(pa.binary()), lower, upper)
    mask = np.zeros(len(values), np.bool_)
    for bounds in (lower, upper):
        mask |= _mask(pc.not_equal(decode_bound_column(field_type, bounds), values))
    return mask


def _numbers_differ(
    field_type: IcebergType, values: pa.Array, bounds: pa.Array, is_orc: _Mask, *, is_lower: bool
) -> _Mask:
    type_id: TypeId = field_type.type_id  # type: ignore[union-attr]
    found, known = decode_numbers(bounds, NUMBERS[type_id])
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if type_id is TypeId.DATE else pa.int64())
    own: npt.NDArray[Any] = values.fill_null(0).to_numpy(zero_copy_only=False)
    if field_type in FIRST_GREGORIAN:
        # Those of imported files may be of the Julian calendar.
        known &= ~(is_orc & (found < FIRST_GREGORIAN[field_type]))
    if np.issubdtype(found.dtype, np.floating):
        return np.asarray(known & (found == found) & (found != own))
    least, greatest = (found, own) if is_lower else (own, found)
    distance = greatest.astype(np.int64).view(np.uint64) - least.astype(np.int64).view(np.uint64)
    slack = np.uint64(_WITHIN_TWO_MILLISECONDS.get(type_id, 0))
    return np.asarray(known & ((least > greatest) | (distance > slack)))


def _bytes_differ(values: pa.Array, lower: pa.Array, upper: pa.Array) -> _Mask:
    """Whether bounds are neither the values nor, as far as one can tell, shortened from them."""
    below = _mask(pc.not_equal(lower, values))
    above = _mask(pc.not_equal(upper, values))
    if not (below.any() or above.any()):
        return below
    # Both bounds of a value are shortened, the upper one to a greater value, or left out.
    is_cut = below & _are_prefixes(lower, values)
    above &= ~((is_cut | ~_mask(lower.is_valid())) & _mask(pc.greater(upper, values)))
    return (below & ~is_cut) | above


def _uuids_differ(values: pa.Array, lower: pa.Array, upper: pa.Array) -> _Mask:
    """Whether bounds are neither the values nor these rounded to a next first half, as written."""
    full = values.fill_null(bytes(16))
    halves = np.frombuffer(full.buffers()[1], ">u8", 2 * len(full), 16 * full.offset)
    mask = np.zeros(len(values), np.bool_)
    for bounds, step in ((lower, -1), (upper, 1)):
        rounded = np.zeros_like(halves)
        rounded[::2] = halves[::2].astype(np.uint64) + np.uint64(step % (1 << 64))
        next_halves = pa.Array.from_buffers(
            pa.binary(16), len(full), [None, pa.py_buffer(rounded.tobytes())]
        )
        is_own = _mask(pc.equal(bounds, values.cast(pa.binary())))
        is_own |= _mask(pc.equal(bounds, next_halves.cast(pa.binary())))
        mask |= _mask(bounds.is_valid()) & _mask(values.is_valid()) & ~is_own
    return mask


def _are_prefixes(shorter: pa.Array, values: pa.Array) -> _Mask:
    mask = np.zeros(len(values), np.bool_)
    lengths = pc.binary_length(shorter)
    for length in pc.unique(lengths.drop_null()).to_pylist():
        rows = np.flatnonzero(_mask(pc.equal(lengths, length)))
        start = pc.binary_slice(values.take(rows), 0, length)
        mask[rows] = _mask(pc.equal(start, shorter.take(rows)))
    return mask


def _mask(values: pa.Array) -> _Mask:
    """A mask of Arrow's booleans; null counts as false."""
    mask: _Mask = values.fill_null(False).to_numpy(zero_copy_only=False)
    return mask
