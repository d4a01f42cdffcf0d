"""Describes an Iceberg table to Glue, as Java Iceberg does.

Glue shows columns and their types to people and other tools; only the metadata file is binding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import PATHS
from icebergds.spec.types import (
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TypeId,
)

__all__ = ["METADATA_LOCATION", "PREVIOUS_METADATA_LOCATION", "is_iceberg", "table_input"]

METADATA_LOCATION = "metadata_location"
PREVIOUS_METADATA_LOCATION = "previous_metadata_location"


def is_iceberg(table: Mapping[str, Any]) -> bool:
    """Whether a Glue table is an Iceberg table."""
    return str(table.get("Parameters", {}).get(_TABLE_TYPE, "")).lower() == "iceberg"


def table_input(
    name: str, location: str, metadata: TableMetadata, replaced: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The `TableInput` of a request that creates or changes a table.

    Args:
        location: the metadata file.
        replaced: the table as Glue stores it; its other parameters and its comments are kept.
    """
    old: Mapping[str, Any] = replaced or {}
    parameters = {**old.get("Parameters", {}), _TABLE_TYPE: "ICEBERG", METADATA_LOCATION: location}
    if previous := old.get("Parameters", {}).get(METADATA_LOCATION):
        parameters[PREVIOUS_METADATA_LOCATION] = previous
    result: dict[str, Any] = {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": parameters,
        "StorageDescriptor": {
            "Location": metadata.location,
            "Columns": _columns(metadata, _comments(old)),
            "AdditionalLocations": sorted(
                {metadata.properties[key] for key in PATHS if key in metadata.properties}
            ),
        },
    }
    description = metadata.properties.get("comment", old.get("Description"))
    if description is not None:
        result["Description"] = description[:_MAX_DESCRIPTION]
    return result


_TABLE_TYPE = "table_type"
# Glue refuses longer texts.
_MAX_DESCRIPTION = 2048
_MAX_COMMENT = 255
# Types with other names in Glue.
_TYPES = {
    TypeId.LONG: "bigint",
    TypeId.TIME: "string",
    TypeId.UUID: "string",
    TypeId.FIXED: "binary",
    TypeId.TIMESTAMPTZ: "timestamp",
    TypeId.TIMESTAMP_NS: "timestamp_nano",
    TypeId.TIMESTAMPTZ_NS: "timestamp_nano",
}


def _comments(table: Mapping[str, Any]) -> dict[str, str]:
    """The comments of columns in Glue; for columns of the same name, the first one's."""
    columns = table.get("StorageDescriptor", {}).get("Columns", [])
    return {c["Name"]: c["Comment"] for c in reversed(columns) if c.get("Comment") is not None}


def _columns(metadata: TableMetadata, comments: Mapping[str, str]) -> list[dict[str, Any]]:
    columns: dict[str, dict[str, Any]] = {}
    for field, is_current in _fields(metadata):
        if field.name in columns:
            continue
        column: dict[str, Any] = {
            "Name": field.name,
            "Type": _type_text(field.field_type),
            "Parameters": {
                "iceberg.field.id": str(field.field_id),
                "iceberg.field.optional": str(not field.required).lower(),
                "iceberg.field.current": str(is_current).lower(),
            },
        }
        if comment := field.doc or comments.get(field.name):
            column["Comment"] = comment[:_MAX_COMMENT]
        columns[field.name] = column
    return list(columns.values())


def _fields(metadata: TableMetadata) -> Iterator[tuple[NestedField, bool]]:
    """The columns of the current schema, then those of the other schemas."""
    for field in metadata.schema().fields:
        yield field, True
    for schema in metadata.schemas:
        if schema.schema_id != metadata.current_schema_id:
            for field in schema.fields:
                yield field, False


def _type_text(kind: IcebergType) -> str:
    match kind:
        case StructType():
            fields = ",".join(f"{f.name}:{_type_text(f.field_type)}" for f in kind.fields)
            return f"struct<{fields}>"
        case ListType():
            return f"array<{_type_text(kind.element_type)}>"
        case MapType():
            return f"map<{_type_text(kind.key_type)},{_type_text(kind.value_type)}>"
        case DecimalType():
            return f"decimal({kind.precision},{kind.scale})"
        case _:
            return _TYPES.get(kind.type_id, kind.type_id.value)
