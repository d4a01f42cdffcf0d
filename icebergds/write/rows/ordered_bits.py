"""Turns values into unsigned integers or bytes that keep their order.

The order is that of filters (`expr.nodes`): NaN is greatest, -0.0 equals 0.0, text and bytes
compare by unsigned bytes, false is before true. Nulls become zero, like the lowest values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.formats.arrow.arrays import storage
from icebergds.formats.arrow.types import to_arrow
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
)

Bytes = npt.NDArray[np.uint8]
UInts = npt.NDArray[np.uint64]
_Ints = npt.NDArray[np.int64]

_NUMBERS = (
    *(BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME),
    *(TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS),
)
_STRINGS = (STRING, BINARY, UUID)
_SIGN = np.uint64(1 << 63)
_WORD_BYTES = 8
# Masks of the first 0, 1, ... 8 bytes of a big-endian word.
_FIRST_BYTES = np.array([(1 << 64) - (1 << 64 - 8 * count) for count in range(9)], np.uint64)


def is_number(field_type: IcebergType) -> bool:
    """Whether values of a type become integers (`ordered_integers`)."""
    return isinstance(field_type, DecimalType) or field_type in _NUMBERS


def is_byte_string(field_type: IcebergType) -> bool:
    """Whether values of a type are text or bytes, of any or of a fixed length."""
    return isinstance(field_type, FixedType) or field_type in _STRINGS


def fits_an_integer(field_type: IcebergType) -> bool:
    """Whether different values of a type become different integers; false for wide decimals."""
    return is_number(field_type) and not _is_wide(field_type)


def plain_array(column: pa.Array | pa.ChunkedArray, field_type: IcebergType) -> pa.Array:
    """A column as one array of the type `to_arrow(field_type)`, without dictionaries.

    Spark sends times with its session's time zone, and text with large offsets if configured.
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    stored, target = storage(whole), to_arrow(field_type)
    return stored if stored.type.equals(target) else stored.cast(target)


def ordered_integers(array: pa.Array, field_type: IcebergType) -> UInts:
    """Numbers as unsigned integers of 64 bits; zero for null.

    Integers are as far apart as their values, so that all integer types are comparable. Decimals
    of more than 18 digits keep the leading 64 of the bits that the type needs.

    Args:
        array: values of the Arrow type `to_arrow(field_type)`.
        field_type: a type for which `is_number` holds.
    """
    if isinstance(field_type, DecimalType):
        ordered = _ordered_decimals(array, field_type)
    elif field_type in (FLOAT, DOUBLE):
        ordered = _ordered_floats(array)
    elif field_type == BOOLEAN:
        flags = np.asarray(array.fill_null(False).cast(pa.uint8()))
        ordered = flags.astype(np.uint64) * _SIGN
    else:
        width = pa.int32() if array.type.bit_width == 32 else pa.int64()
        values = np.asarray(array.view(width).fill_null(0))
        ordered = values.astype(np.int64).view(np.uint64) ^ _SIGN
    _clear_nulls(ordered, array)
    return ordered


def leading_bytes(array: pa.Array, width: int) -> Bytes:
    """The first bytes of text or byte strings, one row of the result each; zeros for null.

    Shorter values are followed by zeros.

    Args:
        array: strings, binaries, or binaries of a fixed size.
        width: how many bytes, at least 1.
    """
    strings = byte_strings(array)
    words = np.empty((len(array), -(-width // _WORD_BYTES)), ">u8")
    for at in range(words.shape[1]):
        words[:, at] = strings.word(at * _WORD_BYTES, _WORD_BYTES)
    leading = words.view(np.uint8)[:, :width]
    _clear_nulls(leading, array)
    return leading


@dataclass(frozen=True, slots=True, eq=False)
class ByteStrings:
    """Byte strings that are read as words; created by `byte_strings`.

    Attributes:
        words: all bytes as big-endian integers, and 8 or more bytes of padding.
        starts: where each string starts, in bytes.
        ends: where each string ends.
    """

    words: UInts
    starts: _Ints
    ends: _Ints

    def word(self, offset: int, size: int) -> UInts:
        """Bytes of each string as a big-endian integer, followed by zeros if it is shorter.

        Args:
            offset: of the first byte in each string.
            size: how many bytes, at most 8.
        """
        at = np.minimum(self.starts + offset, self.ends)
        indices = at >> 3
        up = (at & 7).astype(np.uint64) << np.uint64(3)
        # Two aligned words are joined. In numpy, a shift by 64 bits gives zero.
        joined: UInts = self.words.take(indices) << up
        joined |= self.words.take(indices + 1) >> (np.uint64(64) - up)
        joined &= _FIRST_BYTES.take(np.minimum(self.ends - at, size))
        joined >>= np.uint64(64 - 8 * size)
        return joined

    def take(self, rows: _Ints) -> ByteStrings:
        return ByteStrings(self.words, self.starts.take(rows), self.ends.take(rows))


def byte_strings(array: pa.Array) -> ByteStrings:
    """The bytes of a column; those of nulls are arbitrary.

    Args:
        array: strings, binaries, binaries of a fixed size, or decimals, whose 16 bytes are changed
            so that they keep the order.
    """
    if pa.types.is_decimal(array.type):
        low, high = _decimal_words(array)
        words = np.stack((high ^ _SIGN, low), axis=1).ravel()
        starts = np.arange(len(array), dtype=np.int64) * 16
        return ByteStrings(np.append(words, np.zeros(2, np.uint64)), starts, starts + 16)
    buffers = array.buffers()
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        offsets = (np.arange(len(array) + 1) + array.offset) * width
    else:
        offsets = np.frombuffer(buffers[1], np.int32)[array.offset :][: len(array) + 1]
    first, last = (int(offsets[0]), int(offsets[-1])) if len(array) else (0, 0)
    padded = np.zeros(((last - first) // _WORD_BYTES + 2) * _WORD_BYTES, np.uint8)
    if last > first:
        padded[: last - first] = np.frombuffer(buffers[-1], np.uint8)[first:last]
    placed = offsets.astype(np.int64) - first
    return ByteStrings(padded.view(">u8").astype(np.uint64), placed[:-1], placed[1:])


def _is_wide(field_type: IcebergType) -> bool:
    return isinstance(field_type, DecimalType) and field_type.precision > 18


def _ordered_floats(array: pa.Array) -> UInts:
    values = np.asarray(array.fill_null(0.0)).astype(np.float64)
    # Adding zero turns -0.0 into 0.0.
    values += 0.0
    values[np.isnan(values)] = np.nan
    bits = values.view(np.uint64)
    # For negative floats, larger bits mean a smaller value.
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _ordered_decimals(array: pa.Array, field_type: DecimalType) -> UInts:
    low, high = _decimal_words(array)
    # One bit for the sign.
    bits = (10**field_type.precision - 1).bit_length() + 1
    if bits <= 64:
        return low ^ _SIGN
    down = np.uint64(bits - 64)
    return ((high << (np.uint64(64) - down)) | (low >> down)) ^ _SIGN


def _decimal_words(array: pa.Array) -> tuple[UInts, UInts]:
    """The low and high 64 bits of unscaled values; arbitrary for null."""
    if not len(array):
        return np.empty(0, np.uint64), np.empty(0, np.uint64)
    words = np.frombuffer(array.buffers()[1], "<u8").reshape(-1, 2)
    rows = words[array.offset :][: len(array)].astype(np.uint64)
    return rows[:, 0], rows[:, 1]


def _clear_nulls(ordered: npt.NDArray[Any], array: pa.Array) -> None:
    if array.null_count:
        ordered[array.is_null().to_numpy(zero_copy_only=False)] = 0
