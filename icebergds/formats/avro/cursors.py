"""Moves cursors through decompressed Avro data, over numbers and strings of many records at once.

A cursor array holds one offset per record. Nothing here raises for damaged data: a cursor that
would leave the buffer, or that meets a negative length, goes to `over` and stays there. The caller
checks afterwards that each record ended where it should.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

_PADDING = bytes(32)

_STOPS = np.uint64(0x8080808080808080)
_ONE = np.uint64(1)
# The first bytes of a word, and the highest bits of the bytes after them.
_KEPT = tuple((1 << 8 * count) - 1 for count in range(9))
_STOPS_AFTER = tuple(np.uint64(int(_STOPS) & ~kept) for kept in _KEPT)
_THREE = np.uint64(3)
_SEVEN = np.uint64(7)
_TOP_BYTE = np.uint64(56)
# (1 << 8 * k) * _LENGTHS has k + 1 in its top byte.
_LENGTHS = np.uint64(0x0102030405060708)
# Joining groups of 7 bits two by two, then four by four, then eight.
_JOINS = (
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), _ONE),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)


@dataclass(slots=True)
class VarintPairs:
    """Keys, each followed by a number, and the cursors after both.

    Keys and values are a single number if they are the same for all records. Values are decoded
    when first needed: `stored` may hold the words that contain them, the bit at their end, and the
    number of bits before them.
    """

    keys: int | Int64s
    after: Int64s
    stored: int | Int64s | tuple[UInt64s, UInt64s, Any]

    @property
    def values(self) -> int | Int64s:
        if isinstance(self.stored, tuple):
            words, last, key_bits = self.stored
            return _unzigzag(_joined((words & (last - _ONE)) >> key_bits))
        return self.stored


class Cursors:
    """Moves cursors over one buffer.

    Args:
        pieces: the buffer in pieces: decompressed Avro values, one after the other.
    """

    def __init__(self, pieces: Iterable[bytes | memoryview]) -> None:
        self.data = b"".join([*pieces, _PADDING])
        self.size = len(self.data) - len(_PADDING)
        self.over = self.size + 1
        self.bytes = np.frombuffer(self.data, np.uint8)
        self.words: UInt64s = self.every_byte("<u8")

    def every_byte(self, dtype: str) -> npt.NDArray[Any]:
        """A view with an element at every byte, so that one lookup reads a whole number."""
        kind = np.dtype(dtype)
        count = len(self.data) - kind.itemsize + 1
        return np.ndarray((count,), kind, self.data, strides=(1,))

    def moved(self, at: Int64s, by: Int64s | int) -> Int64s:
        """Cursors moved forward, at most to `over`."""
        after: Int64s = at + by
        np.minimum(after, self.over, out=after)
        return after

    def skip_varint(self, at: Int64s) -> Int64s:
        """Cursors after one number."""
        stops = ~self.words[at] & _STOPS
        if not stops.all():
            return self.varint(at)[1]
        return self.moved(at, _length(stops & -stops))

    def varint(self, at: Int64s) -> tuple[Int64s, Int64s]:
        """Numbers (Avro `int` and `long`) and the cursors after them."""
        short = self.bytes[at]
        if short.max() < 0x80:
            return _unzigzag(short.astype(np.uint64)), self.moved(at, 1)
        words = self.words[at]
        stops = ~words & _STOPS
        low = stops & -stops
        if stops.all():
            return _unzigzag(_joined(words & (low - _ONE))), self.moved(at, _length(low))
        return self._long_varint(at, words, low)

    def pairs(self, at: Int64s) -> VarintPairs:
        """Two consecutive numbers and the cursors after them.

        Records are often alike: the first one is decoded, and one comparison tells whether all
        others are equal.
        """
        words = self.words[at]
        first = int(words[0])
        key_end = _end(first, 0)
        value_end = _end(first, key_end) if key_end else 0
        if value_end:
            differing = int(np.bitwise_or.reduce(words ^ words[0]))
            key = _number(first, 0, key_end)
            if not differing & _KEPT[value_end]:
                value = _number(first, key_end, value_end)
                return VarintPairs(key, self.moved(at, value_end), value)
            if not differing & _KEPT[key_end]:
                stops = ~words & _STOPS_AFTER[key_end]
                if stops.all():
                    low = stops & -stops
                    raw = (words, low, np.uint64(8 * key_end))
                    return VarintPairs(key, self.moved(at, _length(low)), raw)
        return self._unlike_pairs(at, words)

    def slices(self, at: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Strings or bytes: their offsets, their lengths, and the cursors after them."""
        lengths, starts = self.varint(at)
        return starts, lengths, self.past_slices(starts, lengths)

    def past_slices(self, starts: Int64s, lengths: int | Int64s) -> Int64s:
        """Cursors after slices of given lengths."""
        if isinstance(lengths, int):
            return self.moved(starts, lengths if 0 <= lengths < self.over else self.over)
        # As unsigned numbers, negative lengths are the greatest ones.
        bounded = np.minimum(lengths.view(np.uint64), np.uint64(self.over)).view(np.int64)
        return self.moved(starts, bounded)

    def _unlike_pairs(self, at: Int64s, words: UInt64s) -> VarintPairs:
        stops = ~words & _STOPS
        first = stops & -stops
        stops ^= first
        if not stops.all():
            keys, at = self.varint(at)
            values, at = self.varint(at)
            return VarintPairs(keys, at, values)
        second = stops & -stops
        keys = _unzigzag(_joined(words & (first - _ONE)))
        key_bits = _length(first).view(np.uint64) << _THREE
        return VarintPairs(keys, self.moved(at, _length(second)), (words, second, key_bits))

    def _long_varint(self, at: Int64s, words: UInt64s, low: UInt64s) -> tuple[Int64s, Int64s]:
        """Numbers of which some have 9 or 10 bytes."""
        numbers = _joined(words & (low - _ONE))
        lengths = _length(low)
        rows = np.flatnonzero(low == 0)
        tail = self.words[np.minimum(at[rows] + 8, self.over)]
        ninth = tail & np.uint64(0x7F)
        tenth = (tail >> np.uint64(8)) & np.uint64(0xFF)
        has_tenth = (tail & np.uint64(0x80)) != 0
        numbers[rows] |= ninth << _TOP_BYTE
        numbers[rows] |= np.where(has_tenth, tenth & _ONE, np.uint64(0)) << np.uint64(63)
        lengths[rows] = np.where(has_tenth, 10, 9)
        # The tenth byte holds one bit; more would not fit into 64 bits.
        lengths[rows[has_tenth & (tenth > _ONE)]] = self.over
        return _unzigzag(numbers), self.moved(at, lengths)


def _end(word: int, start: int) -> int:
    """The end of the number that starts at a byte of a word; 0 if it is beyond the word."""
    rest = word >> 8 * start
    for end in range(start + 1, 9):
        if not rest & 0x80:
            return end
        rest >>= 8
    return 0


def _number(word: int, start: int, end: int) -> int:
    """The number in some bytes of a word."""
    number = 0
    for index in range(end - 1, start - 1, -1):
        number = number << 7 | word >> 8 * index & 0x7F
    return number >> 1 ^ -(number & 1)


def _length(low: UInt64s) -> Int64s:
    """The number of bytes up to the one whose highest bit is the only bit set; 0 if none is."""
    return (((low >> _SEVEN) * _LENGTHS) >> _TOP_BYTE).view(np.int64)


def _joined(groups: UInt64s) -> UInt64s:
    """Joins the groups of 7 bits, one in each byte, into one number."""
    if groups.max() < 0x80:
        return groups
    for low, high, shift in _JOINS:
        groups = (groups & low) | ((groups & high) >> shift)
    return groups


def _unzigzag(numbers: UInt64s) -> Int64s:
    return ((numbers >> _ONE) ^ -(numbers & _ONE)).view(np.int64)
