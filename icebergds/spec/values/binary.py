"""Serialises single values for bounds and partition summaries (spec: Appendix D).

Values are in-memory values (see `types`). Geometry and geography are passed through as bytes: WKB
for values, and for bounds the coordinates x:y:z:m of a corner, as 8-byte floats.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from icebergds.errors import CorruptFileError, InvalidDataError, UnsupportedFeatureError
from icebergds.spec.types import DecimalType, IcebergType, TypeId, is_scalar
from icebergds.spec.values.dates import MICROS_PER_DAY, NANOS_PER_MICRO
from icebergds.spec.values.decimals import from_unscaled, to_twos_complement, unscaled


def to_bytes(field_type: IcebergType, value: Any) -> bytes:
    """Serialises a value that is not null.

    Raises InvalidDataError if the value is not of the type, UnsupportedFeatureError for types
    without a binary form (nested types, variant, unknown).
    """
    encode = _ENCODERS.get(_type_id(field_type))
    if encode is None:
        raise _no_binary_form(field_type)
    try:
        return encode(field_type, value)
    except (struct.error, OverflowError, ValueError, TypeError, AttributeError) as error:
        raise InvalidDataError(f"{value!r} is not a value of type {field_type}: {error}") from error


def from_bytes(field_type: IcebergType, data: bytes) -> Any:
    """Deserialises a value, even if it was written before the column's type was promoted.

    Bounds of `fixed` may be shorter than its length. Raises CorruptFileError if the bytes are not a
    value of the type (callers that only prune may treat the bound as missing),
    UnsupportedFeatureError for types without a binary form.
    """
    decode = _DECODERS.get(_type_id(field_type))
    if decode is None:
        raise _no_binary_form(field_type)
    try:
        return decode(field_type, data)
    except (struct.error, ValueError) as error:
        raise CorruptFileError(
            f"{len(data)} bytes 0x{data[:16].hex()} are not a value of type {field_type}"
        ) from error


def format_uuid(value: bytes) -> str:
    """The lower-case hyphenated text of 16 bytes."""
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_INT = struct.Struct("<i")
_LONG = struct.Struct("<q")
_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")


def _type_id(field_type: IcebergType) -> TypeId | None:
    return field_type.type_id if is_scalar(field_type) else None


def _no_binary_form(field_type: IcebergType) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"type {field_type} has no binary single-value form")


def _encode_boolean(_: IcebergType, value: Any) -> bytes:
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return b"\x01" if value else b"\x00"


def _encode_bytes(_: IcebergType, value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("expected bytes")
    return value


def _encode_uuid(_: IcebergType, value: Any) -> bytes:
    if not isinstance(value, bytes) or len(value) != 16:
        raise TypeError("expected 16 bytes")
    return value


def _encode_string(_: IcebergType, value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value.encode()


def _encode_decimal(field_type: IcebergType, value: Any) -> bytes:
    assert isinstance(field_type, DecimalType)
    if not isinstance(value, Decimal):
        raise TypeError("expected a decimal")
    return to_twos_complement(unscaled(value, field_type.scale))


def _decode_boolean(_: IcebergType, data: bytes) -> bool:
    if not data:
        raise ValueError("no byte")
    return data[0] != 0


def _decode_int(_: IcebergType, data: bytes) -> int:
    value: int = _INT.unpack(data)[0]
    return value


def _decode_eight(_: IcebergType, data: bytes) -> int:
    value: int = _LONG.unpack(data)[0]
    return value


def _decode_long(_: IcebergType, data: bytes) -> int:
    value: int = (_INT if len(data) == 4 else _LONG).unpack(data)[0]
    return value


def _decode_float(_: IcebergType, data: bytes) -> float:
    value: float = _FLOAT.unpack(data)[0]
    return value


def _decode_double(_: IcebergType, data: bytes) -> float:
    value: float = (_FLOAT if len(data) == 4 else _DOUBLE).unpack(data)[0]
    return value


def _decode_timestamp(_: IcebergType, data: bytes) -> int:
    if len(data) == 4:
        return _decode_int(_, data) * MICROS_PER_DAY
    return _decode_eight(_, data)


def _decode_timestamp_ns(_: IcebergType, data: bytes) -> int:
    if len(data) == 4:
        return _decode_int(_, data) * MICROS_PER_DAY * NANOS_PER_MICRO
    return _decode_eight(_, data)


def _decode_string(_: IcebergType, data: bytes) -> str:
    return data.decode()


def _decode_uuid(_: IcebergType, data: bytes) -> bytes:
    if len(data) != 16:
        raise ValueError("not 16 bytes")
    return bytes(data)


def _decode_bytes(_: IcebergType, data: bytes) -> bytes:
    return bytes(data)


def _decode_decimal(field_type: IcebergType, data: bytes) -> Decimal:
    assert isinstance(field_type, DecimalType)
    if not data:
        raise ValueError("no byte")
    return from_unscaled(int.from_bytes(data, "big", signed=True), field_type.scale)


_ENCODERS: dict[TypeId | None, Callable[[IcebergType, Any], bytes]] = {
    TypeId.BOOLEAN: _encode_boolean,
    TypeId.INT: lambda _, value: _INT.pack(value),
    TypeId.LONG: lambda _, value: _LONG.pack(value),
    TypeId.FLOAT: lambda _, value: _FLOAT.pack(value),
    TypeId.DOUBLE: lambda _, value: _DOUBLE.pack(value),
    TypeId.DECIMAL: _encode_decimal,
    TypeId.DATE: lambda _, value: _INT.pack(value),
    TypeId.TIME: lambda _, value: _LONG.pack(value),
    TypeId.TIMESTAMP: lambda _, value: _LONG.pack(value),
    TypeId.TIMESTAMPTZ: lambda _, value: _LONG.pack(value),
    TypeId.TIMESTAMP_NS: lambda _, value: _LONG.pack(value),
    TypeId.TIMESTAMPTZ_NS: lambda _, value: _LONG.pack(value),
    TypeId.STRING: _encode_string,
    TypeId.UUID: _encode_uuid,
    TypeId.FIXED: _encode_bytes,
    TypeId.BINARY: _encode_bytes,
    TypeId.GEOMETRY: _encode_bytes,
    TypeId.GEOGRAPHY: _encode_bytes,
}
# Schema Evolution: the length of a bound tells the type that it was written with.
_DECODERS: dict[TypeId | None, Callable[[IcebergType, bytes], Any]] = {
    TypeId.BOOLEAN: _decode_boolean,
    TypeId.INT: _decode_int,
    TypeId.LONG: _decode_long,
    TypeId.FLOAT: _decode_float,
    TypeId.DOUBLE: _decode_double,
    TypeId.DECIMAL: _decode_decimal,
    TypeId.DATE: _decode_int,
    TypeId.TIME: _decode_eight,
    TypeId.TIMESTAMP: _decode_timestamp,
    TypeId.TIMESTAMPTZ: _decode_eight,
    TypeId.TIMESTAMP_NS: _decode_timestamp_ns,
    TypeId.TIMESTAMPTZ_NS: _decode_eight,
    TypeId.STRING: _decode_string,
    TypeId.UUID: _decode_uuid,
    TypeId.FIXED: _decode_bytes,
    TypeId.BINARY: _decode_bytes,
    TypeId.GEOMETRY: _decode_bytes,
    TypeId.GEOGRAPHY: _decode_bytes,
}
