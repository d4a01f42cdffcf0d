"""Applies the changes of a single snapshot to main: cherry-picks, and publishes staged writes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.base import CommitBase
from icebergds.commit.data_files import Append
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.operations import Change, TableState
from icebergds.commit.options import CommitOptions, IsolationLevel
from icebergds.commit.replace_partitions import ReplacePartitions
from icebergds.commit.snapshot_commit import (
    Action,
    SnapshotAttempts,
    commit_attempts,
    depends_on_rows,
)
from icebergds.commit.validation import Isolation
from icebergds.commit.workspace import Workspace
from icebergds.errors import InvalidOptionError, NoSuchSnapshotError, ValidationError
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.operations.evolution.references import (
    check_snapshot,
    set_current_snapshot,
)
from icebergds.operations.write.row_counts import KEYS_DELETED_BY
from icebergds.spec.manifest import DataFile, ManifestContent, ManifestEntryStatus
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot
from icebergds.spec.updates.requirements import AssertRefSnapshotId

WAP_ID = "wap.id"
PUBLISHED_WAP_ID = "published-wap-id"
SOURCE_SNAPSHOT_ID = "source-snapshot-id"


def cherry_pick(table: LoadedTable, snapshot_id: int) -> TableState:
    """Applies the changes of a snapshot to main.

    A child of the current snapshot becomes the current one itself. An append or a replacement of
    partitions by another snapshot is committed again, but not a change of rows by key.

    Raises:
        NoSuchSnapshotError: the table does not have the snapshot.
        InvalidOptionError: main has the snapshot or its staged write already, or the snapshot has
            other changes, which depend on the rows that it was made on.
        ValidationError: the partitions that it replaces have changed since.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether it was committed is not known.
    """
    picked = _pickable(table.state, snapshot_id)
    pick = _Pick(table, picked)
    return commit_attempts(
        table.operations, pick, table.state, depends_on_rows=pick.depends_on_rows(table.state)
    )


def publish_changes(table: LoadedTable, wap_id: str) -> TableState:
    """Applies to main the snapshot that was staged under an id (write, audit, publish).

    Raises:
        NoSuchSnapshotError: no snapshot was staged under it.
        InvalidOptionError, ValidationError, CommitConflictError, CommitStateUnknownError: as
            `cherry_pick` does.
    """
    metadata = table.metadata
    for snapshot in reversed(metadata.snapshots):
        if snapshot.summary.get(WAP_ID) != wap_id:
            continue
        if problem := _applied_already(metadata, snapshot):
            raise InvalidOptionError(
                f"table {table.name}: {WAP_ID} {wap_id!r} cannot be published: {problem}"
            )
        return cherry_pick(table, snapshot.snapshot_id)
    staged = sorted(
        snapshot.summary[WAP_ID]
        for snapshot in metadata.snapshots
        if WAP_ID in snapshot.summary and not _applied_already(metadata, snapshot)
    )
    known = f"staged are {', '.join(staged)}" if staged else "no snapshot is staged"
    raise NoSuchSnapshotError(
        f"table {table.name}: there is no snapshot with {WAP_ID} {wap_id!r}; {known}"
    )


class _Pick:
    """Attempts to apply a snapshot to main, as it is at each attempt."""

    def __init__(self, table: LoadedTable, picked: Snapshot) -> None:
        self._table, self._picked = table, picked
        self._anew: SnapshotAttempts | None = None

    def depends_on_rows(self, state: TableState) -> bool:
        """Whether its changes depend on rows of main, which they then replace."""
        return not self._is_next(state) and depends_on_rows(_action(self._table, self._picked))

    def produce(self, state: TableState) -> Change:
        metadata = state.metadata
        if not self._is_next(state):
            if self._anew is None:
                action, options = _action(self._table, self._picked), self._options()
                self._anew = SnapshotAttempts(action, options)
            return self._anew.produce(state)
        return Change(
            [AssertRefSnapshotId(MAIN_BRANCH, metadata.current_snapshot_id)],
            set_current_snapshot(metadata, self._picked.snapshot_id),
        )

    def is_in(self, state: TableState) -> bool:
        if self._anew is not None and self._anew.is_in(state):
            return True
        return state.metadata.current_snapshot_id == self._picked.snapshot_id

    def settle(self, state: TableState | None) -> None:
        if self._anew is not None:
            self._anew.settle(state)

    def _is_next(self, state: TableState) -> bool:
        return state.metadata.current_snapshot_id == self._picked.parent_snapshot_id

    def _options(self) -> CommitOptions:
        properties = {SOURCE_SNAPSHOT_ID: str(self._picked.snapshot_id)}
        if (wap_id := self._picked.summary.get(WAP_ID)) is not None:
            properties[PUBLISHED_WAP_ID] = wap_id
        table_uuid = self._table.metadata.table_uuid
        return CommitOptions(snapshot_properties=properties, table_uuid=table_uuid)


def _pickable(state: TableState, snapshot_id: int) -> Snapshot:
    metadata = state.metadata
    try:
        check_snapshot(metadata, snapshot_id)
    except NoSuchSnapshotError as error:
        raise NoSuchSnapshotError(f"table {state.name}: {error}") from None
    picked = metadata.snapshots_by_id[snapshot_id]
    if problem := _applied_already(metadata, picked):
        raise InvalidOptionError(
            f"table {state.name}: snapshot {snapshot_id} cannot be cherry-picked: {problem}"
        )
    return picked


def _applied_already(metadata: TableMetadata, picked: Snapshot) -> str | None:
    wap_id = picked.summary.get(WAP_ID)
    for ancestor in metadata.lineage(metadata.current_snapshot()):
        ancestor_id, summary = ancestor.snapshot_id, ancestor.summary
        if ancestor_id == picked.snapshot_id:
            return "main has it already"
        if summary.get(SOURCE_SNAPSHOT_ID) == str(picked.snapshot_id):
            return f"main has its changes already, in snapshot {ancestor_id}"
        if wap_id is not None and wap_id in (summary.get(WAP_ID), summary.get(PUBLISHED_WAP_ID)):
            return f"the write staged as {wap_id!r} was published already, by {ancestor_id}"
    return None


def _action(table: LoadedTable, picked: Snapshot) -> Action:
    added, others = _files(table, picked)
    # A change by key that found no row looks like an append, but may find some elsewhere.
    by_key = KEYS_DELETED_BY in picked.summary
    if picked.operation == "append" and not others and not by_key:
        return _Picked(Append(added, may_be_plain=True), picked)
    if picked.summary.get("replace-partitions") == "true" and not others:
        isolation = Isolation(IsolationLevel.SERIALIZABLE, picked.parent_snapshot_id)
        return _Picked(ReplacePartitions(added, isolation), picked)
    what = "a change of rows by key" if by_key else f"of operation {picked.operation!r}"
    raise InvalidOptionError(
        f"table {table.name}: snapshot {picked.snapshot_id} cannot be cherry-picked: it is "
        f"{what}, and only appends, replacements of partitions and "
        "children of the current snapshot can be applied to other rows than they were made on"
    )


def _files(table: LoadedTable, picked: Snapshot) -> tuple[tuple[DataFile, ...], bool]:
    """The data files that a snapshot added, and whether it added delete files."""
    metadata, added = table.metadata, list[DataFile]()
    has_deletes = False
    for manifest in read_snapshot_manifests(table.io, picked):
        if manifest.added_snapshot_id != picked.snapshot_id:
            continue
        if manifest.content is not ManifestContent.DATA:
            has_deletes = True
            continue
        entries = read_manifest(
            table.io,
            manifest,
            metadata.specs_by_id,
            metadata.schema(),
            history=metadata.schema_history,
        )
        for entry in entries:
            if entry.status is ManifestEntryStatus.ADDED:
                # Its rows get new ids, as in any added file.
                added.append(replace(entry.data_file, first_row_id=None))
    return tuple(added), has_deletes


@dataclass(frozen=True, slots=True)
class _Picked:
    """An action that fails if the same snapshot was picked meanwhile."""

    action: Action
    picked: Snapshot

    @property
    def depends_on_rows(self) -> bool:
        return depends_on_rows(self.action)

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        if problem := _applied_already(base.metadata, self.picked):
            raise ValidationError(
                f"table {base.name}: snapshot {self.picked.snapshot_id} was cherry-picked by "
                f"another commit: {problem}"
            )
        return self.action.produce(work, base)
