"""Applies table updates to metadata, as Java Iceberg does.

Metadata is never changed in place, and its unchanged parts are shared, not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from icebergds.errors import InvalidMetadataError, InvalidOptionError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import FIRST_PARTITION_FIELD_ID
from icebergds.spec.snapshot import MetadataLogEntry
from icebergds.spec.table_properties import (
    ENCRYPTION_DATA_KEY_LENGTH,
    ENCRYPTION_KEY_ID,
    FORMAT_VERSION,
    METADATA_PREVIOUS_VERSIONS_MAX,
    NEW_FORMAT_VERSION,
)
from icebergds.spec.updates.apply_attributes import (
    add_encryption_key,
    assign_uuid,
    remove_encryption_key,
    remove_partition_statistics,
    remove_properties,
    remove_statistics,
    set_location,
    set_partition_statistics,
    set_properties,
    set_statistics,
    upgrade_format_version,
)
from icebergds.spec.updates.apply_schemas import (
    add_schema,
    add_sort_order,
    check_sort_order,
    remove_schemas,
    set_current_schema,
    set_default_sort_order,
)
from icebergds.spec.updates.apply_snapshots import (
    add_snapshot,
    clean_snapshot_log,
    remove_snapshot_ref,
    remove_snapshots,
    set_snapshot_ref,
)
from icebergds.spec.updates.apply_specs import (
    add_partition_spec,
    check_partition_names,
    check_spec_sources,
    remove_partition_specs,
    set_default_spec,
)
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    TableUpdate,
    UpgradeFormatVersion,
)


def apply_updates(
    metadata: TableMetadata | None, updates: Sequence[TableUpdate], *, now_ms: int
) -> TableMetadata:
    """Applies updates in order.

    Args:
        metadata: None for a new table, whose format version is that of the first
            `UpgradeFormatVersion`, or else 2.
        now_ms: milliseconds since the epoch.

    Returns:
        The new metadata; the same object if nothing changes.

    Raises:
        InvalidMetadataError: an update, or the result of all, breaks the specification.
        InvalidOptionError: a property has a reserved name or a wrong value.
        UnsupportedFeatureError: a format version above 3.
        CommitConflictError: a snapshot was created on an older state of the table.
    """
    base = _empty_table(updates, now_ms) if metadata is None else metadata
    progress = _Progress(base, max(now_ms, base.last_updated_ms), _added_at(updates))
    for update in updates:
        progress = _step(progress, update)
    changed = clean_snapshot_log(progress.metadata, base)
    if changed is metadata:
        return metadata
    _check_result(changed, base)
    last_updated_ms = max(
        progress.now_ms, *(entry.timestamp_ms for entry in changed.snapshot_log[-1:]), 0
    )
    return replace(changed, last_updated_ms=last_updated_ms)


def next_metadata(
    base: TableMetadata | None,
    base_location: str | None,
    updates: Sequence[TableUpdate],
    *,
    now_ms: int,
) -> TableMetadata:
    """The metadata of the next commit after `base`, with `base` in its metadata log.

    Args:
        base: None for a new table.
        base_location: the metadata file of `base`; None leaves it out of the log.
        now_ms: milliseconds since the epoch.

    Returns:
        The new metadata; the same object if nothing changes, so there is nothing to commit.

    Raises what `apply_updates` raises.
    """
    changed = apply_updates(base, updates, now_ms=now_ms)
    kept = METADATA_PREVIOUS_VERSIONS_MAX.of(changed.properties)
    if base is None or base_location is None or changed is base:
        return changed
    log = (*base.metadata_log, MetadataLogEntry(base.last_updated_ms, base_location))
    return replace(changed, metadata_log=log[-max(kept, 1) :])


@dataclass(frozen=True, slots=True)
class _Progress:
    """Metadata after some of the updates, and the ids that `LAST_ADDED` refers to."""

    metadata: TableMetadata
    now_ms: int
    added_at_ms: dict[int, int]
    schema_id: int | None = None
    spec_id: int | None = None
    sort_order_id: int | None = None


def _empty_table(updates: Sequence[TableUpdate], now_ms: int) -> TableMetadata:
    versions = (u.format_version for u in updates if isinstance(u, UpgradeFormatVersion))
    version = next(versions, NEW_FORMAT_VERSION.default)
    empty = TableMetadata(
        format_version=1,
        table_uuid=None,
        location="",
        last_updated_ms=now_ms,
        last_column_id=0,
        schemas=(),
        current_schema_id=_NOT_SET,
        partition_specs=(),
        default_spec_id=_NOT_SET,
        last_partition_id=FIRST_PARTITION_FIELD_ID - 1,
        sort_orders=(),
        default_sort_order_id=_NOT_SET,
    )
    return upgrade_format_version(empty, version)


_NOT_SET = -1


def _added_at(updates: Sequence[TableUpdate]) -> dict[int, int]:
    """The timestamp of each added snapshot, by its id."""
    return {
        u.snapshot.snapshot_id: u.snapshot.timestamp_ms
        for u in updates
        if isinstance(u, AddSnapshot)
    }


def _step(progress: _Progress, update: TableUpdate) -> _Progress:
    metadata = progress.metadata
    match update:
        case AddSchema(schema=schema):
            changed, schema_id = add_schema(metadata, schema)
            return replace(progress, metadata=changed, schema_id=schema_id)
        case AddPartitionSpec(spec=spec):
            changed, spec_id = add_partition_spec(metadata, spec)
            return replace(progress, metadata=changed, spec_id=spec_id)
        case AddSortOrder(sort_order=order):
            changed, order_id = add_sort_order(metadata, order)
            return replace(progress, metadata=changed, sort_order_id=order_id)
        case SetCurrentSchema(schema_id=requested):
            schema_id = _resolve_id(requested, progress.schema_id, "schema")
            return replace(progress, metadata=set_current_schema(metadata, schema_id))
        case SetDefaultSpec(spec_id=requested):
            spec_id = _resolve_id(requested, progress.spec_id, "partition spec")
            return replace(progress, metadata=set_default_spec(metadata, spec_id))
        case SetDefaultSortOrder(sort_order_id=requested):
            order_id = _resolve_id(requested, progress.sort_order_id, "sort order")
            return replace(progress, metadata=set_default_sort_order(metadata, order_id))
        case AddSnapshot(snapshot=snapshot):
            return replace(progress, metadata=add_snapshot(metadata, snapshot, progress.now_ms))
        case SetSnapshotRef(name=name, ref=ref):
            # A rollback makes a snapshot current now, not at its own timestamp.
            changed_at = progress.added_at_ms.get(ref.snapshot_id, progress.now_ms)
            return replace(progress, metadata=set_snapshot_ref(metadata, name, ref, changed_at))
        case _:
            return replace(progress, metadata=_apply(metadata, update))


def _apply(
    metadata: TableMetadata,
    update: AssignUuid
    | UpgradeFormatVersion
    | RemoveSnapshots
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey,
) -> TableMetadata:
    """Applies an update that depends only on the metadata."""
    match update:
        case AssignUuid(uuid=uuid):
            return assign_uuid(metadata, uuid)
        case UpgradeFormatVersion(format_version=version):
            return upgrade_format_version(metadata, version)
        case RemoveSnapshots(snapshot_ids=snapshot_ids):
            return remove_snapshots(metadata, snapshot_ids)
        case RemoveSnapshotRef(name=name):
            return remove_snapshot_ref(metadata, name)
        case SetLocation(location=location):
            return set_location(metadata, location)
        case SetProperties(updates=properties):
            return set_properties(metadata, properties)
        case RemoveProperties(removals=names):
            return remove_properties(metadata, names)
        case SetStatistics(statistics=statistics):
            return set_statistics(metadata, statistics)
        case RemoveStatistics(snapshot_id=snapshot_id):
            return remove_statistics(metadata, snapshot_id)
        case SetPartitionStatistics(partition_statistics=partition_statistics):
            return set_partition_statistics(metadata, partition_statistics)
        case RemovePartitionStatistics(snapshot_id=snapshot_id):
            return remove_partition_statistics(metadata, snapshot_id)
        case RemovePartitionSpecs(spec_ids=spec_ids):
            return remove_partition_specs(metadata, spec_ids)
        case RemoveSchemas(schema_ids=schema_ids):
            return remove_schemas(metadata, schema_ids)
        case AddEncryptionKey(encryption_key=key):
            return add_encryption_key(metadata, key)
        case RemoveEncryptionKey(key_id=key_id):
            return remove_encryption_key(metadata, key_id)
        case _:
            assert_never(update)


def _resolve_id(requested: int, last_added: int | None, what: str) -> int:
    if requested != LAST_ADDED:
        return requested
    if last_added is None:
        raise InvalidMetadataError(
            f"the last added {what} cannot be set: no earlier update in the list adds one"
        )
    return last_added


def _check_encryption(metadata: TableMetadata, base: TableMetadata, *, is_new: bool) -> None:
    """Checks that a table's master key is there from the beginning, and stays."""
    key, before = (ENCRYPTION_KEY_ID.of(each.properties) for each in (metadata, base))
    if metadata.format_version < _ENCRYPTED_SINCE:
        names = (ENCRYPTION_KEY_ID.name, ENCRYPTION_DATA_KEY_LENGTH.name)
        for name in names:
            # What other writers left there can stay, or go: nothing is encrypted by it.
            if metadata.properties.get(name) not in (None, base.properties.get(name)):
                raise InvalidOptionError(
                    f"property {name} needs format version {_ENCRYPTED_SINCE}, and the table has "
                    f"{metadata.format_version}; set {FORMAT_VERSION} = {_ENCRYPTED_SINCE}"
                )
    if is_new or key == before or (key is None and base.format_version < _ENCRYPTED_SINCE):
        return
    if before is None:
        raise InvalidOptionError(
            f"property {ENCRYPTION_KEY_ID.name} cannot be set on a table that exists; create an "
            "encrypted table, and copy the rows"
        )
    verb = "removed" if key is None else f"changed to {key!r}"
    raise InvalidOptionError(
        f"property {ENCRYPTION_KEY_ID.name} = {before!r} cannot be {verb}: the table is encrypted "
        "by this master key; copy the rows to another table"
    )


_ENCRYPTED_SINCE = 3


def _check_result(metadata: TableMetadata, base: TableMetadata) -> None:
    """Checks what must hold after all updates, but not after each single one."""
    missing = [
        name
        for name, absent in (
            ("location", not metadata.location),
            ("current schema", metadata.current_schema_id == _NOT_SET),
            ("default partition spec", metadata.default_spec_id == _NOT_SET),
            ("default sort order", metadata.default_sort_order_id == _NOT_SET),
        )
        if absent
    ]
    if missing:
        raise InvalidMetadataError(f"the new table has no {', no '.join(missing)}")
    is_new = base.current_schema_id == _NOT_SET
    if metadata.table_uuid is None and (metadata.format_version > 1 or is_new):
        raise InvalidMetadataError(
            "the table has no UUID, which new tables and format versions above 1 require; assign "
            "one in the same commit"
        )
    _check_encryption(metadata, base, is_new=is_new)
    # Not checked if unchanged: tables that other writers left invalid can still be updated.
    schema_changed = metadata.current_schema_id != base.current_schema_id
    if schema_changed or metadata.default_spec_id != base.default_spec_id:
        check_spec_sources(metadata.spec(), metadata.schema())
    if schema_changed and not is_new:
        check_partition_names(metadata, base.schema())
    if schema_changed or metadata.default_sort_order_id != base.default_sort_order_id:
        check_sort_order(metadata.sort_order(), metadata.schema())
