"""Decodes scalars of variants to columns of one type (Parquet variant encoding: Encoding types)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.arrow.variant.byte_strings import Bytes, Integers, Mask, substrings
from icebergds.formats.arrow.variant.values import BINARY, FALSE, TRUE, Values

INTEGERS = {3: 1, 4: 2, 5: 4, 6: 8}
"""Types of integers, and the bytes of a value."""
DECIMALS = {8: (4, 9), 9: (8, 18), 10: (16, 38)}
"""Types of decimals, the bytes of a value and the highest precision."""
OTHER_TYPES = {
    7: pa.float64(),
    11: pa.date32(),
    12: pa.timestamp("us", "UTC"),
    13: pa.timestamp("us"),
    14: pa.float32(),
    17: pa.time64("us"),
    18: pa.timestamp("ns", "UTC"),
    19: pa.timestamp("ns"),
    20: pa.uuid(),
}
"""Types of other scalars of a fixed size, and the columns that hold them."""
_TYPE_IDS = {arrow_type: type_id for type_id, arrow_type in OTHER_TYPES.items()}


def decode_scalars(values: Values, arrow_type: pa.DataType) -> tuple[pa.Array, Mask]:
    """The values that a column of an Arrow type can hold, and which these are.

    Integers of all widths are held by wider columns, decimals by those of a greater scale. Values
    of any other type are not converted.

    Args:
        arrow_type: boolean, an integer of 32 or 64 bits, decimal, string, binary, or one of
            `OTHER_TYPES`.
    """
    if arrow_type in (pa.int32(), pa.int64()):
        return _integers(values, arrow_type)
    if pa.types.is_decimal(arrow_type):
        return _decimals(values, arrow_type)
    if pa.types.is_boolean(arrow_type):
        held = values.is_scalar(TRUE, FALSE)
        return pa.array(values.types[held] == TRUE), held
    if pa.types.is_string(arrow_type):
        return _strings(values)
    if pa.types.is_binary(arrow_type):
        held = values.is_scalar(BINARY)
        found = values.take(held)
        return substrings(found.data, found.starts + 5, found.sizes - 5), held
    held = values.is_scalar(_TYPE_IDS[arrow_type])
    return _fixed_width(values.take(held), arrow_type), held


def decimal_scales(values: Values) -> Integers:
    """The scales of decimals."""
    return values.data[values.starts + 1].astype(np.int64)


def _integers(values: Values, arrow_type: pa.DataType) -> tuple[pa.Array, Mask]:
    width = arrow_type.bit_width // 8
    wanted = [type_id for type_id, size in INTEGERS.items() if size <= width]
    held = values.is_scalar(*wanted)
    found = values.take(held)
    numbers = np.empty(len(found), f"<i{width}")
    for type_id in wanted:
        of_type = found.types == type_id
        octets = _octets(found.take(of_type), 1, INTEGERS[type_id])
        numbers[of_type] = octets.view(f"<i{INTEGERS[type_id]}")[:, 0]
    return pa.array(numbers), held


def _fixed_width(values: Values, arrow_type: pa.DataType) -> pa.Array:
    is_uuid = isinstance(arrow_type, pa.UuidType)
    stored = pa.binary(16) if is_uuid else arrow_type
    octets = _octets(values, 1, 16 if is_uuid else stored.bit_width // 8)
    array = pa.Array.from_buffers(stored, len(values), [None, pa.py_buffer(octets)])
    return pa.ExtensionArray.from_storage(arrow_type, array) if is_uuid else array


def _strings(values: Values) -> tuple[pa.Array, Mask]:
    """The strings that are valid UTF-8."""
    held = values.is_string
    texts = values.take(held).texts()
    try:
        return texts.cast(pa.string()), held
    except pa.ArrowInvalid:
        is_text = np.array([_is_text(text) for text in texts.to_pylist()], np.bool_)
        held[np.flatnonzero(held)[~is_text]] = False
        return texts.filter(pa.array(is_text)).cast(pa.string()), held


def _is_text(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decimals(values: Values, arrow_type: pa.Decimal128Type) -> tuple[pa.Array, Mask]:
    is_decimal = values.is_scalar(*DECIMALS)
    found = values.take(is_decimal)
    scales = decimal_scales(found)
    numbers = np.zeros((len(found), 2), "<i8")
    for type_id, (width, _) in DECIMALS.items():
        of_type = found.types == type_id
        octets = _octets(found.take(of_type), 2, width)
        if width == 16:
            numbers[of_type] = octets.view("<i8")
        else:
            low = octets.view(f"<i{width}")[:, 0].astype(np.int64)
            numbers[of_type] = np.stack([low, low >> 63], axis=1)

    kept = np.zeros(len(found), np.bool_)
    parts, places = [], []
    for scale in np.unique(scales[scales <= arrow_type.scale]).tolist():
        digits = arrow_type.precision - (arrow_type.scale - scale)
        at = np.flatnonzero((scales == scale) & _has_digits(numbers, digits))
        kept[at] = True
        data = pa.py_buffer(np.ascontiguousarray(numbers[at]))
        unscaled = pa.Array.from_buffers(pa.decimal128(38, scale), len(at), [None, data])
        parts.append(unscaled.cast(arrow_type))
        places.append(at)
    held = is_decimal.copy()
    held[np.flatnonzero(is_decimal)[~kept]] = False
    if not parts:
        return pa.array([], arrow_type), held
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_arrays(parts).take(pa.array(order)), held


def _has_digits(numbers: npt.NDArray[np.int64], digits: int) -> Mask:
    """Which integers of 128 bits, as low and high halves, have at most so many digits."""
    if digits <= 0:
        is_zero: Mask = (numbers == 0).all(axis=1)
        return is_zero
    low, high = numbers[:, 0].view(np.uint64), numbers[:, 1]

    def is_less(limit: int) -> Mask:
        limit_low, limit_high = np.uint64(limit & (2**64 - 1)), limit >> 64
        less: Mask = (high < limit_high) | ((high == limit_high) & (low < limit_low))
        return less

    return is_less(10**digits) & ~is_less(1 - 10**digits)


def _octets(values: Values, skipped: int, width: int) -> Bytes:
    """Some bytes of each value, behind its first ones."""
    places = (values.starts + skipped)[:, np.newaxis] + np.arange(width)
    octets: Bytes = np.ascontiguousarray(values.data[places])
    return octets


def scattered(array: pa.Array, slots: Integers, length: int) -> pa.Array:
    """A column with an array's values in some slots, in order, and nulls in the others."""
    if len(array) == length:
        return array
    indexes = np.zeros(length, np.int64)
    indexes[slots] = np.arange(len(array))
    is_empty = np.ones(length, np.bool_)
    is_empty[slots] = False
    if not len(array):
        return pa.nulls(length, array.type)
    return pc.take(array, pa.array(indexes, mask=is_empty))
