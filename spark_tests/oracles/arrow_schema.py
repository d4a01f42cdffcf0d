"""Arrow schemas with Iceberg's field ids, and short forms to spell Iceberg schemas in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import pyarrow as pa

IcebergType = str | Mapping[str, Any]

_PRIMITIVES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "uuid": pa.uuid(),
    "binary": pa.binary(),
    "unknown": pa.null(),
}


def struct(*fields: tuple[str, Any]) -> dict[str, Any]:
    """A struct type without ids; a name that ends with "!" is a required field."""
    return {
        "type": "struct",
        "fields": [
            {"name": name.removesuffix("!"), "required": name.endswith("!"), "type": kind}
            for name, kind in fields
        ],
    }


def list_of(element: IcebergType, *, required: bool = False) -> dict[str, Any]:
    """A list type without ids."""
    return {"type": "list", "element": element, "element-required": required}


def map_of(key: IcebergType, value: IcebergType, *, required: bool = False) -> dict[str, Any]:
    """A map type without ids; `required` is about the values."""
    return {"type": "map", "key": key, "value": value, "value-required": required}


def numbered(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with fresh ids, breadth first, the way a new table gets them."""
    ids = count(1)
    return {"schema-id": 0, **_numbered(schema, ids)}


def arrow_schema(schema: Mapping[str, Any]) -> pa.Schema:
    """The Arrow schema of an Iceberg schema in JSON form, without its unknown columns."""
    return pa.schema(_arrow_fields(schema["fields"]))


def _numbered(kind: Any, ids: Iterator[int]) -> Any:
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "struct":
            own = [{"id": next(ids), **field} for field in kind["fields"]]
            fields = [{**field, "type": _numbered(field["type"], ids)} for field in own]
            return {"type": "struct", "fields": fields}
        case "list":
            named = {"element-id": next(ids)}
            return {**kind, **named, "element": _numbered(kind["element"], ids)}
        case _:
            named = {"key-id": next(ids), "value-id": next(ids)}
            key, value = _numbered(kind["key"], ids), _numbered(kind["value"], ids)
            return {**kind, **named, "key": key, "value": value}


def _arrow_fields(fields: Sequence[Mapping[str, Any]]) -> list[pa.Field]:
    return [
        _arrow_field(field["name"], field["type"], field["id"], required=field["required"])
        for field in fields
        if field["type"] not in ("unknown", "variant")
    ]


def _arrow_field(name: str, kind: IcebergType, field_id: int, *, required: bool) -> pa.Field:
    metadata = {"PARQUET:field_id": str(field_id)}
    return pa.field(name, _arrow_type(kind), nullable=not required, metadata=metadata)


def _arrow_type(kind: IcebergType) -> pa.DataType:
    if isinstance(kind, str):
        return _arrow_primitive(kind)
    match kind["type"]:
        case "struct":
            return pa.struct(_arrow_fields(kind["fields"]))
        case "list":
            required = kind["element-required"]
            return pa.list_(
                _arrow_field("element", kind["element"], kind["element-id"], required=required)
            )
        case _:
            required = kind["value-required"]
            return pa.map_(
                _arrow_field("key", kind["key"], kind["key-id"], required=True),
                _arrow_field("value", kind["value"], kind["value-id"], required=required),
            )


def _arrow_primitive(kind: str) -> pa.DataType:
    if kind.startswith("decimal"):
        precision, scale = kind.removeprefix("decimal(").rstrip(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    if kind.startswith("fixed"):
        return pa.binary(int(kind.removeprefix("fixed[").rstrip("]")))
    if kind.startswith("geo"):
        return pa.binary()
    return _PRIMITIVES[kind]
