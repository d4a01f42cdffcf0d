"""Builds and takes apart columns of byte strings, and the little-endian integers in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]

_MAX_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ByteStrings:
    """The byte strings of a column: the i-th is `data[offsets[i] : offsets[i + 1]]`."""

    offsets: Integers
    data: Bytes

    @staticmethod
    def of(array: pa.BinaryArray) -> ByteStrings:
        """The values of a column; those of nulls are arbitrary."""
        _, offsets, data = array.buffers()
        if not len(array):
            return ByteStrings(np.zeros(1, np.int32), np.empty(0, np.uint8))
        return ByteStrings(
            np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1],
            np.frombuffer(b"" if data is None else data, np.uint8),
        )

    @property
    def starts(self) -> Integers:
        return self.offsets[:-1]

    @property
    def lengths(self) -> Integers:
        return np.diff(self.offsets)

    def array(self) -> pa.BinaryArray:
        """The column, without nulls.

        Raises:
            pa.ArrowCapacityError: it has more than 2 GiB.
        """
        _check_capacity(int(self.offsets[-1]))
        buffers = [
            None,
            pa.py_buffer(self.offsets.astype(np.int32)),
            pa.py_buffer(np.ascontiguousarray(self.data)),
        ]
        return pa.Array.from_buffers(pa.binary(), len(self.offsets) - 1, buffers)


def of_lengths(lengths: Integers, data: Bytes) -> pa.BinaryArray:
    """A column without nulls of consecutive byte strings.

    Raises:
        pa.ArrowCapacityError: it has more than 2 GiB.
    """
    return ByteStrings(np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))), data).array()


def concatenated(columns: Sequence[pa.BinaryArray]) -> pa.BinaryArray:
    """Columns, one after the other.

    Raises:
        pa.ArrowCapacityError: they have more than 2 GiB.
    """
    if len(columns) == 1:
        return columns[0]
    _check_capacity(sum(int(ByteStrings.of(column).lengths.sum()) for column in columns))
    return pa.concat_arrays(columns)


def without_heads(array: pa.BinaryArray, heads: Integers) -> pa.BinaryArray:
    """A column without the first bytes of each string; it has no nulls."""
    strings = ByteStrings.of(array)
    cuts = np.empty(2 * len(array) + 1, np.int32)
    cuts[::2] = strings.offsets
    cuts[1::2] = strings.starts + heads
    tails = pa.array(np.arange(1, len(cuts), 2))
    return ByteStrings(cuts, strings.data).array().take(tails)


def substrings(data: Bytes, starts: Integers, lengths: Integers) -> pa.BinaryArray:
    """A column without nulls of byte strings anywhere in a buffer of less than 2 GiB."""
    ends = starts + lengths
    if (ends[:-1] > starts[1:]).any():
        # Not in order: values of objects may be in any.
        places = np.repeat(starts, lengths) + ordinals(lengths)
        return of_lengths(lengths, data[places])
    if (ends[:-1] == starts[1:]).all():
        first, last = (int(starts[0]), int(ends[-1])) if len(starts) else (0, 0)
        return of_lengths(lengths, data[first:last])
    cuts = np.stack([starts, ends], axis=1).reshape(-1)
    return ByteStrings(cuts, data).array().take(pa.array(np.arange(0, len(cuts), 2)))


def ordinals(counts: Integers) -> Integers:
    """0 to count - 1 for every count, one after the other."""
    ends = np.cumsum(counts, dtype=np.int64)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)


def width_of(numbers: Integers) -> Integers:
    """How many bytes hold unsigned numbers, 1 to 4."""
    return 1 + (numbers > 0xFF).astype(np.int64) + (numbers > 0xFFFF) + (numbers > 0xFFFFFF)


def packed(numbers: npt.NDArray[np.uint32], widths: Integers) -> Bytes:
    """The bytes of little-endian numbers of different widths, one after the other."""
    size = int(widths.max(initial=0))
    octets = numbers.astype("<u4", copy=False).view(np.uint8).reshape(-1, 4)[:, :size]
    return octets[np.arange(size) < widths[:, np.newaxis]]


def little_endian(data: Bytes, starts: Integers, widths: Integers) -> Integers:
    """The unsigned numbers at some places, with their numbers of bytes."""
    total = np.zeros(len(starts), np.int64)
    for place in range(int(widths.max(initial=0))):
        octets = data[np.minimum(starts + place, len(data) - 1)].astype(np.int64)
        total |= np.where(place < widths, octets << (8 * place), 0)
    return total


def _check_capacity(size: int) -> None:
    if size > _MAX_BYTES:
        raise pa.ArrowCapacityError(f"{size} bytes do not fit in a column")
