"""Reads and writes types as JSON (spec: Appendix C, Schemas)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.json.fields import (
    optional,
    required,
    typed,
    unicode_text,
    unknown_members,
)
from icebergds.spec.json.values import from_json, to_json
from icebergds.spec.types import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    ScalarType,
    StructType,
    TypeId,
)

MAX_DEPTH = 100
"""How deep types may be nested; the specification has no limit, but recursion has."""


def type_from_json(obj: Any, levels: int = MAX_DEPTH) -> IcebergType:
    """Parses a type from its JSON form, a string or an object.

    Raises InvalidMetadataError if the JSON is malformed or nested deeper than `levels`,
    UnsupportedFeatureError for a type that format versions 1 to 3 do not define.
    """
    if isinstance(obj, str):
        return parse_scalar(obj)
    if not levels:
        raise InvalidMetadataError(f"types are nested more than {MAX_DEPTH} deep")
    kind = required(typed(obj, dict, "a type"), "type", str, "a type")
    match kind:
        case "struct":
            return _struct_from_json(obj, levels - 1)
        case "list":
            return ListType(
                element_id=required(obj, "element-id", int, "a list type"),
                element_type=type_from_json(obj.get("element"), levels - 1),
                element_required=required(obj, "element-required", bool, "a list type"),
                unknown=unknown_members(obj, _LIST_MEMBERS),
            )
        case "map":
            return MapType(
                key_id=required(obj, "key-id", int, "a map type"),
                key_type=type_from_json(obj.get("key"), levels - 1),
                value_id=required(obj, "value-id", int, "a map type"),
                value_type=type_from_json(obj.get("value"), levels - 1),
                value_required=required(obj, "value-required", bool, "a map type"),
                unknown=unknown_members(obj, _MAP_MEMBERS),
            )
        case _:
            raise UnsupportedFeatureError(
                f"nested type {kind!r} is not supported, expected struct, list or map"
            )


def type_to_json(field_type: IcebergType) -> Any:
    """The JSON form of a type: a string, or an object for nested types."""
    match field_type:
        case StructType():
            return {"type": "struct", **fields_to_json(field_type), **field_type.unknown}
        case ListType():
            return {
                "type": "list",
                "element-id": field_type.element_id,
                "element": type_to_json(field_type.element_type),
                "element-required": field_type.element_required,
                **field_type.unknown,
            }
        case MapType():
            return {
                "type": "map",
                "key-id": field_type.key_id,
                "key": type_to_json(field_type.key_type),
                "value-id": field_type.value_id,
                "value": type_to_json(field_type.value_type),
                "value-required": field_type.value_required,
                **field_type.unknown,
            }
        case _:
            return str(field_type)


def parse_scalar(text: str) -> ScalarType:
    """Parses a type without fields, such as `long`, `decimal(9, 2)` or `fixed[16]`.

    Case, and white space around parameters, do not matter.
    Raises InvalidMetadataError for parameters out of range, UnsupportedFeatureError for a type
    that format versions 1 to 3 do not define.
    """
    known = _PRIMITIVES.get(text)
    if known is not None:
        return known
    match = _PARAMETRIC.fullmatch(text)
    if match is None:
        raise _unknown_type(text)
    name, parameters = match[1].lower(), [p.strip() for p in (match[2] or "").split(",")]
    if match[2] is None and name in _PRIMITIVES:
        return _PRIMITIVES[name]
    match name, parameters:
        case "decimal", [precision, scale]:
            return _decimal(text, precision, scale)
        case "fixed", [length] if length.isdecimal():
            return _fixed(text, length)
        case "geometry", _:
            crs = (match[2] or "").strip()
            return GeometryType(crs) if crs else GeometryType()
        case "geography", [crs]:
            return GeographyType(crs) if crs else GeographyType()
        case "geography", [crs, algorithm] if algorithm.lower() in _EDGE_ALGORITHMS:
            return GeographyType(crs or GeographyType().crs, algorithm.lower())
        case _:
            raise _unknown_type(text)


def fields_from_json(
    obj: Mapping[str, Any], where: str, levels: int = MAX_DEPTH
) -> tuple[NestedField, ...]:
    """Parses the fields of a struct's or schema's JSON object.

    Raises InvalidMetadataError if they are malformed, nested deeper than `levels`, or two share a
    name.
    """
    fields = tuple(
        _field_from_json(typed(member, dict, f"a field of {where}"), where, levels)
        for member in required(obj, "fields", list, where)
    )
    if len({field.name for field in fields}) < len(fields):
        names = [field.name for field in fields]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidMetadataError(f"{where} has more than one field named {twice!r}")
    return fields


def fields_to_json(struct: StructType) -> dict[str, Any]:
    """The member `fields` of a struct's or schema's JSON object."""
    return {"fields": [_field_to_json(field) for field in struct.fields]}


_PRIMITIVES: dict[str, ScalarType] = {
    type_id.value: PrimitiveType(type_id)
    for type_id in TypeId
    if type_id not in (TypeId.DECIMAL, TypeId.FIXED, TypeId.GEOMETRY, TypeId.GEOGRAPHY)
}
_PARAMETRIC = re.compile(r"\s*(\w+)\s*(?:[(\[](.*)[)\]]\s*)?")
_EDGE_ALGORITHMS = frozenset({"spherical", "vincenty", "thomas", "andoyer", "karney"})
_STRUCT_MEMBERS = frozenset({"type", "fields"})
_LIST_MEMBERS = frozenset({"type", "element-id", "element", "element-required"})
_MAP_MEMBERS = frozenset({"type", "key-id", "key", "value-id", "value", "value-required"})
_FIELD_MEMBERS = frozenset(
    {"id", "name", "required", "type", "doc", "initial-default", "write-default"}
)


def _struct_from_json(obj: dict[str, Any], levels: int) -> StructType:
    fields = fields_from_json(obj, "a struct type", levels)
    return StructType(fields, unknown_members(obj, _STRUCT_MEMBERS))


def _field_from_json(obj: dict[str, Any], where: str, levels: int) -> NestedField:
    name = unicode_text(required(obj, "name", str, f"a field of {where}"), f"a field of {where}")
    field_where = f"field {name!r} of {where}"
    type_json = obj.get("type")
    if type_json is None:
        raise InvalidMetadataError(f"{field_where} lacks 'type', expected a string or an object")
    field_type = type_from_json(type_json, levels)
    return NestedField(
        field_id=required(obj, "id", int, field_where),
        name=name,
        field_type=field_type,
        required=required(obj, "required", bool, field_where),
        doc=optional(obj, "doc", str, field_where),
        initial_default=_default_from_json(obj, "initial-default", field_type, field_where),
        write_default=_default_from_json(obj, "write-default", field_type, field_where),
        unknown=unknown_members(obj, _FIELD_MEMBERS),
    )


def _default_from_json(
    obj: dict[str, Any], member: str, field_type: IcebergType, where: str
) -> Any:
    value = obj.get(member)
    if value is None:
        return None
    try:
        return from_json(field_type, value)
    except (InvalidMetadataError, UnsupportedFeatureError) as error:
        raise InvalidMetadataError(f"'{member}' of {where}: {error}") from error


def _field_to_json(field: NestedField) -> dict[str, Any]:
    obj: dict[str, Any] = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": type_to_json(field.field_type),
    }
    if field.doc is not None:
        obj["doc"] = field.doc
    if field.initial_default is not None:
        obj["initial-default"] = to_json(field.field_type, field.initial_default)
    if field.write_default is not None:
        obj["write-default"] = to_json(field.field_type, field.write_default)
    obj.update(field.unknown)
    return obj


def _decimal(text: str, precision: str, scale: str) -> DecimalType:
    if not precision.isdecimal() or not scale.removeprefix("-").isdecimal():
        raise _unknown_type(text)
    if len(precision) > 2 or not 1 <= int(precision) <= 38:
        raise InvalidMetadataError(f"type {text!r}: precision must be 1 to 38")
    if len(scale) > 3 or abs(int(scale)) > 38:
        raise InvalidMetadataError(f"type {text!r}: scale must be -38 to 38")
    return DecimalType(int(precision), int(scale))


def _fixed(text: str, length: str) -> FixedType:
    if len(length) > 10 or int(length) >= 2**31:
        raise InvalidMetadataError(f"type {text!r}: the length must be below {2**31}")
    return FixedType(int(length))


def _unknown_type(text: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"type {text!r} is not defined by format versions 1 to 3; a newer release may support it"
    )
