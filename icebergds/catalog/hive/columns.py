"""Converts a table's columns to Hive's, as Java Iceberg does.

They are for Hive and for tools that list columns; Iceberg's own readers do not use them.
"""

from __future__ import annotations

from icebergds.catalog.hive.messages import Column
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    StructType,
    TypeId,
)


def hive_columns(schema: Schema, *, hive2_compatible: bool) -> tuple[Column, ...]:
    """The top-level columns of a schema.

    Args:
        hive2_compatible: whether a timestamp with a time zone is one without, because Hive 2 has
            no other.
    """
    return tuple(
        Column(field.name, _type(field.field_type, hive2_compatible), field.doc)
        for field in schema.fields
    )


_ZONED = "timestamp with local time zone"
_PRIMITIVES = {
    TypeId.BOOLEAN: "boolean",
    TypeId.INT: "int",
    TypeId.LONG: "bigint",
    TypeId.FLOAT: "float",
    TypeId.DOUBLE: "double",
    TypeId.DATE: "date",
    TypeId.TIME: "string",
    TypeId.TIMESTAMP: "timestamp",
    TypeId.TIMESTAMPTZ: _ZONED,
    TypeId.TIMESTAMP_NS: "timestamp",
    TypeId.TIMESTAMPTZ_NS: _ZONED,
    TypeId.STRING: "string",
    TypeId.UUID: "string",
    TypeId.FIXED: "binary",
    TypeId.BINARY: "binary",
    TypeId.UNKNOWN: "void",
    # Java Iceberg's `unknown` is not a type that metastores accept.
    TypeId.VARIANT: "binary",
    TypeId.GEOMETRY: "binary",
    TypeId.GEOGRAPHY: "binary",
}


def _type(field_type: IcebergType, hive2: bool) -> str:
    match field_type:
        case StructType(fields=fields):
            inner = ",".join(f"{f.name}:{_type(f.field_type, hive2)}" for f in fields)
            return f"struct<{inner}>"
        case ListType(element_type=element):
            return f"array<{_type(element, hive2)}>"
        case MapType(key_type=key, value_type=value):
            return f"map<{_type(key, hive2)},{_type(value, hive2)}>"
        case DecimalType(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case _:
            text = _PRIMITIVES[field_type.type_id]
            return "timestamp" if hive2 and text == _ZONED else text
