"""Reads and writes single values, such as defaults, as JSON (spec: Appendix D)."""

from __future__ import annotations

import re
import struct
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.json.fields import unicode_text
from icebergds.spec.types import (
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    ScalarType,
    StructType,
    TypeId,
)
from icebergds.spec.values import dates
from icebergds.spec.values.binary import format_uuid
from icebergds.spec.values.decimals import from_unscaled, unscaled
from icebergds.spec.values.human_text import shortest_float32

T = TypeVar("T")


def to_json(field_type: IcebergType, value: Any) -> Any:
    """The JSON form of an in-memory value; None becomes null.

    Members of a struct that are None are left out. Raises UnsupportedFeatureError for variant,
    geometry, geography and unknown, whose values have no JSON form here.
    """
    if value is None:
        return None
    match field_type:
        case StructType(fields=fields):
            return {
                str(field.field_id): to_json(field.field_type, member)
                for field, member in zip(fields, value, strict=True)
                if member is not None
            }
        case ListType(element_type=element_type):
            return [to_json(element_type, element) for element in value]
        case MapType(key_type=key_type, value_type=value_type):
            return {
                "keys": [to_json(key_type, key) for key, _ in value],
                "values": [to_json(value_type, item) for _, item in value],
            }
        case _:
            return _scalar_to_json(field_type, value)


def from_json(field_type: IcebergType, obj: Any) -> Any:
    """The in-memory value of a JSON form; null becomes None.

    A struct is a tuple with None for members that are left out. Values of `float` are rounded to
    single precision. Raises InvalidMetadataError if the JSON is not a value of the type,
    UnsupportedFeatureError for variant, geometry, geography and unknown.
    """
    if obj is None:
        return None
    match field_type:
        case StructType(fields=fields):
            members = _checked(field_type, obj, dict)
            return tuple(from_json(f.field_type, members.get(str(f.field_id))) for f in fields)
        case ListType(element_type=element_type):
            return [from_json(element_type, element) for element in _checked(field_type, obj, list)]
        case MapType():
            return _map_from_json(field_type, _checked(field_type, obj, dict))
        case _:
            try:
                return _scalar_from_json(field_type, obj)
            except (ValueError, TypeError, OverflowError, InvalidOperation) as error:
                raise _invalid(field_type, obj, str(error)) from error


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"([0-9a-f]{2})*", re.IGNORECASE)
_KINDS = {
    bool: "true or false",
    int: "an integer",
    str: "a string",
    list: "an array",
    dict: "an object",
}
_NON_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


def _scalar_to_json(field_type: ScalarType, value: Any) -> Any:
    if isinstance(field_type, DecimalType):
        return _decimal_to_json(field_type, value)
    match field_type.type_id:
        case TypeId.BOOLEAN | TypeId.INT | TypeId.LONG | TypeId.STRING:
            return value
        case TypeId.FLOAT:
            return _number_to_json(float(shortest_float32(value)))
        case TypeId.DOUBLE:
            return _number_to_json(value)
        case TypeId.DATE:
            return dates.format_date(value)
        case TypeId.TIME:
            return dates.format_time(value)
        case TypeId.TIMESTAMP:
            return dates.format_timestamp(value)
        case TypeId.TIMESTAMPTZ:
            return dates.format_timestamp(value) + "+00:00"
        case TypeId.TIMESTAMP_NS:
            return dates.format_timestamp(value, nanos=True)
        case TypeId.TIMESTAMPTZ_NS:
            return dates.format_timestamp(value, nanos=True) + "+00:00"
        case TypeId.UUID:
            return format_uuid(value)
        case TypeId.FIXED | TypeId.BINARY:
            return value.hex()
        case _:
            raise _no_json_form(field_type)


def _scalar_from_json(field_type: ScalarType, obj: Any) -> Any:
    if isinstance(field_type, DecimalType):
        return _decimal_from_json(field_type, _checked(field_type, obj, str))
    match field_type.type_id:
        case TypeId.BOOLEAN:
            return _checked(field_type, obj, bool)
        case TypeId.INT:
            return _integer_from_json(field_type, obj, 31)
        case TypeId.LONG:
            return _integer_from_json(field_type, obj, 63)
        case TypeId.FLOAT:
            return struct.unpack("<f", struct.pack("<f", _number_from_json(field_type, obj)))[0]
        case TypeId.DOUBLE:
            return _number_from_json(field_type, obj)
        case TypeId.STRING:
            return unicode_text(_checked(field_type, obj, str), "a value")
        case TypeId.DATE:
            return dates.parse_date(_checked(field_type, obj, str))
        case TypeId.TIME:
            return dates.parse_time(_checked(field_type, obj, str))
        case TypeId.TIMESTAMP:
            return dates.parse_timestamp(_checked(field_type, obj, str))
        case TypeId.TIMESTAMPTZ:
            return dates.parse_utc_timestamp(_checked(field_type, obj, str))
        case TypeId.TIMESTAMP_NS:
            return dates.parse_timestamp(_checked(field_type, obj, str), nanos=True)
        case TypeId.TIMESTAMPTZ_NS:
            return dates.parse_utc_timestamp(_checked(field_type, obj, str), nanos=True)
        case TypeId.UUID:
            return _uuid_from_json(_checked(field_type, obj, str))
        case TypeId.FIXED | TypeId.BINARY:
            return _binary_from_json(field_type, _checked(field_type, obj, str))
        case _:
            raise _no_json_form(field_type)


def _number_to_json(value: float) -> float | str:
    # JSON has no NaN and no infinities; Java writes their names as strings.
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _number_from_json(field_type: IcebergType, obj: Any) -> float:
    if type(obj) in (float, int) or (isinstance(obj, str) and obj in _NON_FINITE):
        return float(obj)
    raise _invalid(field_type, obj, "expected a number")


def _integer_from_json(field_type: IcebergType, obj: Any, bits: int) -> int:
    value = _checked(field_type, obj, int)
    if not -(1 << bits) <= value < 1 << bits:
        raise _invalid(field_type, obj, f"does not fit into {bits + 1} bits")
    return value


def _decimal_to_json(field_type: DecimalType, value: Decimal) -> str:
    # Appendix D: plain digits for scales of 0 and more, an exponent of -scale for negative ones.
    number = unscaled(value, field_type.scale)
    if field_type.scale < 0:
        return f"{number}E+{-field_type.scale}"
    return f"{from_unscaled(number, field_type.scale):f}"


def _decimal_from_json(field_type: DecimalType, text: str) -> Decimal:
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    if exponent != -field_type.scale:
        raise ValueError(f"expected exactly {field_type.scale} fraction digits")
    if len(value.as_tuple().digits) > field_type.precision:
        raise ValueError(f"more than {field_type.precision} digits")
    return value


def _binary_from_json(field_type: IcebergType, text: str) -> bytes:
    if not _HEX.fullmatch(text):
        raise ValueError("expected pairs of hexadecimal digits")
    value = bytes.fromhex(text)
    if isinstance(field_type, FixedType) and len(value) != field_type.length:
        raise ValueError(f"expected {field_type.length} bytes, found {len(value)}")
    return value


def _uuid_from_json(text: str) -> bytes:
    if not _UUID.fullmatch(text):
        raise ValueError("expected a hyphenated UUID")
    return bytes.fromhex(text.replace("-", ""))


def _map_from_json(field_type: MapType, obj: dict[str, Any]) -> list[tuple[Any, Any]]:
    keys, values = obj.get("keys"), obj.get("values")
    if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
        raise _invalid(field_type, obj, "expected arrays 'keys' and 'values' of the same length")
    return [
        (from_json(field_type.key_type, key), from_json(field_type.value_type, value))
        for key, value in zip(keys, values, strict=True)
    ]


def _checked(field_type: IcebergType, obj: Any, kind: type[T]) -> T:
    # Not isinstance: true is not an integer.
    if type(obj) is kind:
        return obj
    raise _invalid(field_type, obj, f"expected {_KINDS[kind]}")


def _invalid(field_type: IcebergType, obj: Any, reason: str) -> InvalidMetadataError:
    return InvalidMetadataError(f"{obj!r} is not a JSON value of type {field_type}: {reason}")


def _no_json_form(field_type: IcebergType) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"values of type {field_type} have no JSON form; only null is supported as a default"
    )
