"""Looks up a batch's keys among deleted keys: indexes of integers and of any columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icebergds.formats.deletes.key_columns import KeyColumn, equal_rows
from icebergds.formats.deletes.key_hash import (
    Hashes,
    hash_columns,
    mix,
    new_seed,
    odd_multipliers,
    unmix,
    widen,
)
from icebergds.scan.read.hash_table import FREE, SLOT_BYTES, HashTable, Payload, Rows
from icebergds.scan.read.key_merge import Keys, distinct_keys

# Evenly spread values are at most some tens of slots away from their home slots.
_MAX_DISPLACEMENT = 256
_MAX_ROUNDS = 8
_CHUNK = 1 << 16
_THREE = np.uint64(3)
_LOW = np.uint8(7)
_ONE = np.uint8(1)


class ExactIndex:
    """Index of single integer keys: directly addressed if their range is small, else hashed.

    Args:
        keys: distinct keys, mixed once with `multiplier`; the index may modify them.
        key_range: smallest and largest key before mixing; None if there are no keys.
        multiplier: the multiplier that the keys were mixed with.
        null_code: sequence number code of the null key; None if null is not deleted.
    """

    __slots__ = ("_multipliers", "_no_codes", "_null_code", "_range", "_size", "_table")

    def __init__(
        self,
        keys: Keys,
        key_range: tuple[int, int] | None,
        multiplier: np.uint64,
        null_code: int | None,
    ) -> None:
        self._size = len(keys.hashes) + (null_code is not None)
        self._range = key_range or (0, -1)
        self._null_code = null_code
        self._no_codes = None if keys.codes is None else keys.codes[:0].copy()
        self._table: BitTable | CodeTable | HashTable
        self._multipliers: tuple[np.uint64, ...]
        if fits_directly(len(keys.hashes), self._range, keys.codes):
            self._table, self._multipliers = _direct(keys, self._range, multiplier), ()
        else:
            self._table, self._multipliers = _spread(keys, multiplier)

    def find(self, columns: Sequence[KeyColumn], length: int) -> tuple[Rows, Payload | None]:
        """Rows whose key is in the index, in any order, and their sequence number codes."""
        lane, valid = columns[0].lanes[0], columns[0].valid
        rows, codes = np.empty(0, dtype=np.intp), self._no_codes
        if lane.min() <= self._range[1] and lane.max() >= self._range[0]:
            words = widen(lane)
            for multiplier in self._multipliers:
                words = mix(words, multiplier)
            rows, codes = self._table.find(words)
        if valid is None:
            return rows, codes
        is_key = valid[rows]
        null_rows = np.flatnonzero(~valid)[: None if self._null_code is not None else 0]
        if codes is not None:
            null_codes = np.full(len(null_rows), self._null_code or 0, dtype=codes.dtype)
            codes = np.concatenate((codes[is_key], null_codes))
        return np.concatenate((rows[is_key], null_rows)), codes

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        return self._table.nbytes

    def __len__(self) -> int:
        return self._size


class HashedIndex:
    """Index of keys of any columns: found by hash, then compared by value.

    If different keys have the same hash (rare), all but one go into an overflow index with another
    seed.

    Args:
        keys: distinct keys with their hashes; the index may modify them.
        seed: the seed of the hashes.
    """

    __slots__ = ("_codes", "_columns", "_overflow", "_seed", "_size", "_table")

    def __init__(self, keys: Keys, seed: int) -> None:
        order = keys.hashes.argsort().astype(np.uint32)
        hashes = keys.hashes
        hashes.sort()
        first = np.ones(len(hashes), dtype=np.bool_)
        np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
        self._seed = seed
        self._columns = keys.columns
        self._codes = keys.codes
        self._size = len(order)
        self._overflow: HashedIndex | None = None
        if not first.all():
            rest = keys.take(order[~first].astype(np.intp))
            order, hashes = order[first], hashes[first]
            self._overflow = _rehashed(rest)
            self._size = len(order) + len(self._overflow)
        self._table = HashTable(hashes, order)

    def find(self, columns: Sequence[KeyColumn], length: int) -> tuple[Rows, Payload | None]:
        """Rows whose key is in the index, in any order, and their sequence number codes."""
        rows, at = self._table.find(hash_columns(columns, length, self._seed))
        assert at is not None, "the table has a payload"
        same = equal_rows(columns, rows, self._columns, at.astype(np.intp))
        rows, at = rows[same], at[same]
        codes = None if self._codes is None else self._codes[at]
        if self._overflow is None:
            return rows, codes
        more_rows, more_codes = self._overflow.find(columns, length)
        if codes is not None and more_codes is not None:
            codes = np.concatenate((codes, more_codes))
        return np.concatenate((rows, more_rows)), codes

    @property
    def nbytes(self) -> int:
        """Memory used, in bytes."""
        own = self._table.nbytes + sum(column.nbytes for column in self._columns)
        codes = 0 if self._codes is None else self._codes.nbytes
        return own + codes + (0 if self._overflow is None else self._overflow.nbytes)

    def __len__(self) -> int:
        return self._size


def _direct(keys: Keys, key_range: tuple[int, int], multiplier: np.uint64) -> BitTable | CodeTable:
    words = keys.hashes
    # In place and in parts, because a set can take much of the allowed memory.
    for start in range(0, len(words), _CHUNK):
        some = slice(start, start + _CHUNK)
        words[some] = unmix(words[some], multiplier)
    if keys.codes is None:
        return BitTable(words, key_range)
    return CodeTable(words, keys.codes, key_range)


def _spread(keys: Keys, multiplier: np.uint64) -> tuple[HashTable, tuple[np.uint64, ...]]:
    """Builds a hash table of the keys; returns it and all multipliers of the mixing, in order.

    Regular keys may cluster under one multiplier; then they are mixed again with another one.
    """
    values, codes = keys.hashes, keys.codes
    multipliers = [multiplier]
    while True:
        if not values.size or values[-1] != FREE:
            table = HashTable(values, codes)
            if table.displacement <= _MAX_DISPLACEMENT or len(multipliers) >= _MAX_ROUNDS:
                return table, tuple(multipliers)
            del table
        multipliers.append(odd_multipliers(new_seed(), 0, 1)[0])
        values = mix(values, multipliers[-1])
        if codes is None:
            values.sort()
        else:
            order = values.argsort()
            values, codes = values[order], codes[order]


def _rehashed(keys: Keys) -> HashedIndex:
    seed = new_seed()
    hashes = hash_columns(keys.columns, len(keys.hashes), seed)
    return HashedIndex(distinct_keys(Keys(hashes, keys.columns, keys.codes, keys.numbers)), seed)


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
