"""Stores sets of row positions of a data file: small in memory and fast to apply to batches."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

Positions = npt.NDArray[np.int64]
RowMask = npt.NDArray[np.bool_]

# Collected positions are packed at this number, so that memory stays close to that of the result.
_PACKED_AT = 1 << 20
# From so many on, a container of a bitmap takes less than two bytes a position.
_DENSE_AT = 1 << 12
_POSITION_BYTES = 8
# A bitmap has a container for each 2^16 rows with a position; about what it takes besides values.
_CONTAINER_BITS = 16
_CONTAINER_BYTES = 64


class PositionSet:
    """An immutable set of row positions (from 0) of one data file.

    Stored as a sorted array, or as a Roaring bitmap if that is smaller, so it takes at most 8 bytes
    a position, about an eighth of a byte a row, and a few bytes for a run of consecutive positions.
    Positions of a bitmap are expanded by `positions` alone.
    """

    __slots__ = ("_stored",)

    def __init__(self, stored: Positions | BitMap64) -> None:
        """Wraps sorted positions or a bitmap; use `of`, `of_bitmap` and `union` instead."""
        self._stored = stored

    @classmethod
    def of(cls, positions: npt.ArrayLike) -> PositionSet:
        """The set of some positions, in any order, possibly repeated.

        Raises:
            ValueError: a position is negative.
        """
        found = np.array(positions, dtype=np.int64).reshape(-1)
        if found.size and not (found[1:] > found[:-1]).all():
            found.sort()
            found = found[np.concatenate(([True], found[1:] != found[:-1]))]
        if found.size and found[0] < 0:
            raise ValueError(f"position {found[0]} is negative")
        return cls(found if _is_sparse(found) else _bitmap_of(found))

    @classmethod
    def of_bitmap(cls, bitmap: BitMap64) -> PositionSet:
        """The positions of a bitmap, below 2^63. The bitmap must not change afterwards."""
        return cls(_expanded(bitmap) if _expanded_is_smaller(bitmap) else bitmap)

    @classmethod
    def union(cls, sets: Iterable[PositionSet]) -> PositionSet:
        """The positions that are in any of the sets."""
        parts = [part for part in sets if part]
        if len(parts) < 2:
            return parts[0] if parts else cls(_NO_POSITIONS)
        arrays = [part._stored for part in parts if not isinstance(part._stored, BitMap64)]
        if len(arrays) == len(parts):
            return cls.of(np.concatenate(arrays))
        bitmap = BitMap64().union(*(part.bitmap() for part in parts))
        bitmap.run_optimize()
        return cls.of_bitmap(bitmap)

    def mask(self, first: int, count: int) -> RowMask | None:
        """Which of the rows `first` to `first + count - 1` are in the set; None if none is."""
        if isinstance(self._stored, BitMap64):
            common = self._stored & BitMap64(range(first, first + count))
            if not common:
                return None
            if len(common) == count:
                return np.ones(count, dtype=np.bool_)
            found = _expanded(common)
        else:
            low, high = self._stored.searchsorted((first, first + count))
            if low == high:
                return None
            found = self._stored[low:high]
        mask = np.zeros(count, dtype=np.bool_)
        mask[found - first] = True
        return mask

    def contains(self, positions: Positions) -> RowMask:
        """Which of some positions, in any order, are in the set."""
        if isinstance(self._stored, BitMap64):
            known = _expanded(self._stored & _bitmap_of(np.sort(positions)))
        else:
            known = self._stored
        found: RowMask = np.append(known, -1)[known.searchsorted(positions)] == positions
        return found

    def issubset(self, other: PositionSet) -> bool:
        """Whether all positions are in the other set."""
        return bool(self.bitmap().issubset(other.bitmap()))

    def positions(self) -> Positions:
        """All positions, ascending: 8 bytes each, so use `parts` for sets of any size."""
        return _expanded(self._stored) if isinstance(self._stored, BitMap64) else self._stored

    def parts(self, size: int) -> Iterator[Positions]:
        """The positions, ascending, in arrays of `size`; the last one may be smaller."""
        for start in range(0, len(self), size):
            part = self._stored[start : start + size]
            yield _expanded(part) if isinstance(part, BitMap64) else part

    def bitmap(self) -> BitMap64:
        """The positions as a bitmap, which must not be changed."""
        return self._stored if isinstance(self._stored, BitMap64) else _bitmap_of(self._stored)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes; of a bitmap, approximately."""
        stored = self._stored
        return _bitmap_bytes(stored) if isinstance(stored, BitMap64) else stored.nbytes

    def __len__(self) -> int:
        return len(self._stored)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PositionSet):
            return NotImplemented
        return len(self) == len(other) and bool(self.bitmap() == other.bitmap())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PositionSet({len(self)} positions)"

    def __reduce__(self) -> tuple[Any, ...]:
        return (PositionSet, (self._stored,))

    @property
    def last(self) -> int:
        """The greatest position of a set that is not empty."""
        stored = self._stored
        return int(stored.max() if isinstance(stored, BitMap64) else stored[-1])


class PositionCollector:
    """Collects positions in any order, in about as much memory as their set."""

    __slots__ = ("_packed", "_pending", "_pending_count", "added")

    def __init__(self) -> None:
        self._packed: list[PositionSet] = []
        self._pending: list[Positions] = []
        self._pending_count = 0
        self.added = 0
        """How many positions were added, counting repeated ones each time."""

    def add(self, positions: Positions) -> None:
        """Takes positions, which must not change afterwards."""
        self._pending.append(positions)
        self._pending_count += len(positions)
        self.added += len(positions)
        if self._pending_count >= _PACKED_AT:
            self._pack()

    def add_all(self, other: PositionCollector) -> None:
        """Takes the positions of another collector, which must not be used afterwards."""
        self._packed += other._packed
        self.added += other.added
        self._pending += other._pending
        self._pending_count += other._pending_count
        self.settle()

    def settle(self) -> None:
        """Packs positions that may take much less memory as a set."""
        if self._pending_count >= _DENSE_AT:
            self._pack()

    def result(self) -> PositionSet:
        """The set of all positions so far."""
        self._pack()
        return PositionSet.union(self._packed)

    def _pack(self) -> None:
        if self._pending:
            self._packed.append(PositionSet.of(np.concatenate(self._pending)))
            self._pending, self._pending_count = [], 0
            # Sizes double between merges, so that a position is merged few times.
            while len(self._packed) > 1 and len(self._packed[-2]) <= 2 * len(self._packed[-1]):
                self._packed[-2:] = [PositionSet.union(self._packed[-2:])]


def _is_sparse(positions: Positions) -> bool:
    """Whether sorted positions take less memory as an array, as far as their range shows."""
    if not positions.size:
        return True
    containers = (
        (int(positions[-1]) >> _CONTAINER_BITS) - (int(positions[0]) >> _CONTAINER_BITS) + 1
    )
    return positions.nbytes <= containers * _CONTAINER_BYTES


def _expanded_is_smaller(bitmap: BitMap64) -> bool:
    return len(bitmap) * _POSITION_BYTES <= _bitmap_bytes(bitmap)


def _bitmap_bytes(bitmap: BitMap64) -> int:
    stored = bitmap.get_statistics()
    return int(
        stored["n_bytes_array_containers"]
        + stored["n_bytes_run_containers"]
        + stored["n_bytes_bitset_containers"]
        + stored["n_containers"] * _CONTAINER_BYTES
    )


def _bitmap_of(positions: Positions) -> BitMap64:
    """The bitmap of sorted positions."""
    if positions.size and positions[-1] - positions[0] == positions.size - 1:
        return BitMap64(range(int(positions[0]), int(positions[-1]) + 1))
    # A bitmap is built from an array of the standard library faster than from one of numpy.
    return BitMap64(array("Q", positions.tobytes()))


def _expanded(bitmap: BitMap64) -> Positions:
    return np.frombuffer(bitmap.to_array(), dtype=np.int64)


_NO_POSITIONS: Positions = np.empty(0, dtype=np.int64)
