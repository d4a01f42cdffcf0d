"""Computes 64-bit hashes of equality keys, column by column.

Words are folded into an accumulator one by one: exclusive or, multiplication by an odd number, then
exclusive or of the upper half into the lower. The multipliers come from a random seed per key set,
so no data, crafted or merely regular, collides in every set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.formats.deletes.key_columns import KeyColumn, Lane, Mask

Hashes = npt.NDArray[np.uint64]
_Rows = slice | npt.NDArray[np.intp]
_Lengths = npt.NDArray[np.int64]

NO_HASH = np.uint64(2**64 - 1)
"""Never the hash of a key; hash tables mark free slots with it."""

_NO_HASHES: Hashes = np.empty(0, np.uint64)
_HALF = np.uint64(32)
_GREATEST = NO_HASH - np.uint64(1)
# Makes nulls hash differently from 0 and the empty string.
_NULL_WORD = np.uint64(0x9E37_79B9_7F4A_7C15)
# A text's first words are folded one by one, all others at once, however long the text is.
_STEPPED_WORDS = 8
_WORDS_AT_ONCE = 1 << 20
# Each column draws its multipliers from a range of its own.
_COLUMN_STRIDE = 1 << 40
_LOW_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)


def new_seed() -> int:
    """A random seed that cannot be guessed."""
    return int.from_bytes(os.urandom(8), "little")


def distinct_hashes(parts: Iterable[Hashes]) -> Hashes:
    """The different hashes of all parts, ascending.

    Sorts, as np.unique of numpy 2.4 takes many times as long if most are different.
    """
    hashes = np.concatenate([_NO_HASHES, *parts])
    if (hashes[1:] > hashes[:-1]).all():
        return hashes
    hashes.sort()
    distinct: Hashes = hashes[np.append(True, hashes[1:] != hashes[:-1])]
    return distinct


def odd_multipliers(seed: int, first: int, count: int) -> Hashes:
    """Numbers `first` to `first + count - 1` of a sequence of random odd 64-bit numbers."""
    start = np.uint64((seed + first * 0x9E37_79B9_7F4A_7C15) % 2**64)
    numbers = np.arange(count, dtype=np.uint64)
    numbers *= np.uint64(0x9E37_79B9_7F4A_7C15)
    numbers += start
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58_476D_1CE4_E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D0_49BB_1331_11EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers | np.uint64(1)


def widen(lane: Lane) -> Hashes:
    """A lane, sign-extended to 64-bit words."""
    return lane.astype(np.int64, copy=False).view(np.uint64)


def mix(words: Hashes, multiplier: np.uint64) -> Hashes:
    """Spreads words over the upper bits; different words stay different."""
    mixed = words >> _HALF
    mixed ^= words
    mixed *= multiplier
    return mixed


def unmix(mixed: Hashes, multiplier: np.uint64) -> Hashes:
    """The inverse of `mix`."""
    words = mixed * np.uint64(pow(int(multiplier), -1, 2**64))
    words ^= words >> _HALF
    return words


def hash_columns(columns: Sequence[KeyColumn], length: int, seed: int) -> Hashes:
    """A hash for each row of the columns, never `NO_HASH`; equal keys have equal hashes."""
    hashes = np.zeros(length, dtype=np.uint64)
    for index, column in enumerate(columns):
        first = index * _COLUMN_STRIDE
        multipliers = odd_multipliers(seed, first, max(len(column.lanes), _STEPPED_WORDS) + 2)
        if column.valid is not None:
            _fold_at(hashes, _where(~column.valid), _NULL_WORD, multipliers[-1])
        for lane, multiplier in zip(column.lanes, multipliers, strict=False):
            _fold(hashes, widen(lane), multiplier)
        if column.text is not None:
            _fold_text(hashes, column.text, column.valid, multipliers, seed + first)
    mixed = mix(hashes, odd_multipliers(seed, -1, 1)[0])
    return np.minimum(mixed, _GREATEST, out=mixed)


def _fold(hashes: Hashes, words: Hashes | np.uint64, multiplier: np.uint64) -> None:
    hashes ^= words
    hashes *= multiplier
    hashes ^= hashes >> _HALF


def _fold_at(hashes: Hashes, rows: _Rows, words: Hashes | np.uint64, multiplier: np.uint64) -> None:
    part = hashes[rows]
    _fold(part, words, multiplier)
    hashes[rows] = part


def _where(mask: Mask) -> _Rows:
    return slice(None) if mask.all() else np.flatnonzero(mask)


class _Words:
    """Unaligned 8-byte words of a byte array, zero past its end."""

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self._aligned = np.zeros(len(data) // 8 + 2, dtype="<u8")
        self._aligned.view(np.uint8)[: len(data)] = data

    def at(self, offsets: _Lengths, lengths: _Lengths) -> Hashes:
        """The words at byte offsets, of which `lengths` bytes (at most 8) are used."""
        index = offsets >> 3
        shift = ((offsets & 7) << 3).view(np.uint64)
        words: Hashes = self._aligned.take(index, mode="clip")
        words >>= shift
        index += 1
        above = self._aligned.take(index, mode="clip")
        above <<= np.uint64(1)
        above <<= np.uint64(63) - shift
        words |= above
        if lengths.size and lengths.min() < 8:
            words &= _LOW_BYTES.take(lengths, mode="clip")
        return words


def _fold_text(
    hashes: Hashes, text: pa.Array, valid: Mask | None, multipliers: Hashes, seed: int
) -> None:
    offsets = _offsets(text)
    starts = offsets[:-1] - offsets[0]
    lengths = np.diff(offsets)
    if valid is not None:
        lengths *= valid
    _fold(hashes, lengths.view(np.uint64), multipliers[-2])
    words = _Words(
        np.frombuffer(text.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    )
    longest = int(lengths.max(initial=0))
    for step in range(min(_STEPPED_WORDS, (longest + 7) // 8)):
        done = 8 * step
        rows = _where(lengths > done)
        word = words.at(starts[rows] + done, lengths[rows] - done)
        _fold_at(hashes, rows, word, multipliers[step])
    if longest > 8 * _STEPPED_WORDS:
        _fold_tails(hashes, words, starts, lengths, seed)


def _fold_tails(
    hashes: Hashes, words: _Words, starts: _Lengths, lengths: _Lengths, seed: int
) -> None:
    """Folds the words after the stepped ones: a sum over words, each mixed with its index."""
    skipped = 8 * _STEPPED_WORDS
    rows = np.flatnonzero(lengths > skipped)
    counts = (lengths[rows] - skipped + 7) >> 3
    ends = np.cumsum(counts)
    first = 0
    while first < len(rows):
        budget = (ends[first - 1] if first else 0) + _WORDS_AT_ONCE
        last = max(first + 1, int(np.searchsorted(ends, budget, side="right")))
        some, sizes = rows[first:last], counts[first:last]
        begins = np.cumsum(sizes) - sizes
        index = np.arange(int(sizes.sum())) - np.repeat(begins, sizes)
        behind = skipped + 8 * index
        word = words.at(
            np.repeat(starts[some], sizes) + behind, np.repeat(lengths[some], sizes) - behind
        )
        multipliers = odd_multipliers(seed, skipped, int(sizes.max()) + 1)
        _fold(word, np.uint64(0), multipliers.take(index))
        word *= multipliers.take(index + 1)
        _fold_at(hashes, some, np.add.reduceat(word, begins), multipliers[0])
        first = last


def _offsets(text: pa.Array) -> _Lengths:
    width = np.int64 if pa.types.is_large_binary(text.type) else np.int32
    stored = np.frombuffer(text.buffers()[1] or bytes(8), dtype=width)
    return stored[text.offset : text.offset + len(text) + 1].astype(np.int64)
