"""Converts dates of the hybrid calendar, which is Julian until 1582, to the Gregorian calendar.

Iceberg's dates are Gregorian throughout. Hive and Spark write hybrid ones to ORC, and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icebergds.formats.data_file.file_schema import FileColumn
from icebergds.formats.orc.leaves import leaves_of, with_leaves
from icebergds.spec.values.dates import FIRST_GREGORIAN_DAY, MICROS_PER_DAY

Days = np.ndarray[Any, np.dtype[np.int64]]

# 0000-03-01 of the Julian calendar, in days since 1970.
_JULIAN_ORIGIN = -719_470


def to_gregorian(columns: Sequence[FileColumn], arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Arrays with the same dates and times of day in the Gregorian calendar.

    Julian leap days that the Gregorian calendar lacks become the first of March.

    Args:
        columns: describe the arrays.
        arrays: with dates, and timestamps in microseconds or nanoseconds, of the hybrid calendar.
    """
    replaced = {
        leaf: converted
        for leaf, array in leaves_of(columns, arrays)
        if (converted := _converted(array)) is not None
    }
    return [with_leaves(array, col, replaced) for array, col in zip(arrays, columns, strict=True)]


def _converted(array: pa.Array) -> pa.Array | None:
    """The array with other days; None if none of its values is affected."""
    if pa.types.is_date32(array.type):
        per_day, width = 1, pa.int32()
    elif pa.types.is_timestamp(array.type) and array.type.unit == "us":
        per_day, width = MICROS_PER_DAY, pa.int64()
    else:
        # Timestamps in nanoseconds begin in 1677.
        return None
    counts = array.view(width).fill_null(0).to_numpy()
    early = counts < FIRST_GREGORIAN_DAY * per_day
    if not early.any():
        return None
    out = counts.copy()
    days = counts[early].astype(np.int64) // per_day
    out[early] += (_shifts(days) * per_day).astype(counts.dtype)
    mask = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(out, width, mask=mask).view(array.type)


def _shifts(days: Days) -> Days:
    """By how many days a Julian date is later in the Gregorian calendar.

    Years begin in March, so that a leap day ends one: then a shift holds for whole years.
    """
    year = (4 * (days - _JULIAN_ORIGIN) + 3) // 1461
    shifts: Days = 2 - year // 100 + year // 400
    return shifts
