"""Plans many data files into columns, which take less memory than an object for each file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.manifests.packed_entries import Int32s, Int64s, PackedEntries
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.delete_index import AppliedDeletes
from icebergds.scan.plan.files import NewDeletes, PlannedFile, gather_files
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class PackedFiles:
    """Planned files as columns. Iterating over them creates their objects, a few at a time.

    Attributes:
        delete_numbers: for each file, the index of its deletes in `deletes`.
        deletes: the deletes of these files, and possibly of others.
    """

    entries: PackedEntries
    delete_numbers: Int32s
    deletes: tuple[AppliedDeletes, ...]

    @classmethod
    def of(cls, files: Iterable[PlannedFile]) -> PackedFiles:
        """Packs files of one snapshot."""
        files, known = list(files), _DistinctDeletes()
        numbers = np.array([known.number(file.deletes) for file in files], np.int32)
        return cls(PackedEntries.of(file.entry for file in files), numbers, known.values)

    @classmethod
    def concat(cls, parts: Sequence[PackedFiles]) -> PackedFiles:
        """The files of all parts, in their order."""
        entries = PackedEntries.concat([part.entries for part in parts])
        if parts and all(part.deletes is parts[0].deletes for part in parts):
            numbers = np.concatenate([part.delete_numbers for part in parts])
            return cls(entries, numbers, parts[0].deletes)
        known = _DistinctDeletes()
        found = [known.numbers(part.deletes)[part.delete_numbers] for part in parts]
        return cls(entries, np.concatenate([np.empty(0, np.int32), *found]), known.values)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[PlannedFile]:
        for entry, number in zip(self.entries, self.delete_numbers, strict=True):
            yield PlannedFile(entry, self.deletes[number])

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> PackedFiles:
        """Some of the files, by their numbers, in that order."""
        return PackedFiles(self.entries.take(rows), self.delete_numbers[rows], self.deletes)

    def filter(self, mask: Mask) -> PackedFiles:
        """The files for which a mask is true."""
        return self.take(np.flatnonzero(mask))

    @property
    def nbytes(self) -> int:
        """The size of the files, in bytes."""
        return int(self.entries.file_size_in_bytes.sum())

    def applied(self) -> list[AppliedDeletes]:
        """The deletes of these files; deletes that many files share appear once."""
        return [self.deletes[number] for number in np.unique(self.delete_numbers)]

    def by_deletes(self, measure: Callable[[AppliedDeletes], int]) -> Int64s:
        """A number for each file that depends only on its deletes."""
        numbers, at = np.unique(self.delete_numbers, return_inverse=True)
        return np.array([measure(self.deletes[number]) for number in numbers], np.int64)[at]


def plan_packed_files(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    schema: Schema,
    row_filter: Expr = TRUE,
    *,
    chosen: Callable[[PackedFiles], Mask] | None = None,
    more_deletes: NewDeletes | None = None,
    by_partition: bool = True,
) -> PackedFiles:
    """Finds a scan's data files and their deletes; arguments and errors as for `plan_files`.

    Args:
        chosen: marks which files to return; all by default. It is called by several threads.
        more_deletes, by_partition: as for `gather_files`.
    """

    def pack(files: Iterable[PlannedFile]) -> PackedFiles:
        packed = PackedFiles.of(files)
        if chosen is None or (mask := chosen(packed)).all():
            return packed
        # Packed again, without the others.
        return PackedFiles.of(packed.filter(mask))

    parts, _ = gather_files(
        io,
        metadata,
        snapshot,
        schema,
        row_filter,
        pack,
        with_metrics=False,
        more_deletes=more_deletes,
        by_partition=by_partition,
    )
    return PackedFiles.concat(parts)


class _DistinctDeletes:
    """Numbers the deletes of files: many files share the same tuples of delete files."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], tuple[int, AppliedDeletes]] = {}

    @property
    def values(self) -> tuple[AppliedDeletes, ...]:
        """The deletes in the order of their numbers."""
        return tuple(deletes for _, deletes in self._found.values())

    def number(self, deletes: AppliedDeletes) -> int:
        """The number of deletes; keeps them, so that no other object gets their id."""
        key = id(deletes.position_deletes), id(deletes.equality_deletes)
        return self._found.setdefault(key, (len(self._found), deletes))[0]

    def numbers(self, deletes: Iterable[AppliedDeletes]) -> Int32s:
        """The numbers of some deletes."""
        return np.array([self.number(one) for one in deletes], np.int32)
