"""Keeps the entries of many data files as columns, without metrics, in about 200 bytes a file.

Objects are created a few at a time, while one iterates over the entries.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.manifests.columns import STATISTICS
from icebergds.spec.manifest import (
    DataFile,
    DataFileRef,
    FileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    PartitionKey,
    partition_of,
)

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
_Value = TypeVar("_Value", bound=Hashable)

_AT_A_TIME = 1024
_FOUND_AT_A_TIME = 65_536
_NO_METRICS: dict[int, Any] = {}
_NO_HASHES = np.empty(0, np.int64)


class FileKind(NamedTuple):
    """What many data files have in common."""

    partition_key: PartitionKey
    partition: tuple[Any, ...]
    content: FileContent
    file_format: FileFormat
    sort_order_id: int | None
    equality_ids: tuple[int, ...]

    @property
    def spec_id(self) -> int:
        """The partition spec."""
        return self.partition_key[0]


class EntryCommit(NamedTuple):
    """What the entries of one commit have in common."""

    status: ManifestEntryStatus
    snapshot_id: int
    data_sequence_number: int
    file_sequence_number: int


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """A value for each entry; `kind` and `commit` are positions in `kinds` and `commits`."""

    path: pa.LargeStringArray
    path_hash: Int64s
    record_count: Int64s
    file_size_in_bytes: Int64s
    first_row_id: pa.Int64Array
    split_offsets: pa.ListArray
    key_metadata: pa.BinaryArray
    kind: Int32s
    commit: Int32s
    kinds: tuple[FileKind, ...]
    commits: tuple[EntryCommit, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PackedEntries:
    """Entries of data files; those that `take` returns share their columns.

    Attributes:
        rows: which entries of the columns.
    """

    columns: _Columns
    rows: Int64s

    @classmethod
    def of(cls, entries: Iterable[ManifestEntry]) -> PackedEntries:
        """Packs entries, without the metrics of their files."""
        entries = list(entries)
        kinds, commits = Numbering[FileKind](), Numbering[EntryCommit]()
        files = [entry.data_file for entry in entries]
        paths = [file.file_path for file in files]
        columns = _Columns(
            path=pa.array(paths, pa.large_string()),
            path_hash=path_hashes(paths),
            record_count=np.array([file.record_count for file in files], np.int64),
            file_size_in_bytes=np.array([file.file_size_in_bytes for file in files], np.int64),
            first_row_id=pa.array([file.first_row_id for file in files], pa.int64()),
            split_offsets=pa.array([file.split_offsets for file in files], pa.list_(pa.int64())),
            key_metadata=pa.array([file.key_metadata for file in files], pa.binary()),
            kind=np.array([kinds.of(_kind(file)) for file in files], np.int32),
            commit=np.array([commits.of(_commit(entry)) for entry in entries], np.int32),
            kinds=tuple(kinds.values),
            commits=tuple(commits.values),
        )
        return cls(columns, np.arange(len(entries)))

    @classmethod
    def concat(cls, parts: Sequence[PackedEntries]) -> PackedEntries:
        """The entries of all parts, in their order."""
        if not parts:
            return cls.of(())
        if all(part.columns is parts[0].columns for part in parts):
            return cls(parts[0].columns, np.concatenate([part.rows for part in parts]))
        kinds, commits = Numbering[FileKind](), Numbering[EntryCommit]()
        columns = _Columns(
            path=pa.concat_arrays([part.paths for part in parts]),
            path_hash=np.concatenate([part.path_hashes for part in parts]),
            record_count=np.concatenate([part.record_count for part in parts]),
            file_size_in_bytes=np.concatenate([part.file_size_in_bytes for part in parts]),
            first_row_id=pa.concat_arrays([part.first_row_id for part in parts]),
            split_offsets=pa.concat_arrays([part.split_offsets for part in parts]),
            key_metadata=pa.concat_arrays([part.key_metadata for part in parts]),
            kind=np.concatenate(
                [kinds.all(p.columns.kinds)[p.columns.kind[p.rows]] for p in parts]
            ),
            commit=np.concatenate(
                [commits.all(p.columns.commits)[p.columns.commit[p.rows]] for p in parts]
            ),
            kinds=tuple(kinds.values),
            commits=tuple(commits.values),
        )
        return cls(columns, np.arange(len(columns.kind)))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ManifestEntry]:
        for start in range(0, len(self), _AT_A_TIME):
            yield from _entries(self.take(np.arange(start, min(start + _AT_A_TIME, len(self)))))

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> PackedEntries:
        """Some of the entries, by their numbers, in that order."""
        return PackedEntries(self.columns, self.rows[rows])

    @property
    def paths(self) -> pa.LargeStringArray:
        """The paths of the files."""
        return _taken(self.columns.path, self.rows)

    @property
    def path_hashes(self) -> Int64s:
        """Hashes of the paths, equal for equal paths within this process."""
        return self.columns.path_hash[self.rows]

    @property
    def record_count(self) -> Int64s:
        """The numbers of rows."""
        return self.columns.record_count[self.rows]

    @property
    def file_size_in_bytes(self) -> Int64s:
        """The sizes of the files."""
        return self.columns.file_size_in_bytes[self.rows]

    @property
    def first_row_id(self) -> pa.Int64Array:
        """The ids of the first rows, null if there are none."""
        return _taken(self.columns.first_row_id, self.rows)

    @property
    def split_offsets(self) -> pa.ListArray:
        """The offsets at which the files can be split."""
        return _taken(self.columns.split_offsets, self.rows)

    @property
    def key_metadata(self) -> pa.BinaryArray:
        """The key metadata of the files, null of those that are not encrypted."""
        return _taken(self.columns.key_metadata, self.rows)

    @property
    def data_sequence_number(self) -> Int64s:
        """The data sequence numbers."""
        numbers = [commit.data_sequence_number for commit in self.columns.commits]
        return np.array(numbers, np.int64)[self.columns.commit[self.rows]]

    @property
    def file_sequence_number(self) -> Int64s:
        """The sequence numbers of the commits that added the files."""
        numbers = [commit.file_sequence_number for commit in self.columns.commits]
        return np.array(numbers, np.int64)[self.columns.commit[self.rows]]

    @property
    def kind_numbers(self) -> Int32s:
        """The numbers of the kinds of the files in `kinds`."""
        return self.columns.kind[self.rows]

    @property
    def kinds(self) -> tuple[FileKind, ...]:
        """The kinds of these files, and perhaps further ones."""
        return self.columns.kinds

    @property
    def spec_ids(self) -> Int64s:
        """The partition specs of the files."""
        return np.array([kind.spec_id for kind in self.kinds], np.int64)[self.kind_numbers]

    def partition_numbers(self) -> Int32s:
        """A number for each file, equal for files of the same partition."""
        found = Numbering[PartitionKey]()
        return found.all(kind.partition_key for kind in self.kinds)[self.kind_numbers]

    def by_partition(self) -> dict[PartitionKey, Int64s]:
        """The numbers of the entries of each partition."""
        partitions, kinds = self.partition_numbers(), self.kind_numbers
        order = np.argsort(partitions, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(partitions[order])) + 1)
        return {self.kinds[kinds[rows[0]]].partition_key: rows for rows in parts if len(rows)}

    def index(self) -> PathIndex:
        """Finds entries by the paths of their files."""
        return PathIndex(self.columns.path, self.rows, self.path_hashes)

    def partitions(self) -> list[DataFileRef]:
        """A file without a path for each partition of these files."""
        kinds = (self.kinds[number] for number in np.unique(self.kind_numbers))
        found = {kind.partition_key: kind for kind in kinds}
        return [DataFileRef("", kind.spec_id, kind.partition) for kind in found.values()]


class Numbering(Generic[_Value]):
    """Numbers distinct values in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[_Value, int] = {}

    @property
    def values(self) -> Iterable[_Value]:
        """The values, in the order of their numbers."""
        return self._numbers

    def of(self, value: _Value) -> int:
        """The number of a value."""
        return self._numbers.setdefault(value, len(self._numbers))

    def all(self, values: Iterable[_Value]) -> Int32s:
        """The numbers of some values."""
        return np.array([self.of(value) for value in values], np.int32)


class PathIndex:
    """Finds the numbers of paths: by their hashes, compared as text then.

    Args:
        rows: which of `paths`, in the order of their numbers.
        hashes: those of these.
    """

    def __init__(self, paths: pa.LargeStringArray, rows: Int64s, hashes: Int64s) -> None:
        self._paths, self._rows = paths, rows
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]

    @classmethod
    def of(cls, parts: Sequence[pa.StringArray]) -> PathIndex:
        """An index of the paths of all parts."""
        hashes = [path_hashes(part.to_pylist()) for part in parts]
        paths = pa.chunked_array(parts, pa.string()).cast(pa.large_string()).combine_chunks()
        return cls(paths, np.arange(len(paths)), np.concatenate([_NO_HASHES, *hashes]))

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, paths: pa.Array) -> Int64s:
        """The number of each path, the first one if it has several; -1 if it has none."""
        return self._find(paths, path_hashes(paths.to_pylist()))

    def find_all(self, paths: Iterable[str | None]) -> Int64s:
        """The number of each path, as `find` does, of which few are in memory at a time."""
        left = iter(paths)
        parts = iter(lambda: list(islice(left, _FOUND_AT_A_TIME)), [])
        found = (self._find(pa.array(part, pa.string()), path_hashes(part)) for part in parts)
        return np.concatenate([_NO_HASHES, *found])

    def find_entries(self, entries: PackedEntries) -> Int64s:
        """The number of each entry's path, as `find` does, with little memory for many entries."""
        starts = range(0, len(entries), _FOUND_AT_A_TIME)
        parts = (
            entries.take(np.arange(at, min(at + _FOUND_AT_A_TIME, len(entries)))) for at in starts
        )
        found = [self._find(part.paths, part.path_hashes) for part in parts]
        return np.concatenate([_NO_HASHES, *found])

    def _find(self, paths: pa.Array, hashes: Int64s) -> Int64s:
        at, ends = (np.searchsorted(self._sorted, hashes, side) for side in ("left", "right"))
        found = np.full(len(paths), -1)
        left = np.flatnonzero(at < ends)
        while len(left):
            numbers = self._order[at[left]]
            own = self._paths.take(pa.array(self._rows[numbers]))
            is_same = pc.equal(own, paths.take(pa.array(left)).cast(own.type))
            is_found = is_same.fill_null(False).to_numpy(zero_copy_only=False)
            found[left[is_found]] = numbers[is_found]
            at[left] += 1
            left = left[~is_found & (at[left] < ends[left])]
        return found


def path_hashes(paths: Iterable[str | None]) -> Int64s:
    """Hashes of paths, as those of `PackedEntries`."""
    return np.fromiter(map(hash, paths), np.int64)


def _taken(column: pa.Array, rows: Int64s) -> pa.Array:
    is_whole = len(rows) == len(column) and np.array_equal(rows, np.arange(len(rows)))
    return column if is_whole else column.take(pa.array(rows))


def _kind(file: DataFile) -> FileKind:
    return FileKind(
        partition_of(file),
        file.partition,
        file.content,
        file.file_format,
        file.sort_order_id,
        file.equality_ids,
    )


def _commit(entry: ManifestEntry) -> EntryCommit:
    return EntryCommit(
        entry.status,
        entry.snapshot_id,
        entry.data_sequence_number,
        entry.file_sequence_number,
    )


def _entries(packed: PackedEntries) -> Iterator[ManifestEntry]:
    """An object for each entry."""
    columns = packed.columns
    kinds = [columns.kinds[number] for number in packed.kind_numbers.tolist()]
    commits = [columns.commits[number] for number in columns.commit[packed.rows].tolist()]
    files = map(
        DataFile,
        [kind.content for kind in kinds],
        packed.paths.to_pylist(),
        [kind.file_format for kind in kinds],
        [kind.spec_id for kind in kinds],
        [kind.partition for kind in kinds],
        packed.record_count.tolist(),
        packed.file_size_in_bytes.tolist(),
        *([_NO_METRICS] * len(packed) for _ in STATISTICS),
        packed.key_metadata.to_pylist(),
        map(tuple, packed.split_offsets.to_pylist()),
        [kind.equality_ids for kind in kinds],
        [kind.sort_order_id for kind in kinds],
        packed.first_row_id.to_pylist(),
    )
    return (
        ManifestEntry(
            commit.status,
            commit.snapshot_id,
            commit.data_sequence_number,
            commit.file_sequence_number,
            file,
        )
        for commit, file in zip(commits, files, strict=True)
    )
