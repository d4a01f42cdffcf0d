"""Builds the snapshot that one attempt commits (spec: Snapshots)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from icebergds.commit.base import CommitBase
from icebergds.commit.new_manifests import UNASSIGNED
from icebergds.commit.operations import Change
from icebergds.commit.options import CommitOptions
from icebergds.commit.summary import complete_summary
from icebergds.commit.workspace import Workspace, WrittenFile
from icebergds.errors import InvalidOptionError
from icebergds.formats.manifests.manifest_list import write_manifest_list
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.manifest import ManifestContent, ManifestFile
from icebergds.spec.snapshot import (
    CONVERSION_PROGRESS,
    MAIN_BRANCH,
    OWN_OPERATION,
    RefType,
    Snapshot,
    SnapshotRef,
)
from icebergds.spec.table_properties import MANIFEST_COMPRESSION
from icebergds.spec.updates.requirements import (
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
)
from icebergds.spec.updates.table_updates import (
    AddEncryptionKey,
    AddSnapshot,
    SetSnapshotRef,
    TableUpdate,
)
from icebergds.spec.values.dates import now_ms

_RESERVED = {
    OWN_OPERATION: "readers of changes skip snapshots by it",
    CONVERSION_PROGRESS: "conversions of equality deletes rely on it",
}


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """What an action produces: the content of the new snapshot.

    Attributes:
        operation: append, replace, overwrite or delete.
        manifests: of the new snapshot, in order; those that the commit wrote have the sequence
            number `UNASSIGNED`.
        changes: summary entries for the added and removed files; totals among them are kept.
        updates: other changes of the table in the same commit.
    """

    operation: str
    manifests: Sequence[ManifestFile]
    changes: Mapping[str, str]
    updates: Sequence[TableUpdate] = ()


def snapshot_change(
    work: Workspace, base: CommitBase, new: NewSnapshot, options: CommitOptions
) -> tuple[Change, Snapshot]:
    """Writes the manifest list of an attempt.

    Returns the change that adds the snapshot to the table, and the snapshot.

    Raises:
        ValidationError: the table no longer has the partition spec of a manifest.
        InvalidOptionError: the options have a snapshot property with a reserved name.
    """
    metadata = base.metadata
    before = {manifest.manifest_path for manifest in base.manifests}
    for manifest in new.manifests:
        if manifest.manifest_path not in before:
            # An earlier attempt may have written it, and expiry removes specs without files.
            base.spec(manifest.partition_spec_id)
    manifests = [
        _with_sequence_number(manifest, base.sequence_number) for manifest in new.manifests
    ]
    first_row_id = added_rows = None
    if metadata.format_version >= 3:
        first_row_id = metadata.next_row_id
        manifests, next_row_id = _with_row_ids(manifests, first_row_id)
        added_rows = next_row_id - first_row_id
    parent_id = None if base.parent is None else base.parent.snapshot_id
    data = write_manifest_list(
        manifests,
        format_version=metadata.format_version,
        snapshot_id=work.snapshot_id,
        parent_snapshot_id=parent_id,
        sequence_number=base.sequence_number,
        first_row_id=first_row_id,
        codec=MANIFEST_COMPRESSION.of(metadata.properties),
    )
    paths = [manifest.manifest_path for manifest in manifests]
    written = work.write_manifest_list(metadata, data, paths)
    keys = _list_keys(base, written)
    properties = dict(options.snapshot_properties)
    for name, use in _RESERVED.items():
        if name in properties:
            raise InvalidOptionError(
                f"snapshot property {name!r} is reserved, because {use}; choose another name"
            )
    if options.wap_id is not None:
        properties["wap.id"] = options.wap_id
    if options.idempotent_write is not None:
        properties |= options.idempotent_write.summary()
    snapshot = Snapshot(
        snapshot_id=work.snapshot_id,
        parent_snapshot_id=parent_id,
        sequence_number=base.sequence_number,
        # Snapshot timestamps must not decrease, even if this clock is behind another writer's.
        timestamp_ms=max(now_ms(), metadata.last_updated_ms),
        manifest_list=written.location,
        summary=complete_summary(
            new.operation,
            {**new.changes, **_manifest_counts(base, manifests)},
            properties,
            base.parent,
        ),
        schema_id=metadata.current_schema_id,
        first_row_id=first_row_id,
        added_rows=added_rows,
        key_id=keys[-1].key_id if keys else None,
    )
    # A snapshot may only refer to keys that the table has.
    updates: list[TableUpdate] = [*map(AddEncryptionKey, keys), AddSnapshot(snapshot)]
    if options.wap_id is None:
        updates.append(SetSnapshotRef(base.branch, _branch_at(base, snapshot.snapshot_id)))
    if options.idempotent_write is not None:
        updates += options.idempotent_write.property_updates(metadata, base.branch, snapshot)
    updates += new.updates
    return Change(_requirements(base), updates), snapshot


def _list_keys(base: CommitBase, written: WrittenFile) -> tuple[EncryptedKey, ...]:
    """The keys to add to the table with an encrypted manifest list, that of the list last."""
    if written.key is None:
        return ()
    assert base.state.keys is not None, "the base is checked to have keys"
    return base.state.keys.new_list_keys(base.metadata, written.key, now_ms())


def _with_sequence_number(manifest: ManifestFile, sequence_number: int) -> ManifestFile:
    # Of this attempt: with that of an earlier one, equality deletes would miss older rows
    # (invariant NoRowResurrected of docs/commit-model.md).
    if manifest.sequence_number != UNASSIGNED:
        return manifest
    least = manifest.min_sequence_number
    return replace(
        manifest,
        sequence_number=sequence_number,
        min_sequence_number=sequence_number if least == UNASSIGNED else least,
    )


def _with_row_ids(
    manifests: Iterable[ManifestFile], next_row_id: int
) -> tuple[list[ManifestFile], int]:
    """Assigns first row ids to data manifests without one (spec: First Row ID Assignment).

    Returns the manifests, and the next free row id.
    """
    assigned = []
    for manifest in manifests:
        if manifest.content is ManifestContent.DATA and manifest.first_row_id is None:
            manifest = replace(manifest, first_row_id=next_row_id)
            next_row_id += (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
        assigned.append(manifest)
    return assigned, next_row_id


def _manifest_counts(base: CommitBase, manifests: Iterable[ManifestFile]) -> dict[str, str]:
    before = {manifest.manifest_path for manifest in base.manifests}
    # A manifest with only removed files is dropped, which does not count as replaced.
    live = {
        m.manifest_path for m in base.manifests if m.added_files_count or m.existing_files_count
    }
    after = {manifest.manifest_path for manifest in manifests}
    return {
        "manifests-created": str(len(after - before)),
        "manifests-kept": str(len(after & before)),
        "manifests-replaced": str(len(live - after)),
    }


def _branch_at(base: CommitBase, snapshot_id: int) -> SnapshotRef:
    """The branch at its new snapshot, with its retention unchanged."""
    ref = base.metadata.refs.get(base.branch)
    if ref is None:
        return SnapshotRef(snapshot_id, RefType.BRANCH)
    return replace(ref, snapshot_id=snapshot_id)


def _requirements(base: CommitBase) -> list[TableRequirement]:
    uuid = base.metadata.table_uuid
    head, parent = base.branch_head, base.parent
    # A new branch has files of main's head, which may expire as soon as main has another one.
    main = [AssertRefSnapshotId(MAIN_BRANCH, parent.snapshot_id)] if parent and not head else []
    return [
        *([] if uuid is None else [AssertTableUuid(uuid)]),
        AssertRefSnapshotId(base.branch, None if head is None else head.snapshot_id),
        *main,
    ]
