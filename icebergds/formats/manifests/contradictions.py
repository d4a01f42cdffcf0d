"""Finds data files that have other values of a partition column than their partition says.

Some imports take an identity partition from the name of a folder, though its files have the column,
too. What a file has is read (spec: Column Projection), so such a partition decides nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.manifests.bound_values import NUMBERS, decode_numbers
from icebergds.formats.manifests.columns import ColumnStats, EntryColumns
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import DOUBLE, FLOAT, STRING, IcebergType, is_scalar

_Mask = npt.NDArray[np.bool_]


def contradicting(columns: EntryColumns, spec: PartitionSpec) -> _Mask:
    """Marks entries whose column statistics contradict their partition.

    Numbers, dates, times and texts are compared, as far as `columns` has their statistics.

    Args:
        spec: the partition spec of the entries.
    """
    found = np.zeros(len(columns), np.bool_)
    values_of = {
        part.field_id: (part.field_type, values)
        for part, values in zip(columns.partition_type.fields, columns.partition, strict=True)
    }
    for part in spec.fields:
        stats = columns.stats.get(part.source_id)
        if stats is None or not isinstance(part.transform, IdentityTransform):
            continue
        field_type, values = values_of[part.field_id]
        present = _known(values.is_valid())
        has_nulls = _known(pc.greater(stats.null_value_count, 0))
        # Counts of another number of values than of rows are not those of a column of the file.
        is_counted = _known(pc.equal(stats.value_count, pa.array(columns.record_count)))
        below, above, differ, bounded = _compared(field_type, values, stats)
        found |= present & (below | above | differ | (has_nulls & is_counted))
        found |= ~present & bounded
    return found


def _compared(
    field_type: IcebergType, values: pa.Array, stats: ColumnStats
) -> tuple[_Mask, _Mask, _Mask, _Mask]:
    """Whether values are below and above the bounds, these differ, and there are any."""
    nothing = np.zeros(len(values), np.bool_)
    lower, upper = stats.lower_bound, stats.upper_bound
    if field_type == STRING:
        octets = values.cast(pa.binary())
        below, above = _known(pc.less(octets, lower)), _known(pc.greater(octets, upper))
        # Truncated, both are no longer the value, and the lower one is shorter.
        is_value = pc.or_(pc.equal(octets, lower), pc.equal(octets, upper))
        is_long = pc.greater_equal(pc.binary_length(lower), pc.binary_length(octets))
        differ = pc.and_(pc.not_equal(lower, upper), pc.or_(is_value, is_long))
        return below, above, _known(differ), _known(pc.or_(lower.is_valid(), upper.is_valid()))
    # Zeros have two signs, and bounds do not tell NaN.
    if not is_scalar(field_type) or field_type in (FLOAT, DOUBLE):
        return nothing, nothing, nothing, nothing
    kinds = NUMBERS.get(field_type.type_id)
    if kinds is None:
        return nothing, nothing, nothing, nothing
    least, has_least = decode_numbers(lower, kinds)
    greatest, has_greatest = decode_numbers(upper, kinds)
    numbers = _numbers(values, least.dtype)
    return (
        has_least & (numbers < least),
        has_greatest & (numbers > greatest),
        has_least & has_greatest & (least < greatest),
        has_least | has_greatest,
    )


def _numbers(values: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = pc.fill_null(values.cast(pa.from_numpy_dtype(dtype)), 0).to_numpy(
        zero_copy_only=False
    )
    return numbers


def _known(mask: pa.Array) -> _Mask:
    known: _Mask = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return known
