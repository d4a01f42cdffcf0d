"""Plans a change feed: the data files with changed rows (spec: Snapshots, Scan Planning).

Each snapshot is compared with its parent. Manifests in both list the same files, so only the
other manifests are read. If delete files were added or removed, they are matched with all data
files. Deleted entries in manifests are ignored, because writers treat them differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import compress

from icebergds.errors import InvalidOptionError
from icebergds.expr.bind import field_ids
from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.side_by_side import manifest_decoders, reading_ahead
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.delete_index import AppliedDeletes, DeleteIndex, key_types
from icebergds.scan.plan.files import (
    FileChange,
    PlannedFile,
    matching_manifests,
)
from icebergds.scan.plan.history import SnapshotRange
from icebergds.scan.plan.partition_filters import PartitionFilters
from icebergds.scan.plan.prune import matching_entries, prune_entries
from icebergds.scan.tasks import ChangeType, FeedCommit
from icebergds.spec.manifest import ManifestContent, ManifestEntry, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot

_Deletes = tuple[ManifestEntry, ...]
_NO_DELETES = AppliedDeletes()
_NO_STATS: frozenset[int] = frozenset()
# More milliseconds than will ever have passed since 1970, in decimal for readers.
_BEFORE_SEQUENCE_NUMBERS = 10**15


def plan_changes(
    planner: ChangePlanner, metadata: TableMetadata, history: SnapshotRange
) -> list[list[PlannedFile]]:
    """The data files with rows that each snapshot of a range inserted or deleted.

    Snapshots that only change how rows are stored, such as `replace` snapshots, are left out and
    have no ordinal. The oldest known snapshot, if the range begins with it, counts as having
    inserted all of its rows. Errors are those of `ChangePlanner.changes`.
    """
    found: list[list[PlannedFile]] = []
    for snapshot in history.snapshots:
        parent = parent_of(metadata, snapshot)
        if snapshot.may_change_rows or parent is None:
            found.append(planner.changes(snapshot, parent, len(found)))
    return found


def plan_appends(
    planner: ChangePlanner,
    metadata: TableMetadata,
    history: SnapshotRange,
    *,
    skipped: frozenset[str],
    table: str,
) -> list[PlannedFile]:
    """The data files that the appends of a range added, with the deletes at its end.

    A file that a later snapshot of the range replaced or removed gets the deletes that applied just
    before, and also the equality deletes at the end.

    Args:
        skipped: operations of snapshots to skip; those that only change how rows are stored are
            always skipped.
        table: the table's name in messages.

    Raises:
        InvalidOptionError: a snapshot is not an append and not skipped.

    Other errors are those of `ChangePlanner.changes`.
    """
    appended: dict[_FileKey, ManifestEntry] = {}
    last_seen: dict[_FileKey, Snapshot] = {}
    for snapshot in history.snapshots:
        parent = parent_of(metadata, snapshot)
        if snapshot.operation == "append":
            appended.update(_keyed(planner.added(snapshot, parent)))
            continue
        if snapshot.may_change_rows and snapshot.operation not in skipped:
            raise not_an_append(snapshot, table)
        if parent is not None and appended:
            removed = _keyed(planner.removed(snapshot, parent))
            last_seen.update((key, parent) for key in removed.keys() & appended.keys())
    if not appended:
        return []
    end = history.snapshots[-1]
    files = []
    for key, entry in appended.items():
        last = last_seen.get(key, end)
        deletes = planner.deletes_at(last, entry)
        if last is not end:
            deletes = _with_equality_deletes(deletes, planner.deletes_at(end, entry))
        files.append(PlannedFile(entry, deletes, last.snapshot_id))
    return planner.marked(files)


def parent_of(metadata: TableMetadata, snapshot: Snapshot) -> Snapshot | None:
    """The parent of a snapshot; None if it is the first one, or its parent has expired."""
    parent_id = snapshot.parent_snapshot_id
    return None if parent_id is None else metadata.snapshot_by_id(parent_id)


def commit_version(snapshot: Snapshot) -> int:
    """The number that orders a commit in its table's history: its sequence number.

    Commits of format version 1 have none. They get their time, as a negative number: all of them
    are older than those with a sequence number.
    """
    return snapshot.sequence_number or snapshot.timestamp_ms - _BEFORE_SEQUENCE_NUMBERS


def not_an_append(snapshot: Snapshot, table: str, prefix: str = "") -> InvalidOptionError:
    """The error if an incremental append read finds a snapshot of another operation.

    Args:
        prefix: prefix of the option that skips such snapshots.
    """
    operation = snapshot.operation or "operation not recorded"
    kind = "delete" if snapshot.operation == "delete" else "overwrite"
    return InvalidOptionError(
        f"table {table}: snapshot {snapshot.snapshot_id} is not an append ({operation}); an "
        "incremental read returns appended rows only. Set read-change-feed=true to read deleted "
        f"rows too, or {prefix}skip-{kind}-snapshots=true to skip such snapshots"
    )


class ChangePlanner:
    """Finds what snapshots changed. Use one planner for a range of snapshots, in order.

    Args:
        schema: the schema that is read.
        row_filter: bound to `schema`.
        wrong_counts: what to do if a manifest's files differ from the counts in the manifest list.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        schema: Schema,
        row_filter: Expr,
        wrong_counts: WrongCounts = WrongCounts.FAIL,
    ) -> None:
        self._io = io
        self._metadata = metadata
        self._schema = schema
        self._row_filter = row_filter
        self._wrong_counts = wrong_counts
        self._filters = PartitionFilters(metadata.specs_by_id, schema, row_filter)
        self._states: dict[int, _State] = {}
        self._contradicted: set[str] = set()
        self._read: dict[tuple[ManifestFile, frozenset[int]], list[ManifestEntry]] = {}

    def changes(
        self, snapshot: Snapshot, parent: Snapshot | None, ordinal: int
    ) -> list[PlannedFile]:
        """The data files with rows that a snapshot inserted or deleted.

        Args:
            parent: the snapshot to compare with; None: all rows count as inserted.
            ordinal: number of the snapshot in the feed.

        Raises:
            MissingFileError: a manifest list or manifest does not exist.
            CorruptFileError: a manifest list or manifest is damaged.
            InvalidMetadataError: a data file has two deletion vectors, or a spec is unknown.
            UnsupportedFeatureError: the manifest list or manifests are encrypted.
        """
        before, after = self._state(parent), self._state(snapshot)
        stats_ids = before.equality_ids | after.equality_ids
        added, removed = self._differences(before.data, after.data, stats_ids)
        commit = FeedCommit(
            ordinal, snapshot.snapshot_id, commit_version(snapshot), snapshot.timestamp_ms
        )
        inserted = FileChange(ChangeType.INSERT, commit)
        deleted = FileChange(ChangeType.DELETE, commit)
        found = [
            *(after.planned(entry, inserted) for entry in added),
            *(before.planned(entry, deleted) for entry in removed),
        ]
        new_deletes, old_deletes = self._differences(before.deletes, after.deletes, _NO_STATS)
        if new_deletes or old_deletes:
            indexes = [self._index(new_deletes), self._index(old_deletes)]
            kept = _without(self._entries(after.data, stats_ids), added)
            affected = [
                entry
                for entry in kept
                if any(index.deletes_for(entry) != _NO_DELETES for index in indexes)
            ]
            found.extend(_newly_deleted(affected, before, after, deleted))
            found.extend(_newly_deleted(affected, after, before, inserted))
        self._keep_only(after)
        return self.marked(found)

    def marked(self, files: list[PlannedFile]) -> list[PlannedFile]:
        """The files, marked if their values contradict their partitions."""
        return (
            [
                replace(file, contradicted=file.entry.data_file.file_path in self._contradicted)
                for file in files
            ]
            if self._contradicted
            else files
        )

    def added(self, snapshot: Snapshot, parent: Snapshot | None) -> list[ManifestEntry]:
        """The data files in a snapshot but not in its parent; errors as for `changes`."""
        before, after = self._state(parent), self._state(snapshot)
        stats_ids = before.equality_ids | after.equality_ids
        added, _ = self._differences(before.data, after.data, stats_ids)
        self._keep_only(after)
        return added

    def removed(self, snapshot: Snapshot, parent: Snapshot | None) -> list[ManifestEntry]:
        """The data files in a snapshot's parent but not in it; errors as for `changes`."""
        before, after = self._state(parent), self._state(snapshot)
        stats_ids = before.equality_ids | after.equality_ids
        _, removed = self._differences(before.data, after.data, stats_ids)
        self._keep_only(after)
        return removed

    def deletes_at(self, snapshot: Snapshot, entry: ManifestEntry) -> AppliedDeletes:
        """The deletes of a snapshot that apply to a data file; errors as for `changes`."""
        return self._state(snapshot).index.deletes_for(entry)

    def _differences(
        self,
        before: Sequence[ManifestFile],
        after: Sequence[ManifestFile],
        stats_ids: frozenset[int],
    ) -> tuple[list[ManifestEntry], list[ManifestEntry]]:
        """The files listed only by the manifests after, and only by those before."""
        old = {manifest.manifest_path for manifest in before}
        new = {manifest.manifest_path for manifest in after}
        was = self._entries([m for m in before if m.manifest_path not in new], stats_ids)
        now = self._entries([m for m in after if m.manifest_path not in old], stats_ids)
        return _without(now, was), _without(was, now)

    def _state(self, snapshot: Snapshot | None) -> _State:
        if snapshot is None:
            return _State(0, [], [], frozenset(), self._index(()))
        state = self._states.get(snapshot.snapshot_id)
        if state is None:
            manifests, self._wrong_counts = matching_manifests(
                self._io, snapshot, self._filters, self._wrong_counts
            )
            data = [m for m in manifests if m.content is ManifestContent.DATA]
            deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
            same_deletes = (s for s in self._states.values() if s.deletes == deletes)
            if (known := next(same_deletes, None)) is not None:
                state = replace(known, snapshot_id=snapshot.snapshot_id, data=data)
            else:
                entries = self._entries(deletes, _NO_STATS)
                ids = frozenset(i for entry in entries for i in entry.data_file.equality_ids)
                index = self._index(entries)
                state = _State(snapshot.snapshot_id, data, deletes, ids, index)
            self._states[snapshot.snapshot_id] = state
        return state

    def _index(self, deletes: Sequence[ManifestEntry]) -> DeleteIndex:
        ids = frozenset(i for entry in deletes for i in entry.data_file.equality_ids)
        types = key_types(self._metadata.schema_history, ids)
        return DeleteIndex(deletes, self._metadata.specs_by_id, types)

    def _entries(
        self, manifests: Sequence[ManifestFile], stats_ids: frozenset[int]
    ) -> list[ManifestEntry]:
        """The live entries of manifests whose files may have rows of the feed."""
        unread = [m for m in dict.fromkeys(manifests) if (m, stats_ids) not in self._read]
        if unread:
            io = reading_ahead(self._io, unread)
            with ThreadPoolExecutor(manifest_decoders(unread)) as pool:
                read = pool.map(lambda one: self._read_manifest(io, one, stats_ids), unread)
                self._read.update(
                    ((manifest, stats_ids), entries)
                    for manifest, entries in zip(unread, read, strict=True)
                )
        return [entry for m in manifests for entry in self._read[m, stats_ids]]

    def _read_manifest(
        self, io: FileIO, manifest: ManifestFile, stats_ids: frozenset[int]
    ) -> list[ManifestEntry]:
        is_data = manifest.content is ManifestContent.DATA
        columns = read_manifest_columns(
            io,
            manifest,
            self._metadata.specs_by_id,
            self._schema,
            history=self._metadata.schema_history,
            # All metrics of delete files are read, to match them with data files.
            stats_ids=field_ids(self._row_filter) | stats_ids if is_data else None,
            wrong_counts=self._wrong_counts,
        )
        partition_filter = self._filters.of(manifest)
        if not is_data:
            return matching_entries(columns, partition_filter, TRUE)
        # Files without rows may not exist: some writers list them and never create them.
        columns = columns.filter(columns.record_count != 0)
        spec = self._metadata.specs_by_id[manifest.partition_spec_id]
        pruned = prune_entries(columns, partition_filter, self._row_filter, spec)
        odd = compress(pruned.entries, pruned.contradicted)
        self._contradicted.update(entry.data_file.file_path for entry in odd)
        # The deletes of other partitions are not read.
        return pruned.entries[: len(pruned.entries) - pruned.beyond]

    def _keep_only(self, state: _State) -> None:
        """Drops what the next snapshot of the range cannot reuse."""
        self._states = {state.snapshot_id: state}
        used = {manifest.manifest_path for manifest in (*state.data, *state.deletes)}
        self._read = {
            key: entries for key, entries in self._read.items() if key[0].manifest_path in used
        }


@dataclass(frozen=True, slots=True)
class _State:
    """The manifests of a snapshot, and its delete index."""

    snapshot_id: int
    data: list[ManifestFile]
    deletes: list[ManifestFile]
    equality_ids: frozenset[int]
    index: DeleteIndex

    def planned(self, entry: ManifestEntry, change: FileChange) -> PlannedFile:
        return PlannedFile(entry, self.index.deletes_for(entry), self.snapshot_id, change)


def _newly_deleted(
    files: Iterable[ManifestEntry], alive: _State, dead: _State, change: FileChange
) -> Iterator[PlannedFile]:
    """The files with rows that are live in one state and may be deleted in the other."""
    differences: dict[tuple[int, int], tuple[_Deletes, _Deletes, _Deletes]] = {}

    def added(later: _Deletes, earlier: _Deletes) -> _Deletes:
        # Many files share one tuple of deletes. The entry keeps both, so that ids stay unique.
        known = differences.get((id(later), id(earlier)))
        if known is None:
            known = (later, earlier, tuple(_without(later, earlier)))
            differences[id(later), id(earlier)] = known
        return known[2]

    for entry in files:
        before, after = alive.index.deletes_for(entry), dead.index.deletes_for(entry)
        deletes = AppliedDeletes(
            added(after.position_deletes, before.position_deletes),
            added(after.equality_deletes, before.equality_deletes),
        )
        if deletes != _NO_DELETES:
            yield PlannedFile(entry, before, alive.snapshot_id, replace(change, deletes=deletes))


# Identity of a listed file: path, content offset, sequence number, occurrence.
_FileKey = tuple[str, int | None, int, int]


def _keyed(entries: Iterable[ManifestEntry]) -> dict[_FileKey, ManifestEntry]:
    """Files by identity; a file that is listed several times has several keys."""
    times: Counter[tuple[str, int | None, int]] = Counter()
    found: dict[_FileKey, ManifestEntry] = {}
    for entry in entries:
        file = entry.data_file
        key = (file.file_path, file.content_offset, entry.data_sequence_number)
        found[(*key, times[key])] = entry
        times[key] += 1
    return found


def _without(
    entries: Iterable[ManifestEntry], others: Iterable[ManifestEntry]
) -> list[ManifestEntry]:
    known = _keyed(others)
    return [entry for key, entry in _keyed(entries).items() if key not in known]


def _with_equality_deletes(deletes: AppliedDeletes, later: AppliedDeletes) -> AppliedDeletes:
    more = _without(later.equality_deletes, deletes.equality_deletes)
    if not more:
        return deletes
    return AppliedDeletes(deletes.position_deletes, (*deletes.equality_deletes, *more))
