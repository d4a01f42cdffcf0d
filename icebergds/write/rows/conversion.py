"""Converts incoming Arrow columns to the Arrow types of table columns, without loss.

Integers, floats and decimals may be widened, strings and binaries may have any layout, and times
any unit if no digits are lost. Columns that already have the right type are not copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.arrays import validity
from icebergds.formats.arrow.types import is_binary, is_text
from icebergds.spec.types import DecimalType, FixedType, ScalarType, TypeId
from icebergds.spec.values.dates import MICROS_PER_DAY

_UUID_CHARACTERS = 36
_HYPHENS = (8, 13, 18, 23)
# Indices of the 32 digits of a UUID among its 36 characters.
_DIGITS = np.array([at for at in range(_UUID_CHARACTERS) if at not in _HYPHENS])
_NO_DIGIT = 0xFF
_DIGIT_VALUES: npt.NDArray[np.uint8] = np.full(256, _NO_DIGIT, np.uint8)
_DIGIT_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_DIGIT_VALUES[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)
_SHOWN = 60


def storage_type(incoming: pa.DataType) -> pa.DataType:
    """The storage or value type of an extension type or dictionary; other types unchanged."""
    while True:
        if isinstance(incoming, pa.BaseExtensionType):
            incoming = incoming.storage_type
        elif pa.types.is_dictionary(incoming):
            incoming = incoming.value_type
        else:
            return incoming


def fits(incoming: pa.DataType, wanted: ScalarType) -> bool:
    """Whether a column of the type `wanted`, not a variant, accepts values of an Arrow type.

    `incoming` is not an extension type or dictionary. `convert` may still refuse single values: a
    string that is not a UUID, a time with more digits than the column stores.
    """
    is_type = pa.types
    if is_type.is_null(incoming):
        return True
    answer: Any
    match wanted.type_id:
        case TypeId.BOOLEAN:
            answer = is_type.is_boolean(incoming)
        case TypeId.INT:
            answer = incoming in _INTS
        case TypeId.LONG:
            answer = incoming in _LONGS
        case TypeId.FLOAT:
            answer = is_type.is_float16(incoming) or is_type.is_float32(incoming)
        case TypeId.DOUBLE:
            answer = is_type.is_floating(incoming)
        case TypeId.DECIMAL:
            assert isinstance(wanted, DecimalType)
            answer = is_type.is_decimal(incoming) and _decimal_fits(incoming, wanted)
        case TypeId.DATE:
            answer = is_type.is_date32(incoming)
        case TypeId.TIME:
            answer = is_type.is_time(incoming) or is_type.is_int64(incoming)
        case TypeId.TIMESTAMP:
            answer = is_type.is_timestamp(incoming) and incoming.tz is None
        case TypeId.TIMESTAMPTZ:
            answer = is_type.is_timestamp(incoming) and incoming.tz is not None
        case TypeId.TIMESTAMP_NS | TypeId.TIMESTAMPTZ_NS:
            has_zone = wanted.type_id is TypeId.TIMESTAMPTZ_NS
            answer = is_type.is_int64(incoming) or (
                is_type.is_timestamp(incoming) and (incoming.tz is not None) == has_zone
            )
        case TypeId.STRING:
            answer = is_text(incoming)
        case TypeId.UUID:
            answer = is_text(incoming) or incoming == pa.binary(16)
        case TypeId.FIXED:
            assert isinstance(wanted, FixedType)
            if is_type.is_fixed_size_binary(incoming):
                answer = incoming.byte_width == wanted.length
            else:
                answer = is_binary(incoming)
        case TypeId.BINARY | TypeId.GEOMETRY | TypeId.GEOGRAPHY:
            answer = is_binary(incoming)
        case _:
            answer = False
    return bool(answer)


def convert(array: pa.Array, wanted: ScalarType, target: pa.DataType, where: str) -> pa.Array:
    """Converts values of a type that fits to the Arrow type of the column.

    Args:
        array: the values, not of an extension type or dictionary.
        wanted: the column's type, not a variant.
        target: `to_arrow(wanted)`.
        where: the column and the table, for messages.

    Raises:
        InvalidDataError: a value cannot be stored without loss.
    """
    incoming = array.type
    if incoming == target:
        return array
    if pa.types.is_null(incoming):
        return pa.nulls(len(array), target)
    try:
        match wanted.type_id:
            case TypeId.UUID:
                return _parsed_uuids(array.cast(pa.string()), target, where)
            case TypeId.FIXED:
                return _of_length(array.cast(pa.binary()), target, where)
            case TypeId.TIME if pa.types.is_int64(incoming):
                return _micros_of_day(array, target, where)
            case TypeId.TIMESTAMPTZ | TypeId.TIMESTAMPTZ_NS if pa.types.is_timestamp(incoming):
                # The zone only affects how an instant is displayed.
                return array.view(pa.timestamp(incoming.unit, tz="UTC")).cast(target)
            case TypeId.TIMESTAMP_NS | TypeId.TIMESTAMPTZ_NS if pa.types.is_int64(incoming):
                return array.view(target)
            case _:
                return array.cast(target)
    except pa.ArrowInvalid as error:
        raise InvalidDataError(
            f"{where}: a value of the incoming type {incoming} cannot be stored as {wanted} "
            f"without loss: {error}"
        ) from error


_INTS = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())
_LONGS = (*_INTS, pa.int64(), pa.uint32())


def _decimal_fits(incoming: pa.DataType, wanted: DecimalType) -> bool:
    more_scale = wanted.scale - incoming.scale
    return bool(more_scale >= 0 and wanted.precision - incoming.precision >= more_scale)


def _of_length(array: pa.BinaryArray, target: pa.FixedSizeBinaryType, where: str) -> pa.Array:
    wrong = pc.not_equal(pc.binary_length(array), target.byte_width)
    if pc.any(wrong).as_py():
        value = array[pc.index(wrong, True).as_py()].as_py()
        raise InvalidDataError(
            f"{where}: expected values of exactly {target.byte_width} bytes, but one has "
            f"{len(value)}: {_shown(value)}"
        )
    return array.cast(target)


def _micros_of_day(array: pa.Int64Array, target: pa.DataType, where: str) -> pa.Array:
    found = pc.min_max(array)
    for value in (found["min"].as_py(), found["max"].as_py()):
        if value is not None and not 0 <= value < MICROS_PER_DAY:
            raise InvalidDataError(
                f"{where}: expected times as microseconds since midnight (0 to "
                f"{MICROS_PER_DAY - 1}), but a value is {value}"
            )
    return array.view(target)


def _parsed_uuids(array: pa.StringArray, target: pa.DataType, where: str) -> pa.Array:
    texts = array.drop_null() if array.null_count else array
    wrong = pc.not_equal(pc.binary_length(texts), _UUID_CHARACTERS)
    if pc.any(wrong).as_py():
        raise _not_a_uuid(texts, pc.index(wrong, True).as_py(), where)
    parsed = np.zeros((len(array), 16), np.uint8)
    valid = array.is_valid()
    rows = slice(None) if texts is array else valid.to_numpy(zero_copy_only=False)
    parsed[rows] = _octets(texts, where)
    buffers = [validity(array), pa.py_buffer(parsed)]
    return pa.Array.from_buffers(target, len(array), buffers, array.null_count)


def _octets(texts: pa.StringArray, where: str) -> npt.NDArray[np.uint8]:
    """Parses UUID strings of 36 bytes each to bytes."""
    if not len(texts):
        return np.empty((0, 16), np.uint8)
    _, offsets, data = texts.buffers()
    first = int(np.frombuffer(offsets, np.int32)[texts.offset])
    count = len(texts) * _UUID_CHARACTERS
    characters = np.frombuffer(data, np.uint8)[first : first + count].reshape(-1, _UUID_CHARACTERS)
    digits = _DIGIT_VALUES[characters[:, _DIGITS]]
    bad = (digits == _NO_DIGIT).any(axis=1) | (characters[:, _HYPHENS] != ord("-")).any(axis=1)
    if bad.any():
        raise _not_a_uuid(texts, int(bad.argmax()), where)
    return (digits[:, 0::2] << np.uint8(4)) | digits[:, 1::2]


def _not_a_uuid(texts: pa.StringArray, at: int, where: str) -> InvalidDataError:
    # Spark also casts bytes that are not valid text to strings.
    text = texts[at].cast(pa.binary()).as_py().decode(errors="replace")
    return InvalidDataError(
        f"{where}: {_shown(text)} is not a UUID; expected 32 hexadecimal digits as in "
        "'f79c3e09-677c-4bbd-a479-3f349cb785e7'"
    )


def _shown(value: str | bytes) -> str:
    return repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}..."
