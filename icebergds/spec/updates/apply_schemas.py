"""Applies updates of schemas: adds, sets the current one, removes."""

from __future__ import annotations

from dataclasses import replace

from icebergds.errors import InvalidMetadataError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.updates.schema_rules import check_schema


def add_schema(metadata: TableMetadata, schema: Schema) -> tuple[TableMetadata, int]:
    """Adds a schema; returns the metadata and the schema's id, that of an equal schema if any.

    Raises InvalidMetadataError if the table's format version does not support the schema.
    """
    check_schema(schema, metadata.format_version)
    same = next((known for known in metadata.schemas if known.has_same_columns(schema)), None)
    if same is not None:
        return metadata, same.schema_id
    schema_id = max((known.schema_id for known in metadata.schemas), default=-1) + 1
    added = replace(schema, schema_id=schema_id)
    changed = replace(
        metadata,
        schemas=(*metadata.schemas, added),
        last_column_id=max(metadata.last_column_id, schema.highest_field_id),
    )
    return changed, schema_id


def set_current_schema(metadata: TableMetadata, schema_id: int) -> TableMetadata:
    """Sets the current schema.

    Raises InvalidMetadataError if there is no such schema.
    """
    if schema_id == metadata.current_schema_id:
        return metadata
    metadata.schema_by_id(schema_id)
    return replace(metadata, current_schema_id=schema_id)


def remove_schemas(metadata: TableMetadata, schema_ids: tuple[int, ...]) -> TableMetadata:
    """Removes schemas; missing ones are ignored.

    Raises InvalidMetadataError if one is the current schema or the schema of a snapshot.
    """
    removed = set(schema_ids) & metadata.schemas_by_id.keys()
    if not removed:
        return metadata
    if metadata.current_schema_id in removed:
        raise InvalidMetadataError(
            f"schema {metadata.current_schema_id} is the current schema and cannot be removed"
        )
    for snapshot in metadata.snapshots:
        if snapshot.schema_id in removed:
            raise InvalidMetadataError(
                f"schema {snapshot.schema_id} is the schema of snapshot {snapshot.snapshot_id} and "
                "cannot be removed"
            )
    kept = tuple(schema for schema in metadata.schemas if schema.schema_id not in removed)
    return replace(metadata, schemas=kept)
