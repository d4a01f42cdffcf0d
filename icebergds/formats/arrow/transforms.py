"""Applies partition transforms to Arrow arrays (spec: Partition Transforms, Appendix B).

The results are those of `spec.transforms.apply` on each value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError, UnsupportedFeatureError
from icebergds.formats.arrow.arrays import validity
from icebergds.formats.arrow.murmur3 import hash_longs, hash_slices
from icebergds.formats.arrow.types import to_arrow
from icebergds.spec.transforms import (
    KNOWN_TRANSFORMS,
    MAX_WIDTH,
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    can_transform,
    result_type,
)
from icebergds.spec.types import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
)
from icebergds.spec.values.dates import MICROS_PER_DAY, MICROS_PER_HOUR, NANOS_PER_MICRO

_Ints = npt.NDArray[Any]
_NANO_TYPES = (TIMESTAMP_NS, TIMESTAMPTZ_NS)


def apply_transform(transform: Transform, source_type: IcebergType, array: pa.Array) -> pa.Array:
    """The partition values of a column; null for null.

    Args:
        transform: any but an unknown one.
        source_type: the column's type.
        array: its values, of the Arrow type `to_arrow(source_type)`.

    Returns:
        An array of the Arrow type of `result_type(transform, source_type)`.

    Raises:
        InvalidDataError: the transform does not accept the type, or a partition value does not fit
            its type.
        UnsupportedFeatureError: the transform is unknown, or its width exceeds 31 bits.
    """
    if isinstance(transform, UnknownTransform):
        raise UnsupportedFeatureError(
            f"transform {transform.text!r} is unknown: expected {KNOWN_TRANSFORMS}; replace it in "
            "the table's partition spec or sort order"
        )
    if not can_transform(transform, source_type):
        raise InvalidDataError(f"transform {transform} does not accept type {source_type}")
    target = to_arrow(result_type(transform, source_type))
    match transform:
        case IdentityTransform():
            return array
        case VoidTransform():
            return pa.nulls(len(array), target)
        case BucketTransform(num_buckets=num_buckets):
            count = np.int32(_checked_width(transform, num_buckets))
            return _with_validity_of(array, target, _buckets(_hashes(source_type, array), count))
        case TruncateTransform(width=width):
            return _truncated(source_type, array, _checked_width(transform, width))
        case HourTransform():
            hours = _micros(source_type, array) // MICROS_PER_HOUR
            return _with_nulls_of(array, target, hours)
        case DayTransform():
            return _with_nulls_of(array, target, _days(source_type, array))
        case MonthTransform():
            return _with_nulls_of(array, target, _calendar(source_type, array, "M"))
        case YearTransform():
            return _with_nulls_of(array, target, _calendar(source_type, array, "Y"))


def _checked_width(transform: Transform, width: int) -> int:
    if width > MAX_WIDTH:
        raise UnsupportedFeatureError(
            f"transform {transform}: the width exceeds 31 bits; choose a smaller width in the "
            "table's partition spec or sort order"
        )
    return width


def _with_nulls_of(array: pa.Array, target: pa.DataType, values: _Ints) -> pa.Array:
    """Results as 32-bit integers, with the nulls of the source array."""
    narrow = values.astype(np.int32)
    if (narrow != values).any():
        raise InvalidDataError("a partition value does not fit into 32 bits")
    return _with_validity_of(array, target, narrow)


def _with_validity_of(
    array: pa.Array, target: pa.DataType, values: npt.NDArray[np.int32]
) -> pa.Array:
    return pa.Array.from_buffers(
        target, len(array), [validity(array), pa.py_buffer(values)], array.null_count
    )


def _buckets(hashes: npt.NDArray[np.uint32], count: np.int32) -> npt.NDArray[np.int32]:
    """The hashes without their sign bit, modulo `count`; overwrites the hashes."""
    hashes &= np.uint32(2**31 - 1)
    buckets = hashes.view(np.int32)
    # numpy vectorises division by a scalar, but not the remainder.
    multiples = buckets // count
    multiples *= count
    buckets -= multiples
    return buckets


def _integers(array: pa.Array) -> _Ints:
    """Integers, dates, times or timestamps as integers of the same width, 0 for null."""
    width = array.type.bit_width // 8
    plain = array.view(pa.int32() if width == 4 else pa.int64())
    return np.asarray(plain.fill_null(0) if plain.null_count else plain)


def _micros(source_type: IcebergType, array: pa.Array) -> _Ints:
    counts = _integers(array)
    return counts // NANOS_PER_MICRO if source_type in _NANO_TYPES else counts


def _days(source_type: IcebergType, array: pa.Array) -> _Ints:
    if source_type == DATE:
        return _integers(array)
    return _micros(source_type, array) // MICROS_PER_DAY


def _calendar(source_type: IcebergType, array: pa.Array, unit: str) -> _Ints:
    """Years (Y) or months (M) since 1970."""
    days = _days(source_type, array).astype("datetime64[D]")
    return days.astype(f"datetime64[{unit}]").astype(np.int64)


def _hashes(source_type: IcebergType, array: pa.Array) -> npt.NDArray[np.uint32]:
    match source_type:
        case DecimalType():
            return _decimal_hashes(array)
        case FixedType(length=length):
            return _fixed_hashes(array, length)
        case _ if source_type == UUID:
            return _fixed_hashes(array, 16)
        case _ if source_type in (STRING, BINARY):
            offsets = np.frombuffer(array.buffers()[1] or bytes(4), np.int32)
            bounds = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
            first = bounds[0] if len(bounds) else 0
            data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
            used = data[first : bounds[-1]] if len(bounds) else data[:0]
            return hash_slices(used, bounds[:-1] - first, np.diff(bounds))
        case _:
            return hash_longs(_micros(source_type, array).astype(np.int64, copy=False))


def _fixed_hashes(array: pa.Array, length: int) -> npt.NDArray[np.uint32]:
    data = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    starts = np.arange(array.offset, array.offset + len(array), dtype=np.int64) * length
    return hash_slices(data, starts, np.full(len(array), length, np.int64))


def _decimal_hashes(array: pa.Array) -> npt.NDArray[np.uint32]:
    """Hashes of the fewest big-endian bytes that hold the unscaled value."""
    data, ends, lengths = unscaled_slices(array)
    return hash_slices(data, ends - lengths, lengths)


def _truncated(source_type: IcebergType, array: pa.Array, width: int) -> pa.Array:
    match source_type:
        case DecimalType():
            return _truncated_decimals(array, width)
        case _ if source_type == STRING:
            return pc.utf8_slice_codeunits(array, 0, width)
        case _ if source_type == BINARY:
            return pc.binary_slice(array, 0, width)
        case _:
            values = _integers(array)
            # Just above the type's minimum, the results wrap around, as Java's do.
            down = values.astype(np.int64) - np.mod(values.astype(np.int64), width)
            results = down.astype(values.dtype)
            return pa.Array.from_buffers(
                array.type,
                len(array),
                [validity(array), pa.py_buffer(results)],
                array.null_count,
            )


def _truncated_decimals(array: pa.Array, width: int) -> pa.Array:
    """Unscaled values minus their remainder, which is computed 32 bits at a time."""
    low, high = _decimal_words(array)
    remainder = np.mod(high, width).view(np.uint64)
    for part in (low >> np.uint64(32), low & np.uint64(0xFFFFFFFF)):
        remainder = ((remainder << np.uint64(32)) | part) % np.uint64(width)
    words = np.empty((len(array), 2), np.uint64)
    words[:, 0] = low - remainder
    words[:, 1] = high.view(np.uint64) - (low < remainder)
    truncated = pa.Array.from_buffers(
        array.type, len(array), [validity(array), pa.py_buffer(words)], array.null_count
    )
    try:
        truncated.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidDataError(
            f"truncate[{width}]: rounded down, a value has more digits than {array.type} holds "
            f"({error}); widen the column, or partition by another term"
        ) from None
    return truncated


_BYTES = 16
_Int64s = npt.NDArray[np.int64]


def _decimal_words(array: pa.Array) -> tuple[npt.NDArray[np.uint64], _Int64s]:
    """The lower and upper halves of unscaled values."""
    end = array.offset + len(array)
    words = np.frombuffer(array.buffers()[1] or b"", np.uint64, 2 * end).reshape(-1, 2)
    used = words[array.offset :]
    return used[:, 0].copy(), used[:, 1].copy().view(np.int64)


def unscaled_slices(array: pa.Array) -> tuple[npt.NDArray[np.uint8], _Int64s, _Int64s]:
    """The fewest big-endian bytes that hold each unscaled value, as slices of a buffer.

    Returns:
        The buffer, and where each slice ends, and how long it is.
    """
    low, high = _decimal_words(array)
    sign = high >> 63
    magnitudes = _big_endian(low ^ sign.view(np.uint64), high ^ sign)
    first = np.argmax(magnitudes != 0, axis=1)
    top = np.take_along_axis(magnitudes, first[:, None], axis=1)[:, 0]
    # One more bit is needed for the sign, and one byte for zero.
    lengths = np.where(top == 0, 1, _BYTES - first + (top >= 0x80))
    ends = np.arange(1, len(array) + 1, dtype=np.int64) * _BYTES
    return _big_endian(low, high).reshape(-1), ends, lengths


def _big_endian(low: npt.NDArray[np.uint64], high: _Int64s) -> npt.NDArray[np.uint8]:
    """16 bytes a value, the highest first."""
    words = np.empty((len(low), 2), ">u8")
    words[:, 0], words[:, 1] = high.view(np.uint64), low
    return words.view(np.uint8)
