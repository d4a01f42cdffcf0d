"""Packs the files of a scan into task groups (spec: Scan Planning).

Files are split, splits are packed by their weights, and each group has the deletes of its files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from icebergds.scan.plan.files import FileChange, PlannedFile
from icebergds.scan.plan.splits import SplitOptions, pack, split_file
from icebergds.scan.read_plan import key_schema
from icebergds.scan.tasks import (
    DeleteFileRef,
    EqualityDeleteGroup,
    FileScanTask,
    ScanTaskGroup,
    TaskChange,
    delete_file_ref,
)
from icebergds.spec.manifest import DataFile, ManifestEntry, PartitionKey, partition_of
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.types import TIMESTAMP, TIMESTAMPTZ

_LOG = logging.getLogger(__name__)


def pack_files(
    files: Iterable[PlannedFile],
    metadata: TableMetadata,
    schema: Schema,
    splits: SplitOptions,
    *,
    whole: bool = False,
) -> Iterator[ScanTaskGroup]:
    """Packs files into task groups, lazily.

    Args:
        schema: the schema that is read.
        whole: do not split files.
    """
    weights = _Weights(splits)
    parts = map(_whole, files) if whole else _splits(files, splits.split_size)
    groups = pack(parts, weights.of, splits, weights.shared)
    schemas = (schema, *metadata.schema_history)
    count = 0
    for group in groups:
        yield _task_group(group, schemas)
        count += 1
    _LOG.info("%s: planned %d tasks", metadata.location, count)


def pack_groups(
    groups: Iterable[Sequence[PlannedFile]],
    metadata: TableMetadata,
    schema: Schema,
    splits: SplitOptions,
) -> Iterator[tuple[list[ScanTaskGroup], list[Sequence[PlannedFile]]]]:
    """Packs groups of files; yields each bin's task groups and groups of files.

    Neither groups nor files are split. Errors are those of `plan_files`.
    """
    weights = _Weights(splits)
    schemas = (schema, *metadata.schema_history)

    def whole_files(group: Sequence[PlannedFile]) -> list[_Split]:
        return list(map(_whole, group))

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


@dataclass(frozen=True, slots=True)
class _Split:
    file: PlannedFile
    start: int
    length: int


def _whole(file: PlannedFile) -> _Split:
    return _Split(file, 0, file.entry.data_file.file_size_in_bytes)


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
    return sum(entry.data_file.stored_size for entry in deletes)


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
    times = timestamp_columns(schemas[0])
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
                contradicted=file.contradicted,
                bounds=_time_bounds(data_file, times),
                key_metadata=data_file.key_metadata,
            )
        )
    groups = table.groups()
    ids = {field_id for keyed in groups for field_id in keyed.equality_ids}
    return ScanTaskGroup(tuple(tasks), tuple(table.positions), groups, key_schema(schemas, ids))


def timestamp_columns(schema: Schema) -> frozenset[int]:
    """The field ids of top-level timestamps; some imports record wrong bounds for them."""
    return frozenset(
        field.field_id for field in schema.fields if field.field_type in (TIMESTAMP, TIMESTAMPTZ)
    )


def _time_bounds(
    data_file: DataFile, times: frozenset[int]
) -> tuple[tuple[int, bytes, bytes], ...]:
    lower, upper = data_file.lower_bounds, data_file.upper_bounds
    if not lower or not times:
        return ()
    return tuple((i, lower[i], upper[i]) for i in sorted(times & lower.keys() & upper.keys()))


def _task_change(change: FileChange, table: _DeleteTable) -> TaskChange:
    deletes = change.deletes
    if deletes is None:
        return TaskChange(change.change_type, change.commit)
    state = change.commit.snapshot_id, change.change_type
    return TaskChange(
        change.change_type,
        change.commit,
        True,
        table.add_positions(deletes.position_deletes),
        table.add_equality(deletes.equality_deletes, state),
    )
