"""Casts values from the type stored in a file to the type of the table's column.

Covers type promotion (spec: Schema Evolution) and the different ways writers store a type: time
units, time zone flags, unannotated binaries, large and view layouts, dictionaries. A cast is free
if the types already agree, and never loses or wraps a value silently.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.formats.arrow.arrays import storage
from icebergds.formats.arrow.types import is_binary, is_text
from icebergds.spec.types import ScalarType, TypeId

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def cast_stored(
    array: pa.Array, target: pa.DataType, field_type: ScalarType, where: str
) -> pa.Array:
    """Casts a scalar column to the Arrow type of its Iceberg type.

    Args:
        array: the values as read from the file.
        target: `to_arrow(field_type)`.
        field_type: the column's type in the table, not a struct, list, map or variant.
        where: the column and the file, for messages.

    Raises:
        CorruptFileError: the stored type cannot be read as `field_type`.
        InvalidDataError: a value does not fit `field_type`.
    """
    array = storage(array)
    stored = array.type
    if stored == target:
        return array
    if pa.types.is_null(stored):
        return pa.nulls(len(array), target)
    if not _is_readable(stored, field_type.type_id):
        raise CorruptFileError(
            f"{where}: the file stores {stored}, which cannot be read as {field_type}"
        )
    try:
        return _cast(array, target)
    except pa.ArrowInvalid as error:
        raise InvalidDataError(
            f"{where}: a value stored as {stored} does not fit {field_type}: {error}"
        ) from error


def _is_readable(stored: pa.DataType, wanted: TypeId) -> bool:
    """Whether a stored type can be read as a type of the table."""
    readable: bool
    match wanted:
        case TypeId.INT:
            readable = pa.types.is_integer(stored)
        # The number beneath, of whatever unit, as Java reads it.
        case TypeId.LONG:
            readable = pa.types.is_integer(stored) or pa.types.is_time64(stored)
        case TypeId.FLOAT:
            readable = pa.types.is_float16(stored)
        case TypeId.DOUBLE:
            readable = pa.types.is_floating(stored)
        case TypeId.DECIMAL:
            readable = pa.types.is_decimal(stored)
        case TypeId.DATE:
            readable = pa.types.is_date(stored)
        case TypeId.TIME:
            readable = pa.types.is_time(stored) or stored == pa.int64()
        # Dates are promoted only to timestamps without time zone.
        case TypeId.TIMESTAMP | TypeId.TIMESTAMP_NS:
            readable = pa.types.is_timestamp(stored) or pa.types.is_date(stored)
        case TypeId.TIMESTAMPTZ | TypeId.TIMESTAMPTZ_NS:
            readable = pa.types.is_timestamp(stored)
        case TypeId.FIXED | TypeId.UUID:
            readable = is_binary(stored)
        # Of bytes of a fixed length Java makes the text of a UUID, or none.
        case TypeId.STRING if pa.types.is_fixed_size_binary(stored):
            readable = False
        case TypeId.STRING | TypeId.BINARY | TypeId.GEOMETRY | TypeId.GEOGRAPHY:
            readable = is_binary(stored) or is_text(stored)
        case _:
            readable = False
    return readable


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    stored = array.type
    if pa.types.is_timestamp(stored):
        return _rescale(array.view(pa.int64()), stored.unit, target.unit).view(target)
    if pa.types.is_time64(stored) and target == pa.int64():
        return array.view(target)
    if pa.types.is_time64(stored):
        return _rescale(array.view(pa.int64()), stored.unit, target.unit).view(target)
    if stored == pa.int64() and pa.types.is_time64(target):
        return array.view(target)
    return array.cast(target)


def _rescale(counts: pa.Int64Array, stored: str, wanted: str) -> pa.Int64Array:
    """Converts counts from one time unit to another; to a coarser one, rounds down."""
    if _PER_SECOND[wanted] >= _PER_SECOND[stored]:
        factor = _PER_SECOND[wanted] // _PER_SECOND[stored]
        return counts if factor == 1 else pc.multiply_checked(counts, factor)
    divisor = _PER_SECOND[stored] // _PER_SECOND[wanted]
    floored = np.floor_divide(counts.fill_null(0).to_numpy(), divisor)
    return pa.array(floored, pa.int64(), mask=counts.is_null().to_numpy(zero_copy_only=False))
