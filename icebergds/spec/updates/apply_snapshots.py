"""Applies updates of snapshots, references and the snapshot log (spec: Snapshots)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from icebergds.errors import CommitConflictError, InvalidMetadataError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import MAIN_BRANCH, RefType, Snapshot, SnapshotLogEntry, SnapshotRef

CLOCK_SKEW_MS = 60_000
"""How much the clocks of writers may differ: other readers refuse logs that go back further."""


def add_snapshot(metadata: TableMetadata, snapshot: Snapshot, now_ms: int) -> TableMetadata:
    """Adds a snapshot without a reference to it.

    Raises:
        InvalidMetadataError: the id is taken, or the snapshot lacks a field that the table's format
            version requires.
        CommitConflictError: a concurrent commit has used its sequence number or row ids.
    """
    _check_snapshot(metadata, snapshot, now_ms)
    changed = replace(
        metadata,
        snapshots=(*metadata.snapshots, snapshot),
        last_sequence_number=max(metadata.last_sequence_number, snapshot.sequence_number),
    )
    if metadata.format_version < 3:
        return changed
    return replace(changed, next_row_id=_next_row_id(metadata, snapshot))


def set_snapshot_ref(
    metadata: TableMetadata, name: str, ref: SnapshotRef, changed_at_ms: int
) -> TableMetadata:
    """Sets a branch or tag to a snapshot.

    Args:
        changed_at_ms: if `name` is the main branch, since when the snapshot is the current one.

    Raises:
        InvalidMetadataError: there is no such snapshot, or the reference is invalid.
    """
    if metadata.refs.get(name) == ref:
        return metadata
    _check_ref(metadata, name, ref)
    changed = replace(metadata, refs={**metadata.refs, name: ref})
    if name != MAIN_BRANCH or ref.snapshot_id == metadata.current_snapshot_id:
        return changed
    _check_log_order(metadata, ref.snapshot_id, changed_at_ms)
    return replace(
        changed,
        current_snapshot_id=ref.snapshot_id,
        snapshot_log=(
            *metadata.snapshot_log,
            SnapshotLogEntry(changed_at_ms, ref.snapshot_id),
        ),
    )


def remove_snapshot_ref(metadata: TableMetadata, name: str) -> TableMetadata:
    """Removes a branch or tag; without a main branch, the table has no current snapshot."""
    if name not in metadata.refs:
        return metadata
    return _with_refs(metadata, {kept: ref for kept, ref in metadata.refs.items() if kept != name})


def remove_snapshots(metadata: TableMetadata, snapshot_ids: tuple[int, ...]) -> TableMetadata:
    """Removes snapshots with their references and statistics; missing ones are ignored."""
    removed = set(snapshot_ids) & metadata.snapshots_by_id.keys()
    if not removed:
        return metadata
    changed = replace(
        metadata,
        snapshots=tuple(s for s in metadata.snapshots if s.snapshot_id not in removed),
        statistics=tuple(s for s in metadata.statistics if s.snapshot_id not in removed),
        partition_statistics=tuple(
            s for s in metadata.partition_statistics if s.snapshot_id not in removed
        ),
    )
    kept = {name: ref for name, ref in metadata.refs.items() if ref.snapshot_id not in removed}
    return changed if len(kept) == len(metadata.refs) else _with_refs(changed, kept)


def clean_snapshot_log(metadata: TableMetadata, base: TableMetadata) -> TableMetadata:
    """Cleans up the snapshot log after all updates to `base` are applied.

    Drops new snapshots that were current only in between the updates: readers never saw them. If a
    snapshot in the log was removed, drops its entry and all older ones: otherwise an older snapshot
    would seem to have been current at its time (spec: Table Metadata Fields, `snapshot-log`).
    """
    before, present = base.snapshots_by_id, metadata.snapshots_by_id
    old = base.snapshot_log
    if any(snapshot_id not in present for snapshot_id in before):
        gone = [i for i, entry in enumerate(old) if entry.snapshot_id not in present]
        old = old[gone[-1] + 1 :] if gone else old
    new = tuple(
        entry
        for entry in metadata.snapshot_log[len(base.snapshot_log) :]
        if entry.snapshot_id == metadata.current_snapshot_id
        or (entry.snapshot_id in before and entry.snapshot_id in present)
    )
    log = (*old, *new)
    return metadata if log == metadata.snapshot_log else replace(metadata, snapshot_log=log)


def _with_refs(metadata: TableMetadata, refs: Mapping[str, SnapshotRef]) -> TableMetadata:
    current = metadata.current_snapshot_id if MAIN_BRANCH in refs else None
    return replace(metadata, refs=refs, current_snapshot_id=current)


def _check_snapshot(metadata: TableMetadata, snapshot: Snapshot, now_ms: int) -> None:
    what = f"snapshot {snapshot.snapshot_id}"
    version = metadata.format_version
    if snapshot.snapshot_id in metadata.snapshots_by_id:
        raise InvalidMetadataError(f"{what} is already in the table")
    if snapshot.snapshot_id < 0:
        raise InvalidMetadataError(f"{what}: ids must not be negative")
    if snapshot.schema_id is not None and snapshot.schema_id not in metadata.schemas_by_id:
        raise InvalidMetadataError(
            f"{what} has schema {snapshot.schema_id}, but the table has only schemas "
            f"{sorted(metadata.schemas_by_id)}"
        )
    if snapshot.key_id is not None and snapshot.key_id not in _key_ids(metadata):
        raise InvalidMetadataError(f"{what} needs encryption key {snapshot.key_id!r}; add it first")
    latest = max(now_ms, metadata.last_updated_ms) + CLOCK_SKEW_MS
    if not 0 <= snapshot.timestamp_ms <= latest:
        raise InvalidMetadataError(
            f"the timestamp of {what}, {snapshot.timestamp_ms} ms, is not between 1970 and now "
            f"({now_ms} ms)"
        )
    if version == 1:
        if snapshot.sequence_number != 0:
            raise InvalidMetadataError(
                f"{what} has sequence number {snapshot.sequence_number}, expected 0 in format "
                "version 1"
            )
        return
    if snapshot.manifest_list is None:
        raise InvalidMetadataError(
            f"{what} has no manifest list, which format version {version} requires"
        )
    if "operation" not in snapshot.summary:
        raise InvalidMetadataError(
            f"the summary of {what} has no 'operation', which format version {version} requires"
        )
    if snapshot.sequence_number <= metadata.last_sequence_number:
        raise CommitConflictError(
            f"{what} has sequence number {snapshot.sequence_number}, not above the table's last "
            f"sequence number, {metadata.last_sequence_number}; another commit came first"
        )


def _key_ids(metadata: TableMetadata) -> set[str]:
    return {key.key_id for key in metadata.encryption_keys}


def _next_row_id(metadata: TableMetadata, snapshot: Snapshot) -> int:
    """The table's next row id after a snapshot (spec: Row Lineage, Snapshot Row IDs)."""
    what = f"snapshot {snapshot.snapshot_id}"
    if snapshot.first_row_id is None or snapshot.added_rows is None:
        raise InvalidMetadataError(
            f"{what} has first-row-id {snapshot.first_row_id} and added-rows "
            f"{snapshot.added_rows}, but format version 3 requires both"
        )
    if snapshot.added_rows < 0:
        raise InvalidMetadataError(f"{what} has added-rows {snapshot.added_rows}, below 0")
    if snapshot.first_row_id < metadata.next_row_id:
        raise CommitConflictError(
            f"{what} has first-row-id {snapshot.first_row_id}, below the table's next-row-id, "
            f"{metadata.next_row_id}; another commit came first"
        )
    return snapshot.first_row_id + snapshot.added_rows


def _check_ref(metadata: TableMetadata, name: str, ref: SnapshotRef) -> None:
    what = f"{ref.ref_type} {name!r}"
    if ref.snapshot_id not in metadata.snapshots_by_id:
        raise InvalidMetadataError(
            f"{what} cannot be set to snapshot {ref.snapshot_id}, which the table does not have"
        )
    if name == MAIN_BRANCH and ref.ref_type is not RefType.BRANCH:
        raise InvalidMetadataError(f"{MAIN_BRANCH!r} must be a branch, not a {ref.ref_type}")
    snapshot_retention = (ref.min_snapshots_to_keep, ref.max_snapshot_age_ms)
    if ref.ref_type is RefType.TAG and snapshot_retention != (None, None):
        raise InvalidMetadataError(
            f"{what} cannot have min-snapshots-to-keep or max-snapshot-age-ms; only branches can"
        )
    for limit in (*snapshot_retention, ref.max_ref_age_ms):
        if limit is not None and limit <= 0:
            raise InvalidMetadataError(
                f"the retention of {what} is {limit}, expected a number above 0"
            )


def _check_log_order(metadata: TableMetadata, snapshot_id: int, changed_at_ms: int) -> None:
    if not metadata.snapshot_log:
        return
    last = metadata.snapshot_log[-1]
    if changed_at_ms < last.timestamp_ms - CLOCK_SKEW_MS:
        raise InvalidMetadataError(
            f"snapshot {snapshot_id} of {changed_at_ms} ms cannot become current after snapshot "
            f"{last.snapshot_id}, current since {last.timestamp_ms} ms; check the writers' clocks"
        )
