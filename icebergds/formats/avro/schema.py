"""Parses Avro schemas, and what schemas are made of (spec: Appendix A, Avro)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icebergds.spec.types import (
    UUID,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ScalarType,
    TypeId,
)

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True, slots=True)
class AvroPrimitive:
    """A type without children. `kind` is Avro's name; `size` is only set for `fixed`.

    The logical type is kept as written: `decimal`, `date`, `uuid`, ...
    """

    kind: str
    size: int = 0
    logical_type: str | None = None
    precision: int = 0
    scale: int = 0
    adjust_to_utc: bool = False


@dataclass(frozen=True, slots=True)
class AvroField:
    """A record's field; `name` is Iceberg's if the Avro name had to be sanitised."""

    name: str
    avro_name: str
    field_id: int | None
    node: AvroNode


@dataclass(frozen=True, slots=True)
class AvroRecord:
    fields: tuple[AvroField, ...]


@dataclass(frozen=True, slots=True)
class AvroArray:
    items: AvroNode


@dataclass(frozen=True, slots=True)
class AvroMap:
    values: AvroNode


@dataclass(frozen=True, slots=True)
class AvroUnion:
    branches: tuple[AvroNode, ...]


AvroNode = AvroPrimitive | AvroRecord | AvroArray | AvroMap | AvroUnion
AVRO_NULL = AvroPrimitive("null")


def parse_avro_schema(text: str) -> AvroNode:
    """Parses the schema in a container's header.

    Raises:
        ValueError: it is not a valid schema, or is recursive.
    """
    try:
        return _parse(json.loads(text), {}, "")
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"a part of the Avro schema is missing or invalid: {error}") from error


def without_null(node: AvroNode) -> AvroNode:
    """The type of an optional value, or the node itself."""
    if isinstance(node, AvroUnion):
        others = [branch for branch in node.branches if branch != AVRO_NULL]
        if len(others) == 1:
            return others[0]
    return node


def writer_schema(text: str) -> Any:
    """The schema as JSON without defaults, which mean nothing to readers of the writer's values.

    Some writers give required fields a null or another default that Avro does not allow.
    """
    return _without(json.loads(text), frozenset({"default"}))


def physical_schema(text: str) -> Any:
    """`writer_schema` without logical types, so that decoders return stored values."""
    return _without(json.loads(text), frozenset({"default", "logicalType"}))


_TYPES: dict[TypeId, Any] = {
    TypeId.UNKNOWN: "null",
    TypeId.BOOLEAN: "boolean",
    TypeId.INT: "int",
    TypeId.LONG: "long",
    TypeId.FLOAT: "float",
    TypeId.DOUBLE: "double",
    TypeId.DATE: {"type": "int", "logicalType": "date"},
    TypeId.TIME: {"type": "long", "logicalType": "time-micros"},
    TypeId.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    TypeId.TIMESTAMPTZ: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    TypeId.TIMESTAMP_NS: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    TypeId.TIMESTAMPTZ_NS: {
        "type": "long",
        "logicalType": "timestamp-nanos",
        "adjust-to-utc": True,
    },
    TypeId.STRING: "string",
    TypeId.BINARY: "bytes",
}


class ScalarTypes:
    """The Avro types of scalars in a schema. Named types are defined once, then referenced."""

    def __init__(self) -> None:
        self._defined: set[str] = set()

    def of(self, field_type: ScalarType) -> Any:
        match field_type:
            case DecimalType(precision=precision, scale=scale):
                logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
                size = decimal_size(precision)
                return self._fixed(f"decimal_{precision}_{scale}", size, logical)
            case FixedType(length=length):
                return self._fixed(f"fixed_{length}", length, {})
            case GeometryType() | GeographyType():
                return "bytes"
            case _ if field_type == UUID:
                return self._fixed("uuid_fixed", 16, {"logicalType": "uuid"})
            case _:
                return _TYPES[field_type.type_id]

    def _fixed(self, name: str, size: int, logical: dict[str, Any]) -> Any:
        if name in self._defined:
            return name
        self._defined.add(name)
        return {"type": "fixed", "name": name, "size": size, **logical}


def decimal_size(precision: int) -> int:
    """The fewest bytes that hold every decimal of a precision (spec: Avro, decimal)."""
    return int(10**precision - 1).bit_length() // 8 + 1


def avro_name(name: str) -> str:
    """A name that is valid in Avro, sanitised as in Java: each name in its own way."""
    first, rest = name[:1], name[1:]
    if not re.match(r"[A-Za-z_]", first):
        first = f"_{first}" if first.isdigit() and first.isascii() else _escaped(first)
    return first + re.sub(r"[^A-Za-z0-9_]", lambda match: _escaped(match[0]), rest)


def _escaped(character: str) -> str:
    return f"_x{ord(character):X}" if character else "_"


def _parse(obj: Any, named: dict[str, AvroNode], namespace: str) -> AvroNode:
    if isinstance(obj, list):
        return AvroUnion(tuple(_parse(branch, named, namespace) for branch in obj))
    if isinstance(obj, str):
        if obj in _PRIMITIVES:
            return AvroPrimitive(obj)
        found = named.get(_full_name(obj, namespace)) or named.get(obj)
        if found is None:
            raise ValueError(f"the Avro schema uses {obj!r} before it is defined")
        return found
    if not isinstance(obj, Mapping) or "type" not in obj:
        raise ValueError(f"not an Avro type: {obj!r}")
    match obj["type"]:
        case "record" | "error":
            name = _full_name(str(obj.get("name", "")), str(obj.get("namespace", namespace)))
            inner = name.rpartition(".")[0]
            record = AvroRecord(tuple(_parse_field(field, named, inner) for field in obj["fields"]))
            named[name] = record
            return record
        case "array":
            return AvroArray(_parse(obj["items"], named, namespace))
        case "map":
            return AvroMap(_parse(obj["values"], named, namespace))
        case "enum":
            named[_full_name(str(obj["name"]), namespace)] = node = AvroPrimitive("enum")
            return node
        case "fixed":
            fixed = _parse_primitive("fixed", obj)
            named[_full_name(str(obj["name"]), str(obj.get("namespace", namespace)))] = fixed
            return fixed
        case str(kind) if kind in _PRIMITIVES:
            return _parse_primitive(kind, obj)
        case other:
            return _parse(other, named, namespace)


def _parse_field(obj: Mapping[str, Any], named: dict[str, AvroNode], namespace: str) -> AvroField:
    field_id = obj.get("field-id")
    return AvroField(
        name=obj.get("iceberg-field-name", obj["name"]),
        avro_name=obj["name"],
        field_id=None if field_id is None else int(field_id),
        node=_parse(obj["type"], named, namespace),
    )


def _parse_primitive(kind: str, obj: Mapping[str, Any]) -> AvroPrimitive:
    return AvroPrimitive(
        kind=kind,
        size=int(obj.get("size", 0)),
        logical_type=obj.get("logicalType"),
        precision=int(obj.get("precision", 0)),
        scale=int(obj.get("scale", 0)),
        adjust_to_utc=bool(obj.get("adjust-to-utc", False)),
    )


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _without(obj: Any, attributes: frozenset[str]) -> Any:
    match obj:
        case list():
            return [_without(item, attributes) for item in obj]
        case dict():
            return {k: _without(v, attributes) for k, v in obj.items() if k not in attributes}
        case _:
            return obj
