"""Stores sets of row positions of a data file: small in memory and fast to apply to batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]
RowMask = npt.NDArray[np.bool_]

_POSITION_BYTES = 8
# Collected positions are packed at this number, so that memory stays close to that of the result.
_PACKED_AT = 1 << 20


class PositionSet:
    """An immutable set of row positions (from 0) of one data file.

    Stored as a sorted array, or as a bitmap over its range if that is smaller, so it takes at most
    8 bytes a position and at most an eighth of a byte a row.
    """

    __slots__ = ("_base", "_bits", "_count", "_positions")

    def __init__(
        self, positions: Positions, bits: npt.NDArray[np.uint8] | None = None, base: int = 0
    ) -> None:
        """Wraps sorted positions or a bitmap; use `of`, `of_bits` and `union` instead."""
        self._positions = positions
        self._bits = bits
        self._base = base
        self._count = len(positions) if bits is None else count_bits(bits)

    @classmethod
    def of(cls, positions: npt.ArrayLike) -> PositionSet:
        """The set of some positions, in any order, possibly repeated.

        Raises:
            ValueError: a position is negative.
        """
        array = np.array(positions, dtype=np.int64).reshape(-1)
        if array.size and not (array[1:] > array[:-1]).all():
            array.sort()
            array = array[np.concatenate(([True], array[1:] != array[:-1]))]
        if array.size and array[0] < 0:
            raise ValueError(f"position {array[0]} is negative")
        if not array.size or not bitmap_is_smaller(int(array[0]), int(array[-1]), array.size):
            return cls(array)
        base = int(array[0]) & ~7
        flags = np.zeros(int(array[-1]) - base + 1, dtype=np.bool_)
        flags[array - base] = True
        return cls(_NO_POSITIONS, np.packbits(flags, bitorder="little"), base)

    @classmethod
    def of_bits(cls, bits: npt.NDArray[np.uint8], base: int) -> PositionSet:
        """The positions `base + i` for every set bit i, lowest bit of the first byte first.

        `base` is a multiple of 8; the array is not copied.
        """
        return cls(_NO_POSITIONS, bits, base)

    @classmethod
    def union(cls, sets: Iterable[PositionSet]) -> PositionSet:
        """The positions that are in any of the sets."""
        parts = [part for part in sets if part]
        if len(parts) < 2:
            return parts[0] if parts else cls(_NO_POSITIONS)
        first = min(part.first for part in parts) & ~7
        last = max(part.last for part in parts)
        if not bitmap_is_smaller(first, last, max(len(part) for part in parts)):
            return cls.of(np.concatenate([part.positions() for part in parts]))
        bits = np.zeros((last - first) // 8 + 1, dtype=np.uint8)
        for part in parts:
            if part._bits is None:
                flags = np.zeros(part.last - first + 1, dtype=np.bool_)
                flags[part._positions - first] = True
                packed = np.packbits(flags, bitorder="little")
                bits[: len(packed)] |= packed
            else:
                used = part._bits[: (part.last - part._base) // 8 + 1]
                start = (part._base - first) // 8
                bits[start : start + len(used)] |= used
        return cls(_NO_POSITIONS, bits, first)

    def mask(self, first: int, count: int) -> RowMask | None:
        """Which of the rows `first` to `first + count - 1` are in the set; None if none is."""
        if self._bits is None:
            low, high = self._positions.searchsorted((first, first + count))
            if low == high:
                return None
            mask = np.zeros(count, dtype=np.bool_)
            mask[self._positions[low:high] - first] = True
            return mask
        start = max(first, self._base)
        end = min(first + count, self._base + 8 * len(self._bits))
        if start >= end:
            return None
        offset = start - self._base
        used = self._bits[offset >> 3 : (end - self._base + 7) >> 3]
        found = np.unpackbits(used, bitorder="little")[offset & 7 :][: end - start].view(np.bool_)
        if not found.any():
            return None
        if len(found) == count:
            return found
        mask = np.zeros(count, dtype=np.bool_)
        mask[start - first : end - first] = found
        return mask

    def contains(self, positions: Positions) -> RowMask:
        """Which of some positions, in any order, are in the set."""
        if self._bits is None:
            at = self._positions.searchsorted(positions)
            found: RowMask = np.append(self._positions, -1)[at] == positions
            return found
        offsets = positions - self._base
        inside = (offsets >= 0) & (offsets < 8 * len(self._bits))
        offsets[~inside] = 0
        found = (self._bits[offsets >> 3] >> (offsets & 7).astype(np.uint8) & 1).view(np.bool_)
        return found & inside

    def positions(self) -> Positions:
        """All positions, ascending."""
        if self._bits is None:
            return self._positions
        return np.flatnonzero(np.unpackbits(self._bits, bitorder="little")) + self._base

    def split(self, size: int) -> Iterator[tuple[int, Positions]]:
        """Splits the set into ranges of `size` rows: start and positions of each non-empty one."""
        if self._bits is None:
            ranges = self._positions // size
            cuts = np.flatnonzero(ranges[1:] != ranges[:-1]) + 1
            for part in np.split(self._positions, cuts) if self else ():
                yield int(part[0]) // size * size, part
            return
        for start in range(self._base // size * size, self._base + 8 * len(self._bits), size):
            mask = self.mask(start, size)
            if mask is not None:
                yield start, np.flatnonzero(mask) + start

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self._positions.nbytes if self._bits is None else self._bits.nbytes

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PositionSet):
            return NotImplemented
        return len(self) == len(other) and np.array_equal(self.positions(), other.positions())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PositionSet({len(self)} positions)"

    def __reduce__(self) -> tuple[Any, ...]:
        return (PositionSet, (self._positions, self._bits, self._base))

    @property
    def first(self) -> int:
        if self._bits is None:
            return int(self._positions[0])
        byte = int((self._bits != 0).argmax())
        value = int(self._bits[byte])
        return self._base + 8 * byte + (value & -value).bit_length() - 1

    @property
    def last(self) -> int:
        if self._bits is None:
            return int(self._positions[-1])
        byte = len(self._bits) - 1 - int((self._bits[::-1] != 0).argmax())
        return self._base + 8 * byte + int(self._bits[byte]).bit_length() - 1


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


def bitmap_is_smaller(first: int, last: int, count: int) -> bool:
    """Whether a bitmap from position `first` to `last` takes less memory than `count` positions."""
    return (last - first) // 8 + 1 < _POSITION_BYTES * count


def count_bits(data: npt.NDArray[np.uint8]) -> int:
    """How many bits are set in an array of bytes."""
    return int(_BITS_OF_BYTE[data].sum(dtype=np.int64))


_BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(
    axis=1, dtype=np.uint8
)
_NO_POSITIONS: Positions = np.empty(0, dtype=np.int64)
