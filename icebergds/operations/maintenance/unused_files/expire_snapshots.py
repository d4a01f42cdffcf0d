"""Expires snapshots and deletes the files that only they used (spec: Snapshot Retention Policy)."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.idempotent_writes import forgotten_writes
from icebergds.commit.operations import Change, TableState
from icebergds.commit.retention import Expiry, ExpiryRequest, check_known, choose_expired
from icebergds.commit.retry import commit_change
from icebergds.commit.unused_metadata import remove_unused
from icebergds.display import WIDTH, block, counted, html_table, joined
from icebergds.encryption.list_keys import no_service, unused_keys
from icebergds.errors import IcebergError
from icebergds.operations.maintenance.unused_files.delete_files import DeletedFiles, delete_files
from icebergds.operations.maintenance.unused_files.expired_files import expired_files
from icebergds.operations.maintenance.unused_files.reachable_files import (
    FileKind,
    require_garbage_collection,
)
from icebergds.reporting import stage
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.updates.apply_updates import apply_updates
from icebergds.spec.updates.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
)
from icebergds.spec.updates.table_updates import (
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    TableUpdate,
)

_LOG = logging.getLogger(__name__)

_DELETED = {
    "data_files": "data file",
    "position_delete_files": "position delete file",
    "equality_delete_files": "equality delete file",
    "manifest_files": "manifest",
    "manifest_lists": "manifest list",
    "statistics_files": "statistics file",
}


@dataclass(frozen=True, slots=True, repr=False)
class ExpiredSnapshots:
    """What an expiry of snapshots removed, or would remove.

    Attributes:
        failed_files_count: files that could not be deleted; each is logged.
        expired_snapshot_ids: the snapshots, in the order of the metadata.
        expired_refs: the names of branches and tags that were older than their maximum age.
        dry_run: whether nothing was to be changed; it does not count in comparisons.
    """

    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0
    failed_files_count: int = 0
    expired_snapshot_ids: tuple[int, ...] = ()
    expired_refs: tuple[str, ...] = ()
    dry_run: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        return block(f"ExpiredSnapshots: {self._summary()}", self._lines(), "line")

    def _repr_html_(self) -> str:
        rows = [(str(snapshot_id),) for snapshot_id in self.expired_snapshot_ids]
        title = f"Expired snapshots: {self._summary()}"
        return html_table(title, ("expired_snapshot_id",), rows, "snapshot")

    def _summary(self) -> str:
        told = [counted(len(self.expired_snapshot_ids), "snapshot")]
        if refs := len(self.expired_refs):
            told.append("1 branch or tag" if refs == 1 else f"{refs:,} branches and tags")
        parts = [f"{' and '.join(told)} {'would expire' if self.dry_run else 'expired'}"]
        counts = {noun: getattr(self, f"deleted_{name}_count") for name, noun in _DELETED.items()}
        if files := [counted(number, noun) for noun, number in counts.items() if number]:
            verb = "would be deleted" if self.dry_run else "deleted"
            parts.append(f"{verb}: {', '.join(files)}")
        if self.failed_files_count:
            parts.append(f"{counted(self.failed_files_count, 'file')} could not be deleted")
        return "; ".join(parts) + (" (dry run)" if self.dry_run else "")

    def _lines(self) -> list[str]:
        room = WIDTH - 2
        ids, refs = [str(i) for i in self.expired_snapshot_ids], self.expired_refs
        return [
            joined(texts, noun, room)
            for texts, noun in ((ids, "snapshot"), (refs, "name"))
            if texts
        ]


def expire_snapshots(
    table: LoadedTable,
    request: ExpiryRequest,
    *,
    clean_expired_metadata: bool = False,
    max_concurrent_deletes: int | None = None,
    dry_run: bool = False,
) -> tuple[TableState, ExpiredSnapshots]:
    """Removes snapshots from a table's metadata, then deletes the files that only they used.

    The metadata is committed first. If another commit comes in between, the choice is made again.

    Args:
        clean_expired_metadata: also remove partition specs and schemas that nothing uses any more.
        max_concurrent_deletes: as for `delete_files`.
        dry_run: change nothing, and say what would be expired and deleted.

    Returns:
        The table after the commit, and what was removed.

    Raises:
        NoSuchSnapshotError: a snapshot of the request does not exist.
        ValidationError: `gc.enabled` is false, or a branch or tag refers to a snapshot of the
            request.
        UnsupportedFeatureError: the table is encrypted, and its catalog has no key service.
        CommitConflictError, CommitStateUnknownError: as for `commit_change`.
        IcebergError: the snapshots were expired, but no file was deleted, because it is not known
            which ones other snapshots use.
    """
    check_known(request, table.metadata, table.name)
    attempt = _plan(table.state, request, clean_expired_metadata)
    if dry_run:
        expected = attempt.expected_metadata(request.now_ms)
        _warn_of_forgotten_writes(table.name, table.metadata, expected)
        with stage("read manifests"):
            files = expired_files(table.io, table.metadata, attempt.snapshots, expected)
        counts = {kind: len(found) for kind, found in files.items()}
        return table.state, replace(_result(attempt, DeletedFiles(counts, 0)), dry_run=True)
    if not attempt.updates:
        return table.state, ExpiredSnapshots()

    def produce(state: TableState) -> Change:
        nonlocal attempt
        if state is not table.state:
            attempt = _plan(state, request, clean_expired_metadata)
        return Change(attempt.requirements(), attempt.updates)

    def is_committed(state: TableState) -> bool:
        return attempt.is_done(state.metadata)

    committed = commit_change(table.operations, produce, is_committed, table.state)
    _warn_of_forgotten_writes(table.name, attempt.base.metadata, committed.metadata)
    deleted = _delete(attempt, committed, max_concurrent_deletes)
    result = _result(attempt, deleted)
    _LOG.info("table %s: %s", table.name, result._summary())
    return committed, result


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What one attempt to commit expires."""

    base: TableState
    expiry: Expiry
    updates: list[TableUpdate]

    @property
    def snapshots(self) -> list[Snapshot]:
        known = self.base.metadata.snapshots_by_id
        return [known[snapshot_id] for snapshot_id in self.expiry.snapshot_ids]

    def requirements(self) -> list[TableRequirement]:
        """Requires that the table has not changed since the choice was made."""
        metadata = self.base.metadata
        uuid = metadata.table_uuid
        return [
            *([] if uuid is None else [AssertTableUuid(uuid)]),
            *(AssertRefSnapshotId(name, ref.snapshot_id) for name, ref in metadata.refs.items()),
            AssertCurrentSchemaId(metadata.current_schema_id),
            AssertDefaultSpecId(metadata.default_spec_id),
        ]

    def expected_metadata(self, now_ms: int) -> TableMetadata:
        """The metadata after this commit."""
        return apply_updates(self.base.metadata, self.updates, now_ms=now_ms)

    def is_done(self, metadata: TableMetadata) -> bool:
        """Whether a table loaded later has nothing of what expires."""
        return not any(_removes_something(update, metadata) for update in self.updates)


def _removes_something(update: TableUpdate, metadata: TableMetadata) -> bool:
    match update:
        case RemoveSnapshots(snapshot_ids=ids):
            return not metadata.snapshots_by_id.keys().isdisjoint(ids)
        case RemovePartitionSpecs(spec_ids=ids):
            return not metadata.specs_by_id.keys().isdisjoint(ids)
        case RemoveSchemas(schema_ids=ids):
            return not metadata.schemas_by_id.keys().isdisjoint(ids)
        case RemoveSnapshotRef(name=name):
            return name in metadata.refs
        case _:
            return False


def _plan(state: TableState, request: ExpiryRequest, clean_expired_metadata: bool) -> _Attempt:
    require_garbage_collection(state, "expire no snapshots of it")
    metadata = state.metadata
    if state.keys is None and any(s.key_id is not None for s in metadata.snapshots):
        # Which files its snapshots use could not be found out afterwards.
        raise no_service(state.name, metadata)
    expiry = choose_expired(request, metadata, state.name)
    expired = set(expiry.snapshot_ids)
    updates: list[TableUpdate] = [RemoveSnapshotRef(name) for name in expiry.refs]
    if expired:
        updates.append(RemoveSnapshots(expiry.snapshot_ids))
        kept = [s for s in metadata.snapshots if s.snapshot_id not in expired]
        updates += map(RemoveEncryptionKey, unused_keys(metadata, kept, request.now_ms))
    if clean_expired_metadata:
        kept = [s for s in metadata.snapshots if s.snapshot_id not in expired]
        updates += remove_unused(state.io, metadata, kept)
    return _Attempt(state, expiry, updates)


def _delete(
    attempt: _Attempt, committed: TableState, max_concurrent_deletes: int | None
) -> DeletedFiles:
    """Deletes the files that only expired snapshots used.

    Raises:
        IcebergError: it is not known which these are; nothing was deleted.
    """
    if not attempt.snapshots:
        return DeletedFiles({}, 0)
    try:
        with stage("read manifests"):
            files = expired_files(
                _with_all_keys(attempt.base, committed).io,
                attempt.base.metadata,
                attempt.snapshots,
                committed.metadata,
            )
    except Exception as error:
        raise IcebergError(
            f"table {committed.name}: {counted(len(attempt.snapshots), 'snapshot')} expired, but "
            f"no file was deleted, because not all files of the other snapshots are known: {error}."
            " The files that only expired snapshots used are left for remove_orphan_files"
        ) from error
    return delete_files(committed.io, files, max_concurrent_deletes)


def _with_all_keys(base: TableState, committed: TableState) -> TableState:
    """The table after the commit, with the keys of expired snapshots, which it has removed."""
    keys = {key.key_id: key for key in base.metadata.encryption_keys}
    keys |= {key.key_id: key for key in committed.metadata.encryption_keys}
    metadata = replace(committed.metadata, encryption_keys=tuple(keys.values()))
    return replace(committed, metadata=metadata)


def _warn_of_forgotten_writes(table: str, before: TableMetadata, after: TableMetadata) -> None:
    try:
        forgotten = forgotten_writes(before, after)
    except IcebergError as error:
        _LOG.warning("table %s: it is not known which writes it remembers: %s", table, error)
        return
    for write in forgotten:
        _LOG.warning(
            "table %s, branch %s: the newest known version of %r was %s, and is %s without the "
            "expired snapshots; if a write between them is repeated, it may be committed again "
            "or left out",
            table,
            write.branch,
            write.app_id,
            "none" if write.before is None else write.before,
            "none" if write.after is None else write.after,
        )


def _result(attempt: _Attempt, deleted: DeletedFiles) -> ExpiredSnapshots:
    counts = deleted.counts
    return ExpiredSnapshots(
        deleted_data_files_count=counts.get(FileKind.DATA, 0),
        deleted_position_delete_files_count=counts.get(FileKind.POSITION_DELETES, 0),
        deleted_equality_delete_files_count=counts.get(FileKind.EQUALITY_DELETES, 0),
        deleted_manifest_files_count=counts.get(FileKind.MANIFEST, 0),
        deleted_manifest_lists_count=counts.get(FileKind.MANIFEST_LIST, 0),
        deleted_statistics_files_count=counts.get(FileKind.STATISTICS, 0),
        failed_files_count=deleted.failed,
        expired_snapshot_ids=attempt.expiry.snapshot_ids,
        expired_refs=attempt.expiry.refs,
    )
