"""Plans a scan on the driver: from a snapshot to task groups (spec: Scan Planning).

Manifests are skipped by their partition summaries, files by their partition and their metrics, both
with the partition spec that their manifest was written with. What is left is joined with the
deletes that apply to it, cut into splits and packed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.bind import field_ids
from icebergds.expr.nodes import FALSE, TRUE, Expr
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.delete_index import AppliedDeletes, DeleteIndex, Scope, key_types, scope_of
from icebergds.scan.plan.partition_filters import PartitionFilters
from icebergds.scan.plan.prune import matching_entries
from icebergds.scan.plan.splits import SplitOptions, pack, split_file
from icebergds.scan.read_plan import key_schema
from icebergds.scan.tasks import (
    ChangeType,
    DeleteFileRef,
    EqualityDeleteGroup,
    FileScanTask,
    ScanTaskGroup,
    TaskChange,
    delete_file_ref,
)
from icebergds.spec.manifest import DataFile, ManifestContent, ManifestEntry, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot

MANIFEST_READERS = 8
"""Manifests are fetched side by side: stores answer slowly, and decoding lets go of the lock."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a commit did to the rows of a data file.

    Attributes:
        ordinal: of the commit in the feed, from 0.
        by: only rows changed that these further deletes delete; None: all live rows did.
    """

    change_type: ChangeType
    ordinal: int
    snapshot_id: int
    by: AppliedDeletes | None = None


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A data file that may hold rows of the scan, and the deletes that apply to it.

    Attributes:
        state: the snapshot whose deletes these are, where a plan has files of several.
    """

    entry: ManifestEntry
    deletes: AppliedDeletes
    state: int = 0
    change: FileChange | None = None


def plan_scan(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr,
    splits: SplitOptions,
) -> list[ScanTaskGroup]:
    """Plans the task groups of a scan; none if no file can hold a row of it.

    Args:
        snapshot: what to read; None reads nothing.
        schema: the schema that is read.
        row_filter: bound to `schema`.

    Raises:
        MissingFileError: a manifest list or manifest is not there.
        CorruptFileError: a manifest list or manifest is damaged.
        InvalidMetadataError: two deletion vectors for one data file, or an unknown spec.
        UnsupportedFeatureError: files are encrypted.
    """
    files = plan_files(io, metadata, snapshot, schema, row_filter)
    return pack_files(files, metadata, schema, splits)


def pack_files(
    files: Iterable[PlannedFile], metadata: TableMetadata, schema: Schema, splits: SplitOptions
) -> list[ScanTaskGroup]:
    """Packs files into task groups; arguments and errors as for `plan_scan`."""
    weights = _Weights(splits)
    groups = pack(_splits(files, splits.split_size), weights.of, splits, weights.needs)
    schemas = (schema, *metadata.schema_history)
    return [_task_group(group, schemas) for group in groups]


def pack_groups(
    groups: Iterable[Sequence[PlannedFile]],
    metadata: TableMetadata,
    schema: Schema,
    splits: SplitOptions,
) -> Iterator[tuple[list[ScanTaskGroup], list[Sequence[PlannedFile]]]]:
    """The groups of files that each task reads, with each group's tasks; errors as above.

    Neither groups nor files are cut.
    """
    weights = _Weights(splits)
    schemas = (schema, *metadata.schema_history)

    def wholes(group: Sequence[PlannedFile]) -> list[_Split]:
        return [_Split(file, 0, file.entry.data_file.file_size_in_bytes) for file in group]

    def weight(group: Sequence[PlannedFile]) -> int:
        return sum(map(weights.of, wholes(group)))

    def needs(group: Sequence[PlannedFile]) -> Mapping[Hashable, int]:
        return {
            name: cost for split in wholes(group) for name, cost in weights.needs(split).items()
        }

    for task_group in pack(groups, weight, splits, needs):
        yield [_task_group(wholes(group), schemas) for group in task_group], task_group


def plan_files(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr = TRUE,
    *,
    stats_of: frozenset[int] = frozenset(),
) -> list[PlannedFile]:
    """The data files of a scan with their deletes; arguments and errors as for `plan_scan`.

    Args:
        stats_of: ids of columns whose statistics the files must hold, beside those of the filter.
    """
    if snapshot is None or row_filter == FALSE:
        return []
    filters = PartitionFilters(metadata.specs_by_id, schema, row_filter)
    manifests = matching_manifests(io, snapshot, filters)
    deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    data = [m for m in manifests if m.content is ManifestContent.DATA]
    with ThreadPoolExecutor(MANIFEST_READERS) as pool:

        def read_deletes(manifest: ManifestFile) -> list[ManifestEntry]:
            columns = read_manifest_columns(
                io, manifest, metadata.specs_by_id, schema, history=metadata.schema_history
            )
            return matching_entries(columns, filters.of(manifest), TRUE)

        delete_entries = [e for found in pool.map(read_deletes, deletes) for e in found]
        equality_ids = frozenset(i for e in delete_entries for i in e.data_file.equality_ids)
        index = DeleteIndex(
            delete_entries,
            metadata.specs_by_id,
            key_types(metadata.schema_history, equality_ids),
        )
        stats_ids = field_ids(row_filter) | equality_ids | stats_of

        def read_data(manifest: ManifestFile) -> list[PlannedFile]:
            columns = read_manifest_columns(
                io,
                manifest,
                metadata.specs_by_id,
                schema,
                history=metadata.schema_history,
                stats_ids=stats_ids,
            )
            # Files without rows may not exist: some writers list them and never create them.
            columns = columns.filter(columns.record_count != 0)
            entries = matching_entries(columns, filters.of(manifest), row_filter)
            return [PlannedFile(entry, index.deletes_for(entry)) for entry in entries]

        return [file for found in pool.map(read_data, data) for file in found]


def matching_manifests(
    io: FileIO, snapshot: Snapshot, filters: PartitionFilters
) -> list[ManifestFile]:
    """The manifests of a snapshot that may list files of a scan; errors as for `plan_scan`."""
    if snapshot.key_id is not None:
        raise UnsupportedFeatureError(
            f"snapshot {snapshot.snapshot_id}: its manifest list is encrypted; encrypted tables "
            "are not read"
        )
    return [m for m in read_snapshot_manifests(io, snapshot) if filters.might_match(m)]


@dataclass(frozen=True, slots=True)
class _Split:
    file: PlannedFile
    start: int
    length: int


def _splits(files: Iterable[PlannedFile], split_size: int) -> Iterator[_Split]:
    for file in files:
        for start, length in split_file(file.entry.data_file, split_size):
            yield _Split(file, start, length)


class _Weights:
    """Bytes that splits make a task read, and the keys that it holds for them."""

    def __init__(self, options: SplitOptions) -> None:
        self._open_cost = options.file_open_cost
        self._needs: dict[tuple[int, int], Mapping[Hashable, int]] = {}

    def of(self, split: _Split) -> int:
        """The weight of a split and its position deletes, at least what opening the files costs."""
        positions = split.file.deletes.position_deletes
        return max(split.length + _nbytes(positions), (1 + len(positions)) * self._open_cost)

    def needs(self, split: _Split) -> Mapping[Hashable, int]:
        """The equality deletes of a split, by what files must share for their keys to be one set.

        A task reads them once for all of its files.
        """
        deletes, state = split.file.deletes.equality_deletes, split.file.state
        # Many files share one tuple of deletes.
        known = self._needs.get((state, id(deletes)))
        if known is None:
            groups: dict[Hashable, list[ManifestEntry]] = {}
            for entry in deletes:
                groups.setdefault((state, *_key_group(entry)), []).append(entry)
            known = {
                group: max(_nbytes(found), len(found) * self._open_cost)
                for group, found in groups.items()
            }
            self._needs[state, id(deletes)] = known
        return known


def _nbytes(deletes: Sequence[ManifestEntry]) -> int:
    return sum(e.data_file.content_size_in_bytes or e.data_file.file_size_in_bytes for e in deletes)


def _key_group(entry: ManifestEntry) -> tuple[tuple[int, ...], Scope]:
    """What equality delete files must share for their keys to be one set."""
    return tuple(sorted(entry.data_file.equality_ids)), scope_of(entry.data_file)


class _DeleteTable:
    """The deletes of a task group: every file named once, equality deletes by keys and scope.

    Deletes of different states are different sets of keys.
    """

    def __init__(self) -> None:
        self.positions: dict[DeleteFileRef, int] = {}
        self._keys: dict[
            tuple[Hashable, tuple[int, ...], Scope], tuple[int, dict[DeleteFileRef, None]]
        ] = {}
        self._known: dict[tuple[Hashable, int], tuple[int, ...]] = {}

    def add_positions(self, deletes: tuple[ManifestEntry, ...]) -> tuple[int, ...]:
        """Where the task group has these position deletes."""
        return self._once(deletes, None, self._position_index)

    def add_keys(self, deletes: tuple[ManifestEntry, ...], state: Hashable) -> tuple[int, ...]:
        """Where the task group has the groups of these equality deletes."""
        return self._once(deletes, state, lambda entry: self._group_index(entry, state))

    def groups(self) -> tuple[EqualityDeleteGroup, ...]:
        return tuple(
            EqualityDeleteGroup(ids, tuple(sorted(refs, key=lambda ref: ref.file_path)))
            for (_, ids, _), (_, refs) in self._keys.items()
        )

    def _once(
        self,
        deletes: tuple[ManifestEntry, ...],
        state: Hashable,
        index_of: Callable[[ManifestEntry], int],
    ) -> tuple[int, ...]:
        # Many files share one tuple of deletes, which is looked at once.
        known = self._known.get((state, id(deletes)))
        if known is None:
            for entry in deletes:
                _refuse_encrypted(entry.data_file)
            known = tuple(dict.fromkeys(map(index_of, deletes)))
            self._known[state, id(deletes)] = known
        return known

    def _position_index(self, entry: ManifestEntry) -> int:
        ref = delete_file_ref(entry.data_file, entry.data_sequence_number)
        return self.positions.setdefault(ref, len(self.positions))

    def _group_index(self, entry: ManifestEntry, state: Hashable) -> int:
        group = (state, *_key_group(entry))
        index, refs = self._keys.setdefault(group, (len(self._keys), {}))
        refs[delete_file_ref(entry.data_file, entry.data_sequence_number)] = None
        return index


def _task_group(group: Sequence[_Split], schemas: Sequence[Schema]) -> ScanTaskGroup:
    table = _DeleteTable()
    tasks = []
    for split in group:
        file = split.file
        data_file = file.entry.data_file
        _refuse_encrypted(data_file)
        tasks.append(
            FileScanTask(
                file_path=data_file.file_path,
                file_format=data_file.file_format,
                file_size_in_bytes=data_file.file_size_in_bytes,
                start=split.start,
                length=split.length,
                spec_id=data_file.spec_id,
                partition=data_file.partition,
                data_sequence_number=file.entry.data_sequence_number,
                first_row_id=data_file.first_row_id,
                position_deletes=table.add_positions(file.deletes.position_deletes),
                equality_deletes=table.add_keys(file.deletes.equality_deletes, file.state),
                change=None if file.change is None else _task_change(file.change, table),
            )
        )
    groups = table.groups()
    ids = {field_id for keyed in groups for field_id in keyed.equality_ids}
    return ScanTaskGroup(tuple(tasks), tuple(table.positions), groups, key_schema(schemas, ids))


def _task_change(change: FileChange, table: _DeleteTable) -> TaskChange:
    by = change.by
    if by is None:
        return TaskChange(change.change_type, change.ordinal, change.snapshot_id)
    return TaskChange(
        change.change_type,
        change.ordinal,
        change.snapshot_id,
        True,
        table.add_positions(by.position_deletes),
        table.add_keys(by.equality_deletes, (change.snapshot_id, change.change_type)),
    )


def _refuse_encrypted(data_file: DataFile) -> None:
    if data_file.key_metadata is not None:
        raise UnsupportedFeatureError(
            f"file {data_file.file_path} is encrypted; encrypted tables are not read"
        )
