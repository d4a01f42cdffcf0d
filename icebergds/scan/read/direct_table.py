"""Implements tables of integers in a small range, which are indexed directly, without hashing."""

from __future__ import annotations

import numpy as np

from icebergds.formats.deletes.key_hash import Hashes
from icebergds.scan.read.hash_table import SLOT_BYTES, Payload, Rows

_CHUNK = 1 << 16
_THREE = np.uint64(3)
_LOW = np.uint8(7)
_ONE = np.uint8(1)


def fits_directly(count: int, key_range: tuple[int, int], codes: Payload | None) -> bool:
    """Whether a direct table of some keys uses no more memory than a hash table."""
    bits = 1 if codes is None else 8 * codes.itemsize
    size = key_range[1] - key_range[0] + 2
    return count > 0 and size * bits <= 8 * SLOT_BYTES * count


class BitTable:
    """A set of integers: one bit for each value of their range.

    Args:
        words: the integers as 64-bit words, distinct.
        key_range: the smallest and the largest.
    """

    __slots__ = ("_bits", "_first", "_last")

    def __init__(self, words: Hashes, key_range: tuple[int, int]) -> None:
        self._first = np.int64(key_range[0]).view(np.uint64)
        # The last bit is for all values outside the range.
        self._last = np.uint64(key_range[1] - key_range[0] + 1)
        self._bits = np.zeros((int(self._last) >> 3) + 1, np.uint8)
        for start in range(0, len(words), _CHUNK):
            at, bit = self._places(words[start : start + _CHUNK])
            # Because words are distinct, adding sets the bits.
            np.add.at(self._bits, at, bit)

    def find(self, words: Hashes) -> tuple[Rows, None]:
        """Indices of the words that are in the table."""
        at, bit = self._places(words)
        found = self._bits.take(at)
        found &= bit
        # Finding true values is twice as fast as finding numbers.
        return np.flatnonzero(found != 0), None

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return self._bits.nbytes

    def _places(self, words: Hashes) -> tuple[Rows, Payload]:
        """The byte of each word, and its bit there."""
        offsets = words - self._first
        np.minimum(offsets, self._last, out=offsets)
        low = offsets.astype(np.uint8)
        low &= _LOW
        offsets >>= _THREE
        return offsets.view(np.intp), np.left_shift(_ONE, low)


class CodeTable:
    """A code for each integer, indexed by the offset from the smallest one.

    Args:
        words: the integers as 64-bit words, distinct.
        codes: the code of each; their type also holds one more than the largest code.
        key_range: the smallest and the largest.
    """

    __slots__ = ("_codes", "_first")

    def __init__(self, words: Hashes, codes: Payload, key_range: tuple[int, int]) -> None:
        self._first = np.int64(key_range[0]).view(np.uint64)
        # 0 if it is not a key; the last element is for all values outside the range.
        self._codes = np.zeros(key_range[1] - key_range[0] + 2, codes.dtype)
        for start in range(0, len(words), _CHUNK):
            some = slice(start, start + _CHUNK)
            self._codes[words[some] - self._first] = codes[some] + 1

    def find(self, words: Hashes) -> tuple[Rows, Payload]:
        """Indices of the words that are in the table, and their codes."""
        offsets = words - self._first
        np.minimum(offsets, np.uint64(len(self._codes) - 1), out=offsets)
        codes = self._codes.take(offsets.view(np.intp))
        rows = np.flatnonzero(codes != 0)
        return rows, codes[rows] - codes.dtype.type(1)

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return self._codes.nbytes
