"""Small tables as metadata alone, and what commits do to them."""

from __future__ import annotations

from typing import Any

from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, Snapshot, SnapshotRef
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import parse_transform
from icebergds.spec.types import (
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    ListType,
    NestedField,
    StructType,
)
from icebergds.spec.updates.apply_updates import apply_updates, next_metadata
from icebergds.spec.updates.new_table import new_table_updates
from icebergds.spec.updates.table_updates import AddSnapshot, SetSnapshotRef, TableUpdate

START_MS = 1_700_000_000_000
UUID = "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94"
POINT = StructType((NestedField(7, "x", INT, required=True), NestedField(8, "y", INT)))
SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "ts", TIMESTAMP),
        NestedField(3, "name", STRING),
        NestedField(4, "tags", ListType(6, STRING)),
        NestedField(5, "point", POINT, required=True),
    )
)


def part(source_id: int, transform: str, name: str, field_id: int = 0) -> PartitionField:
    return PartitionField((source_id,), field_id, parse_transform(transform), name)


def spec(*fields: PartitionField) -> PartitionSpec:
    return PartitionSpec(0, fields)


def sort_by(source_id: int, transform: str = "identity") -> SortOrder:
    field = SortField(
        (source_id,), parse_transform(transform), SortDirection.ASC, NullOrder.NULLS_FIRST
    )
    return SortOrder(1, (field,))


def new_table(format_version: int = 2, **options: Any) -> TableMetadata:
    options = {"schema": SCHEMA, "location": "s3://b/t", "table_uuid": UUID, **options}
    updates = new_table_updates(options.pop("schema"), format_version=format_version, **options)
    return apply_updates(None, updates, now_ms=START_MS)


def changed(
    metadata: TableMetadata, *updates: TableUpdate, now_ms: int | None = None
) -> TableMetadata:
    now = metadata.last_updated_ms if now_ms is None else now_ms
    return apply_updates(metadata, updates, now_ms=now)


def snapshot(metadata: TableMetadata, snapshot_id: int, **members: Any) -> Snapshot:
    """A snapshot that the table can take next, made a second after its last change."""
    version = metadata.format_version
    defaults: dict[str, Any] = {
        "timestamp_ms": metadata.last_updated_ms + 1000,
        "sequence_number": 0 if version == 1 else metadata.last_sequence_number + 1,
        "parent_snapshot_id": metadata.current_snapshot_id,
        "manifest_list": f"s3://b/t/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append"},
        "schema_id": metadata.current_schema_id,
        "first_row_id": metadata.next_row_id if version >= 3 else None,
        "added_rows": 10 if version >= 3 else None,
    }
    return Snapshot(snapshot_id, **{**defaults, **members})


def branch(snapshot_id: int, **retention: Any) -> SnapshotRef:
    return SnapshotRef(snapshot_id, RefType.BRANCH, **retention)


def tag(snapshot_id: int, **retention: Any) -> SnapshotRef:
    return SnapshotRef(snapshot_id, RefType.TAG, **retention)


def commit(metadata: TableMetadata, snapshot_id: int, **members: Any) -> TableMetadata:
    """The table after a snapshot became the current one."""
    added = snapshot(metadata, snapshot_id, **members)
    updates = (AddSnapshot(added), SetSnapshotRef(MAIN_BRANCH, branch(snapshot_id)))
    return next_metadata(
        metadata,
        f"s3://b/t/metadata/{metadata.last_updated_ms}.metadata.json",
        updates,
        now_ms=added.timestamp_ms,
    )


def table_with(*snapshot_ids: int, format_version: int = 2, **options: Any) -> TableMetadata:
    """A table whose main branch went through some snapshots."""
    metadata = new_table(format_version, **options)
    for snapshot_id in snapshot_ids:
        metadata = commit(metadata, snapshot_id)
    return metadata
