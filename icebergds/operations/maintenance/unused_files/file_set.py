"""Holds many listed files, each once, and leaves out those that are still in use.

Files are identified by 64-bit hashes of their locations: next to the locations themselves, a file
takes 16 bytes. If two locations have the same hash, one of the files is left out, and not deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.formats.deletes.key_columns import KeyColumn, Mask
from icebergds.formats.deletes.key_hash import Hashes, hash_columns, new_seed

_Part: TypeAlias = tuple[pa.RecordBatch, Hashes]

# Fewer rows than this are not worth sorting.
_FEW_ROWS = 1 << 16


class FileSet:
    """Rows of listed files, one for each file.

    All files must be added before those in use are left out.
    """

    def __init__(self) -> None:
        self._seed = new_seed()
        self._parts: list[_Part] = []
        self._known = np.empty(0, np.uint64)
        self._in_use = np.empty(0, np.bool_)
        self._new: list[_Part] = []
        self._new_rows = 0

    def __len__(self) -> int:
        """How many files are not in use."""
        self._settle()
        return len(self._known) - int(self._in_use.sum())

    def add(self, rows: pa.RecordBatch, names: pa.StringArray) -> None:
        """Adds the files that were not added before.

        Args:
            names: the files' locations, spelled so that those of one file are equal.
        """
        hashes = self._hashed(names)
        _, is_known = self._find(hashes)
        self._new += _selected((rows, hashes), ~is_known)
        self._new_rows += len(hashes) - int(is_known.sum())
        if self._new_rows > max(len(self._known), _FEW_ROWS):
            self._settle()

    def leave_out(self, names: pa.StringArray) -> None:
        """Leaves out files that are in use."""
        self._settle()
        places, is_known = self._find(self._hashed(names))
        self._in_use[places[is_known]] = True

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the files that are not in use, and stops holding them."""
        self._settle()
        self._parts.reverse()
        while self._parts:
            part = self._parts.pop()
            places, _ = self._find(part[1])
            for rows, _ in _selected(part, ~self._in_use[places]):
                yield rows

    def _hashed(self, names: pa.StringArray) -> Hashes:
        column = KeyColumn((), names.cast(pa.binary()), None)
        return hash_columns([column], len(names), self._seed)

    def _find(self, hashes: Hashes) -> tuple[npt.NDArray[np.intp], Mask]:
        """Positions of hashes among the sorted ones, and whether they are present."""
        if not len(self._known):
            return np.zeros(len(hashes), np.intp), np.zeros(len(hashes), np.bool_)
        places = np.minimum(np.searchsorted(self._known, hashes), len(self._known) - 1)
        return places, self._known[places] == hashes

    def _settle(self) -> None:
        """Merges in the hashes of new rows; keeps the first of rows with the same hash."""
        if not self._new:
            return
        hashes = np.concatenate([part[1] for part in self._new])
        distinct, first = np.unique(hashes, return_index=True)
        is_first = np.zeros(len(hashes), np.bool_)
        is_first[first] = True
        start = 0
        for part in self._new:
            end = start + len(part[1])
            self._parts += _selected(part, is_first[start:end])
            start = end
        self._known = np.sort(np.concatenate((self._known, distinct)), kind="stable")
        self._in_use = np.zeros(len(self._known), np.bool_)
        self._new, self._new_rows = [], 0


class Locations(Sequence[str]):
    """Locations of files; few are Python strings at a time."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Locations: ...

    def __getitem__(self, index: int | slice) -> str | Locations:
        if isinstance(index, slice):
            return Locations(self._column[index])
        location: str = self._column[index].as_py()
        return location

    def __iter__(self) -> Iterator[str]:
        for chunk in self._column.chunks:
            yield from chunk.to_pylist()


def _selected(part: _Part, mask: Mask) -> list[_Part]:
    """The rows of a part for which a mask is true; none if there are none."""
    if mask.all():
        return [part]
    if not mask.any():
        return []
    rows, hashes = part
    return [(rows.filter(pa.array(mask)), hashes[mask])]
