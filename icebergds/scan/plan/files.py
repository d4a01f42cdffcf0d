"""Plans a scan on the driver: from a snapshot to task groups (spec: Scan Planning).

Manifests are pruned by their partition summaries, files by their partition and metrics, with the
partition spec of their manifest. The remaining files are joined with the deletes that apply to
them, split and packed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.bind import field_ids
from icebergds.expr.nodes import FALSE, TRUE, Expr
from icebergds.formats.manifests.counts import check_totals
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import MANIFEST_READERS, read_manifest_columns
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.counts import FileCounts, PlanCounts, count_plan
from icebergds.scan.plan.delete_index import AppliedDeletes, DeleteIndex, key_types
from icebergds.scan.plan.partition_filters import PartitionFilters
from icebergds.scan.plan.prune import matching_entries, prune_entries
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
from icebergds.spec.manifest import ManifestContent, ManifestEntry, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition_keys import PartitionKey, partition_of
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileChange:
    """How a commit changed the rows of a data file.

    Attributes:
        ordinal: number of the commit in the feed, from 0.
        deletes: the change covers only live rows that these deletes delete; None: all live rows.
    """

    change_type: ChangeType
    ordinal: int
    snapshot_id: int
    deletes: AppliedDeletes | None = None


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A data file that may have rows of the scan, and the deletes that apply to it.

    Attributes:
        snapshot_id: the snapshot that the deletes are from, if a plan has files of several
            snapshots.
    """

    entry: ManifestEntry
    deletes: AppliedDeletes
    snapshot_id: int = 0
    change: FileChange | None = None


@dataclass(frozen=True, slots=True)
class PlannedFiles:
    """The files of a scan, and what planning read and skipped."""

    files: list[PlannedFile]
    counts: PlanCounts


def plan_scan(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr,
    splits: SplitOptions,
    wrong_counts: WrongCounts = WrongCounts.FAIL,
) -> list[ScanTaskGroup]:
    """Plans the task groups of a scan; none if no file can have matching rows.

    Args:
        snapshot: the snapshot to read; None reads nothing.
        schema: the schema that is read.
        row_filter: bound to `schema`.
        wrong_counts: what to do if a manifest has not the files that the manifest list counts.

    Raises:
        MissingFileError: a manifest list or manifest does not exist.
        CorruptFileError: a manifest list or manifest is damaged.
        InvalidMetadataError: a data file has two deletion vectors, or a spec is unknown.
        UnsupportedFeatureError: the manifest list or manifests are encrypted.
    """
    files = plan_files(io, metadata, snapshot, schema, row_filter, wrong_counts=wrong_counts)
    return pack_files(files, metadata, schema, splits)


def pack_files(
    files: Iterable[PlannedFile], metadata: TableMetadata, schema: Schema, splits: SplitOptions
) -> list[ScanTaskGroup]:
    """Packs files into task groups; arguments and errors as for `plan_scan`."""
    weights = _Weights(splits)
    groups = pack(_splits(files, splits.split_size), weights.of, splits, weights.shared)
    schemas = (schema, *metadata.schema_history)
    packed = [_task_group(group, schemas) for group in groups]
    _LOG.info("%s: planned %d tasks", metadata.location, len(packed))
    return packed


def pack_groups(
    groups: Iterable[Sequence[PlannedFile]],
    metadata: TableMetadata,
    schema: Schema,
    splits: SplitOptions,
) -> Iterator[tuple[list[ScanTaskGroup], list[Sequence[PlannedFile]]]]:
    """Packs groups of files; yields each bin's task groups and groups of files.

    Neither groups nor files are split. Errors are those of `plan_scan`.
    """
    weights = _Weights(splits)
    schemas = (schema, *metadata.schema_history)

    def whole_files(group: Sequence[PlannedFile]) -> list[_Split]:
        return [_Split(file, 0, file.entry.data_file.file_size_in_bytes) for file in group]

    def weight(group: Sequence[PlannedFile]) -> int:
        return sum(map(weights.of, whole_files(group)))

    def shared(group: Sequence[PlannedFile]) -> Mapping[Hashable, int]:
        return {
            name: cost
            for split in whole_files(group)
            for name, cost in weights.shared(split).items()
        }

    for packed in pack(groups, weight, splits, shared):
        yield [_task_group(whole_files(group), schemas) for group in packed], packed


def plan_files(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr = TRUE,
    *,
    stats_of: frozenset[int] = frozenset(),
    wrong_counts: WrongCounts = WrongCounts.FAIL,
) -> list[PlannedFile]:
    """Finds a scan's data files and their deletes; arguments and errors as for `plan_scan`.

    Args:
        stats_of: field ids of columns whose metrics are read besides those of the filter.
    """
    return plan_files_counted(
        io,
        metadata,
        snapshot,
        schema,
        row_filter,
        stats_of=stats_of,
        wrong_counts=wrong_counts,
    ).files


def plan_files_counted(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    schema: Schema,
    row_filter: Expr = TRUE,
    *,
    stats_of: frozenset[int] = frozenset(),
    wrong_counts: WrongCounts = WrongCounts.FAIL,
) -> PlannedFiles:
    """Does what `plan_files` does, and counts what was skipped; same arguments and errors."""
    if snapshot is None or row_filter == FALSE:
        return PlannedFiles([], PlanCounts())
    started = time.perf_counter()
    filters = PartitionFilters(metadata.specs_by_id, schema, row_filter)
    listed, wrong_counts = all_manifests(io, snapshot, wrong_counts)
    manifests = [m for m in listed if filters.might_match(m)]
    deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    data = [m for m in manifests if m.content is ManifestContent.DATA]
    with ThreadPoolExecutor(MANIFEST_READERS) as pool:

        def read_deletes(manifest: ManifestFile) -> list[ManifestEntry]:
            columns = read_manifest_columns(
                io,
                manifest,
                metadata.specs_by_id,
                schema,
                history=metadata.schema_history,
                wrong_counts=wrong_counts,
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

        def read_data(manifest: ManifestFile) -> tuple[list[PlannedFile], FileCounts]:
            columns = read_manifest_columns(
                io,
                manifest,
                metadata.specs_by_id,
                schema,
                history=metadata.schema_history,
                stats_ids=stats_ids,
                wrong_counts=wrong_counts,
            )
            # Files without rows may not exist: some writers list them and never create them.
            with_rows = columns.filter(columns.record_count != 0)
            pruned = prune_entries(with_rows, filters.of(manifest), row_filter)
            counts = FileCounts(
                kept=len(pruned.entries),
                by_partition=pruned.by_partition,
                by_metrics=pruned.by_metrics,
                empty=len(columns) - len(with_rows),
            )
            return [
                PlannedFile(entry, index.deletes_for(entry)) for entry in pruned.entries
            ], counts

        found = list(pool.map(read_data, data))
    counts = count_plan(listed, manifests, [counted for _, counted in found])
    files = [file for planned, _ in found for file in planned]
    _LOG.info(
        "%s: planned snapshot %d in %.0f ms: %d manifests read, %d skipped; %d data files kept, %d "
        "skipped; %d delete files",
        metadata.location,
        snapshot.snapshot_id,
        1000 * (time.perf_counter() - started),
        len(manifests),
        len(listed) - len(manifests),
        len(files),
        sum(counted.skipped for _, counted in found),
        len(delete_entries),
    )
    return PlannedFiles(files, counts)


def matching_manifests(
    io: FileIO, snapshot: Snapshot, filters: PartitionFilters, wrong_counts: WrongCounts
) -> tuple[list[ManifestFile], WrongCounts]:
    """The manifests of a snapshot that may list matching files, and how strictly to check them.

    Errors are those of `plan_scan`.
    """
    listed, wrong_counts = all_manifests(io, snapshot, wrong_counts)
    return [m for m in listed if filters.might_match(m)], wrong_counts


def all_manifests(
    io: FileIO, snapshot: Snapshot, wrong_counts: WrongCounts
) -> tuple[tuple[ManifestFile, ...], WrongCounts]:
    """The manifests of a snapshot, and how strictly to check them; errors as for `plan_scan`."""
    if snapshot.key_id is not None:
        raise UnsupportedFeatureError(
            f"snapshot {snapshot.snapshot_id}: its manifest list is encrypted; reading encrypted "
            "tables is not supported"
        )
    manifests = read_snapshot_manifests(io, snapshot)
    return manifests, check_totals(snapshot, manifests, wrong_counts)


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
    """Computes weights of splits: the bytes to read, and the shared equality deletes."""

    def __init__(self, options: SplitOptions) -> None:
        self._open_cost = options.file_open_cost
        self._shared: dict[tuple[int, int], Mapping[Hashable, int]] = {}

    def of(self, split: _Split) -> int:
        """The weight of a split with its position deletes, at least their file open cost."""
        positions = split.file.deletes.position_deletes
        return max(split.length + _nbytes(positions), (1 + len(positions)) * self._open_cost)

    def shared(self, split: _Split) -> Mapping[Hashable, int]:
        """The weights of a split's equality deletes, by key set; a task reads each key set once."""
        deletes, snapshot_id = split.file.deletes.equality_deletes, split.file.snapshot_id
        # Many files share one tuple of deletes.
        known = self._shared.get((snapshot_id, id(deletes)))
        if known is None:
            groups: dict[Hashable, list[ManifestEntry]] = {}
            for entry in deletes:
                groups.setdefault((snapshot_id, *_key_group(entry)), []).append(entry)
            known = {
                group: max(_nbytes(found), len(found) * self._open_cost)
                for group, found in groups.items()
            }
            self._shared[snapshot_id, id(deletes)] = known
        return known


def _nbytes(deletes: Sequence[ManifestEntry]) -> int:
    return sum(e.data_file.content_size_in_bytes or e.data_file.file_size_in_bytes for e in deletes)


def _key_group(entry: ManifestEntry) -> tuple[tuple[int, ...], PartitionKey]:
    """Equality delete files with the same key columns and scope form one key set."""
    return tuple(sorted(entry.data_file.equality_ids)), partition_of(entry.data_file)


class _DeleteTable:
    """Collects the deletes of a task group: each file once, equality deletes by key set.

    Equality deletes of different versions (snapshots) form different key sets.
    """

    def __init__(self) -> None:
        self.positions: dict[DeleteFileRef, int] = {}
        self._keys: dict[
            tuple[Hashable, tuple[int, ...], PartitionKey], tuple[int, dict[DeleteFileRef, None]]
        ] = {}
        self._indices: dict[tuple[Hashable, int], tuple[int, ...]] = {}

    def add_positions(self, deletes: tuple[ManifestEntry, ...]) -> tuple[int, ...]:
        """Adds position deletes; returns their indices in the task group."""
        return self._indices_of(deletes, None, self._position_index)

    def add_equality(
        self, deletes: tuple[ManifestEntry, ...], version: Hashable
    ) -> tuple[int, ...]:
        """Adds equality deletes; returns the indices of their groups in the task group."""
        return self._indices_of(deletes, version, lambda entry: self._group_index(entry, version))

    def groups(self) -> tuple[EqualityDeleteGroup, ...]:
        return tuple(
            EqualityDeleteGroup(ids, tuple(sorted(refs, key=lambda ref: ref.file_path)))
            for (_, ids, _), (_, refs) in self._keys.items()
        )

    def _indices_of(
        self,
        deletes: tuple[ManifestEntry, ...],
        version: Hashable,
        index_of: Callable[[ManifestEntry], int],
    ) -> tuple[int, ...]:
        # Many files share one tuple of deletes, which is added once.
        indices = self._indices.get((version, id(deletes)))
        if indices is None:
            indices = tuple(dict.fromkeys(map(index_of, deletes)))
            self._indices[version, id(deletes)] = indices
        return indices

    def _position_index(self, entry: ManifestEntry) -> int:
        ref = delete_file_ref(entry.data_file, entry.data_sequence_number)
        return self.positions.setdefault(ref, len(self.positions))

    def _group_index(self, entry: ManifestEntry, version: Hashable) -> int:
        group = (version, *_key_group(entry))
        index, refs = self._keys.setdefault(group, (len(self._keys), {}))
        refs[delete_file_ref(entry.data_file, entry.data_sequence_number)] = None
        return index


def _task_group(group: Sequence[_Split], schemas: Sequence[Schema]) -> ScanTaskGroup:
    table = _DeleteTable()
    tasks = []
    for split in group:
        file = split.file
        data_file = file.entry.data_file
        tasks.append(
            FileScanTask(
                file_path=data_file.file_path,
                file_format=data_file.file_format,
                file_size_in_bytes=data_file.file_size_in_bytes,
                record_count=data_file.record_count,
                start=split.start,
                length=split.length,
                spec_id=data_file.spec_id,
                partition=data_file.partition,
                data_sequence_number=file.entry.data_sequence_number,
                first_row_id=data_file.first_row_id,
                position_deletes=table.add_positions(file.deletes.position_deletes),
                equality_deletes=table.add_equality(
                    file.deletes.equality_deletes, file.snapshot_id
                ),
                change=None if file.change is None else _task_change(file.change, table),
            )
        )
    groups = table.groups()
    ids = {field_id for keyed in groups for field_id in keyed.equality_ids}
    return ScanTaskGroup(tuple(tasks), tuple(table.positions), groups, key_schema(schemas, ids))


def _task_change(change: FileChange, table: _DeleteTable) -> TaskChange:
    deletes = change.deletes
    if deletes is None:
        return TaskChange(change.change_type, change.ordinal, change.snapshot_id)
    return TaskChange(
        change.change_type,
        change.ordinal,
        change.snapshot_id,
        True,
        table.add_positions(deletes.position_deletes),
        table.add_equality(deletes.equality_deletes, (change.snapshot_id, change.change_type)),
    )
