"""Applies updates of schemas and sort orders (spec: Schemas, Sorting)."""

from __future__ import annotations

from dataclasses import replace

from icebergds.errors import InvalidMetadataError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder
from icebergds.spec.transforms import UnknownTransform
from icebergds.spec.updates.schema_rules import check_schema, check_source_columns


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


def add_sort_order(metadata: TableMetadata, order: SortOrder) -> tuple[TableMetadata, int]:
    """Adds a sort order; returns the metadata and the order's id, 0 if it is unsorted.

    Raises InvalidMetadataError if it does not fit the current schema.
    """
    same = next((known for known in metadata.sort_orders if known.fields == order.fields), None)
    if same is not None:
        return metadata, same.order_id
    if not order.is_sorted:
        added = SortOrder()
    else:
        check_sort_order(order, metadata.schema())
        for field in order.fields:
            if isinstance(field.transform, UnknownTransform):
                raise InvalidMetadataError(
                    f"the sort order's transform {field.transform} is unknown"
                )
        highest = max((known.order_id for known in metadata.sort_orders), default=0)
        added = replace(order, order_id=highest + 1)
    return replace(metadata, sort_orders=(*metadata.sort_orders, added)), added.order_id


def set_default_sort_order(metadata: TableMetadata, order_id: int) -> TableMetadata:
    """Sets the default sort order.

    Raises InvalidMetadataError if there is no such order.
    """
    if order_id == metadata.default_sort_order_id:
        return metadata
    known = sorted(order.order_id for order in metadata.sort_orders)
    if order_id not in known:
        raise InvalidMetadataError(
            f"sort order {order_id} cannot be the default: the table has only sort orders {known}"
        )
    return replace(metadata, default_sort_order_id=order_id)


def check_sort_order(order: SortOrder, schema: Schema) -> None:
    """Raises InvalidMetadataError if a sort order does not fit a schema."""
    for position, field in enumerate(order.fields, 1):
        what = f"field {position} of the sort order"
        check_source_columns(field.source_ids, field.transform, schema, what)
