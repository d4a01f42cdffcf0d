"""Keeps the position deletes of many data files, most of which share the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from icebergds.formats.manifests.packed_entries import Int32s, Int64s, PackedEntries
from icebergds.spec.manifest import DataFile

Deletes = tuple[DataFile, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DeletesByFile:
    """The position deletes that apply to data files.

    Attributes:
        numbers: for each of `files`, the position of its deletes in `deletes`.
        deletes: the deletes of these files, and perhaps of others.
    """

    files: PackedEntries
    numbers: Int32s
    deletes: tuple[Deletes, ...]

    def __len__(self) -> int:
        return len(self.numbers)


class DeleteCollector:
    """Collects the deletes of files that are numbered from 0.

    Args:
        count: how many files there are.
        merge: combines the deletes that a file has with those that are added.
    """

    def __init__(self, count: int, merge: Callable[[Deletes, Deletes], Deletes]) -> None:
        self._numbers = np.zeros(count, np.int32)
        self._deletes: list[Deletes] = [()]
        self._merge = merge

    def add(self, rows: Int64s, numbers: Int32s, deletes: tuple[Deletes, ...]) -> None:
        """Adds deletes of some files.

        Args:
            rows: the numbers of the files, none twice.
            numbers: for each, the position of its new deletes in `deletes`.
        """
        pairs = self._numbers[rows].astype(np.int64) * len(deletes) + numbers
        # Files with equal deletes keep sharing one tuple of them.
        distinct, at = np.unique(pairs, return_inverse=True)
        first = len(self._deletes)
        for before, added in zip(*np.divmod(distinct, len(deletes)), strict=True):
            self._deletes.append(self._merge(self._deletes[before], deletes[added]))
        self._numbers[rows] = first + at

    def of(self, row: int) -> Deletes:
        """The deletes of a file; none if it has none."""
        return self._deletes[int(self._numbers[row])]

    def rows(self) -> Int64s:
        """The numbers of the files that have deletes."""
        return np.flatnonzero(self._numbers)

    def collected(self, files: PackedEntries) -> DeletesByFile:
        """The collected deletes.

        Args:
            files: all files, in the order of their numbers.
        """
        rows = self.rows()
        return DeletesByFile(files.take(rows), self._numbers[rows], tuple(self._deletes))
