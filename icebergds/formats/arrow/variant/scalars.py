"""Encodes scalar columns as variants (Parquet variant encoding: Encoding types)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.arrays import storage
from icebergds.formats.arrow.types import is_binary, is_text
from icebergds.formats.arrow.variant.byte_strings import Bytes, Mask, of_lengths, packed

Encoder = Callable[[pa.Array, str], pa.BinaryArray]
"""Encodes a column, named for errors; nulls become empty strings."""

_TRUE, _FALSE = 1 << 2, 2 << 2
_BINARY, _STRING, _UUID = 15, 16, 20
_SHORT_STRING = 1
_MAX_SHORT_STRING = 63
_FIXED_WIDTH = {
    pa.int8(): 3,
    pa.int16(): 4,
    pa.int32(): 5,
    pa.int64(): 6,
    pa.float64(): 7,
    pa.date32(): 11,
    pa.timestamp("us"): 13,
    pa.float32(): 14,
    pa.time64("us"): 17,
    pa.timestamp("ns"): 19,
}
_WITH_ZONE = {"us": 12, "ns": 18}
# The type, and the bytes of a value, by the highest precision.
_DECIMALS = {9: (8, 4), 18: (9, 8), 38: (10, 16)}


def encoder_of(arrow_type: pa.DataType) -> Encoder | None:
    """Encodes columns of an Arrow type; None if variants do not have the type.

    The encoder raises CorruptFileError for values that their type cannot have.
    """
    if isinstance(arrow_type, pa.UuidType):
        return lambda array, _: _fixed_width(array, _UUID)
    if pa.types.is_dictionary(arrow_type):
        return encoder_of(arrow_type.value_type)
    if pa.types.is_boolean(arrow_type):
        return lambda array, _: _booleans(array)
    if is_text(arrow_type):
        return lambda array, _: _texts(array)
    if is_binary(arrow_type) and not pa.types.is_fixed_size_binary(arrow_type):
        return lambda array, _: _binaries(array)
    if pa.types.is_decimal(arrow_type):
        return _decimals if arrow_type.precision <= max(_DECIMALS) else None
    if pa.types.is_timestamp(arrow_type) and arrow_type.tz is not None:
        type_id = _WITH_ZONE.get(arrow_type.unit)
    else:
        type_id = _FIXED_WIDTH.get(arrow_type)
    return None if type_id is None else lambda array, _: _fixed_width(array, type_id)


def _fixed_width(array: pa.Array, type_id: int) -> pa.BinaryArray:
    array = storage(array)
    return _tagged([type_id << 2], _octets(array), _is_valid(array))


def _booleans(array: pa.Array) -> pa.BinaryArray:
    array = storage(array)
    values = array.fill_null(False).to_numpy(zero_copy_only=False)
    valid = _is_valid(array)
    octets = np.where(values, _TRUE, _FALSE).astype(np.uint8)
    return of_lengths(valid.astype(np.int32), octets[valid])


def _decimals(array: pa.Array, where: str) -> pa.BinaryArray:
    array = storage(array)
    precision, scale = array.type.precision, array.type.scale
    array = array.cast(pa.decimal128(precision, scale))
    type_id, width = next(
        encoding for highest, encoding in _DECIMALS.items() if precision <= highest
    )
    octets, valid = _octets(array), _is_valid(array)
    sign = np.where(octets[:, width - 1 : width] > 0x7F, 0xFF, 0)
    if ((octets[:, width:] != sign).any(axis=1) & valid).any():
        raise CorruptFileError(f"{where}: a value has more than {precision} digits")
    return _tagged([type_id << 2, scale], octets[:, :width], valid)


def _texts(array: pa.Array) -> pa.BinaryArray:
    valid = _is_valid(array)
    values = storage(array).cast(pa.binary()).fill_null(b"")
    lengths = np.asarray(pc.binary_length(values))
    is_short = lengths <= _MAX_SHORT_STRING
    numbers = np.stack(
        [np.where(is_short, (lengths << 2) | _SHORT_STRING, _STRING << 2), lengths], axis=1
    )
    widths = valid[:, np.newaxis] * np.stack([np.ones_like(lengths), np.where(is_short, 0, 4)], 1)
    heads = packed(numbers.astype(np.uint32).reshape(-1), widths.reshape(-1))
    return pc.binary_join_element_wise(of_lengths(widths.sum(axis=1), heads), values, b"")


def _binaries(array: pa.Array) -> pa.BinaryArray:
    valid = _is_valid(array)
    values = storage(array).cast(pa.binary()).fill_null(b"")
    lengths = np.asarray(pc.binary_length(values)).astype("<i4")
    heads = _tagged([_BINARY << 2], lengths.view(np.uint8).reshape(-1, 4), valid)
    return pc.binary_join_element_wise(heads, values, b"")


def _tagged(head: list[int], octets: Bytes, valid: Mask) -> pa.BinaryArray:
    """The same first bytes before those of each valid value; other values are empty."""
    count, width = octets.shape
    tagged = np.empty((count, len(head) + width), np.uint8)
    tagged[:, : len(head)] = head
    tagged[:, len(head) :] = octets
    return of_lengths(valid * tagged.shape[1], tagged[valid].reshape(-1))


def _octets(array: pa.Array) -> Bytes:
    """The bytes of values of a fixed width, little-endian if they are numbers."""
    width = array.type.bit_width // 8
    data = array.buffers()[1]
    octets = np.frombuffer(b"" if data is None else data, np.uint8)
    return octets[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)


def _is_valid(array: pa.Array) -> Mask:
    return np.asarray(array.is_valid())
