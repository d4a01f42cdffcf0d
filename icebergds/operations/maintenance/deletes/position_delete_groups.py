"""Chooses the position delete files to rewrite, in groups of one partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from icebergds.commit.base import CommitBase
from icebergds.commit.selection import read_columns
from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.formats.manifests.side_by_side import manifest_readers
from icebergds.operations.maintenance.deletes.position_delete_options import PositionDeleteOptions
from icebergds.scan.plan.partition_filters import PartitionFilters, has_live_files
from icebergds.scan.plan.prune import matching_entries
from icebergds.spec.manifest import (
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    PartitionKey,
    partition_of,
)
from icebergds.spec.reserved import DELETE_FILE_PATH
from icebergds.spec.table_properties import DELETE_GRANULARITY

_PATH_IDS = frozenset({DELETE_FILE_PATH.field_id})


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Position delete files of one partition that are rewritten as a unit."""

    files: tuple[ManifestEntry, ...]

    @property
    def partition(self) -> PartitionKey:
        return partition_of(self.files[0].data_file)

    @property
    def size(self) -> int:
        """The size of all files, in bytes."""
        return sum(_size(entry) for entry in self.files)

    @property
    def data_sequence_number(self) -> int:
        """The number of the new files: the highest of the files that they replace.

        A delete file applies to data files with at most its number. Rows that do not apply to a
        live file by the number of their own file are dropped, and data files that are added later
        have new paths or higher numbers: so a row applies to the same files as before.
        """
        return max(entry.data_sequence_number for entry in self.files)

    def parts(self, size: int) -> Iterator[tuple[ManifestEntry, ...]]:
        """The files in parts of about the same size, near `size` bytes."""
        total = max(self.size, 1)
        count = min(max(round(total / size), 1), len(self.files))
        parts: list[list[ManifestEntry]] = [[] for _ in range(count)]
        done = 0
        for entry in self.files:
            parts[done * count // total].append(entry)
            done += _size(entry)
        return (tuple(part) for part in parts if part)


@dataclass(frozen=True, slots=True)
class PlannedDeletes:
    """What a rewrite of position deletes does.

    Attributes:
        groups: in the order in which they are rewritten.
        homes: the partition of each delete file that names a single data file, by its path.
        vectors: paths of data files that have deletion vectors.
        vector_numbers: the data sequence number of each vector.
    """

    groups: list[DeleteGroup]
    homes: dict[str, PartitionKey]
    vectors: pa.StringArray
    vector_numbers: pa.Int64Array


def plan_delete_groups(
    base: CommitBase,
    row_filter: Expr,
    options: PositionDeleteOptions,
    written: Collection[str] = (),
) -> PlannedDeletes:
    """Reads the delete manifests of a branch, and chooses files to rewrite.

    On version 3, all position delete files of a partition become deletion vectors at once: readers
    ignore those of a data file that has a vector.

    Args:
        row_filter: bound to the table's schema; files of partitions without such rows are left.
        written: paths of files that an earlier pass wrote, which are left.

    Raises:
        MissingFileError, CorruptFileError: a manifest cannot be read.
        InvalidOptionError: a table property is malformed.
    """
    metadata = base.metadata
    filters = PartitionFilters(metadata.specs_by_id, metadata.schema(), row_filter)
    makes_vectors = metadata.format_version >= 3

    def read(manifest: ManifestFile) -> EntryColumns:
        columns = read_columns(base, manifest, _PATH_IDS)
        return columns.filter(columns.content == FileContent.POSITION_DELETES.value)

    manifests = [
        manifest
        for manifest in base.manifests_of(ManifestContent.DELETES)
        # The vectors of all partitions are needed.
        if (has_live_files(manifest) if makes_vectors else filters.might_match(manifest))
    ]
    homes: dict[str, PartitionKey] = {}
    found: list[ManifestEntry] = []
    vectors, numbers = [], []
    with ThreadPoolExecutor(manifest_readers(base.io, manifests)) as pool:
        for manifest, columns in zip(manifests, pool.map(read, manifests), strict=True):
            is_vector = columns.is_vector
            of_vectors, files = columns.filter(is_vector), columns.filter(~is_vector)
            vectors.append(of_vectors.referenced_data_file)
            numbers.append(pa.array(of_vectors.data_sequence_number))
            found += matching_entries(files, filters.of(manifest), TRUE)
            if makes_vectors:
                homes |= _homes(files.entries())
    found = [entry for entry in found if entry.data_file.file_path not in written]
    groups = _whole_partitions(found) if makes_vectors else _groups(base, found, options)
    return PlannedDeletes(
        _ordered(groups, options.job_order),
        homes if makes_vectors else _homes(entry for group in groups for entry in group.files),
        pa.chunked_array(vectors, pa.string()).combine_chunks(),
        pa.chunked_array(numbers, pa.int64()).combine_chunks(),
    )


def _homes(entries: Iterable[ManifestEntry]) -> dict[str, PartitionKey]:
    named = ((only_data_path(entry.data_file), entry.data_file) for entry in entries)
    return {path: partition_of(file) for path, file in named if path is not None}


def _whole_partitions(entries: Iterable[ManifestEntry]) -> list[DeleteGroup]:
    return [DeleteGroup(tuple(files)) for files in _by_partition(entries).values()]


def _groups(
    base: CommitBase, entries: Iterable[ManifestEntry], options: PositionDeleteOptions
) -> list[DeleteGroup]:
    keeps_files = (
        DELETE_GRANULARITY.of(base.metadata.properties) == "file" and not options.rewrite_all
    )
    groups = []
    for files in _by_partition(entries).values():
        if keeps_files:
            files = _not_alone(files)
        if not options.rewrite_all:
            files = [f for f in files if not options.min_size <= _size(f) <= options.max_size]
        # Deletes of one data file stay together, also in the new files.
        files.sort(key=_first_path)
        for packed in _packed(files, options):
            group = DeleteGroup(tuple(packed))
            if options.rewrite_all or _is_worthwhile(group, options):
                groups.append(group)
    return groups


def _by_partition(entries: Iterable[ManifestEntry]) -> dict[PartitionKey, list[ManifestEntry]]:
    partitions: dict[PartitionKey, list[ManifestEntry]] = {}
    for entry in entries:
        partitions.setdefault(partition_of(entry.data_file), []).append(entry)
    return partitions


def _not_alone(entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """Leaves out files that are the only ones of their data file, as new ones would be too."""
    paths = [only_data_path(entry.data_file) for entry in entries]
    counts = Counter(paths)
    return [
        entry
        for entry, path in zip(entries, paths, strict=True)
        if path is None or counts[path] > 1
    ]


def _first_path(entry: ManifestEntry) -> bytes:
    path = only_data_path(entry.data_file)
    if path is not None:
        return path.encode()
    return entry.data_file.lower_bounds.get(DELETE_FILE_PATH.field_id, b"")


def _packed(
    entries: Iterable[ManifestEntry], options: PositionDeleteOptions
) -> list[list[ManifestEntry]]:
    """Packs adjacent files; a file above the limit is alone."""
    packed: list[list[ManifestEntry]] = []
    size = 0
    for entry in entries:
        is_full = packed and len(packed[-1]) >= options.max_group_files
        if not packed or is_full or size + _size(entry) > options.max_group_size:
            packed.append([])
            size = 0
        packed[-1].append(entry)
        size += _size(entry)
    return packed


def _is_worthwhile(group: DeleteGroup, options: PositionDeleteOptions) -> bool:
    is_many = len(group.files) > 1 and (
        len(group.files) >= options.min_input_files or group.size > options.target_size
    )
    return is_many or group.size > options.max_size


def _ordered(groups: list[DeleteGroup], order: str) -> list[DeleteGroup]:
    if order == "none":
        return groups
    by_size = order.startswith("bytes")
    return sorted(
        groups,
        key=lambda group: group.size if by_size else len(group.files),
        reverse=order.endswith("desc"),
    )


def _size(entry: ManifestEntry) -> int:
    return entry.data_file.file_size_in_bytes
