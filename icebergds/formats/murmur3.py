"""Murmur3 (32 bits, x86, seed 0) of many values at a time (spec: Appendix B)."""

from __future__ import annotations

import mmh3
import numpy as np
import numpy.typing as npt

_UInts = npt.NDArray[np.uint32]
_Int64s = npt.NDArray[np.int64]

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_FIVE = np.uint32(5)
_ADDED = np.uint32(0xE6546B64)
_MIX_1 = np.uint32(0x85EBCA6B)
_MIX_2 = np.uint32(0xC2B2AE35)
# Longer values are few and cost little each, while steps over all values cost the same for one.
_LONGEST_IN_STEP = 256
# Few enough that what is computed of them stays in the processor's cache.
_AT_ONCE = 32_768


def hash_longs(values: _Int64s) -> _UInts:
    """Hashes of the 8 little-endian bytes of integers."""
    words = np.ascontiguousarray(values).view(np.uint32).reshape(-1, 2)
    hashes = np.empty(len(values), np.uint32)
    for first in range(0, len(values), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        part = _with_word(np.zeros_like(hashes[rows]), words[rows, 0])
        hashes[rows] = _finished(_with_word(part, words[rows, 1]), np.uint32(8))
    return hashes


def hash_slices(data: npt.NDArray[np.uint8], starts: _Int64s, lengths: _Int64s) -> _UInts:
    """Hashes of slices of a buffer."""
    # Room for reading a whole word at the last byte.
    padded = np.concatenate((data, np.zeros(4, np.uint8)))
    words = np.ndarray((len(data) + 1,), "<u4", padded, strides=(1,))
    hashes = np.empty(len(starts), np.uint32)
    for first in range(0, len(starts), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        short = np.where(lengths[rows] > _LONGEST_IN_STEP, 0, lengths[rows])
        hashes[rows] = _hash_slices(words, starts[rows], short)
    for row in np.flatnonzero(lengths > _LONGEST_IN_STEP):
        value = data[starts[row] : starts[row] + lengths[row]].tobytes()
        hashes[row] = mmh3.hash(value, 0, signed=False)
    return hashes


def _hash_slices(words: _UInts, starts: _Int64s, lengths: _Int64s) -> _UInts:
    """Hashes of a few slices; `words` are those that begin at each byte of the buffer."""
    # The longest first, so that those with another word left are always in front.
    order = np.argsort(-lengths.astype(np.int16), kind="stable")
    starts, lengths = starts[order], lengths[order]
    counts = lengths // 4
    hashes = np.zeros(len(starts), np.uint32)
    for at in range(int(counts.max(initial=0))):
        more = int(np.searchsorted(-counts, -at))
        hashes[:more] = _with_word(hashes[:more], words[starts[:more] + 4 * at])
    bits = (lengths - 4 * counts).astype(np.uint32) * np.uint32(8)
    mask = (np.uint32(1) << bits) - np.uint32(1)
    # The bytes that fill no word; without any, mixing in zero changes nothing.
    hashes ^= _mixed(words[starts + 4 * counts] & mask)
    unordered = np.empty_like(hashes)
    unordered[order] = _finished(hashes, lengths.astype(np.uint32))
    return unordered


def _with_word(hashes: _UInts, words: _UInts) -> _UInts:
    mixed = _mixed(words)
    mixed ^= hashes
    _rotate(mixed, 13)
    mixed *= _FIVE
    mixed += _ADDED
    return mixed


def _mixed(words: _UInts) -> _UInts:
    mixed: _UInts = words * _C1
    _rotate(mixed, 15)
    mixed *= _C2
    return mixed


def _rotate(words: _UInts, by: int) -> None:
    high = words << np.uint32(by)
    words >>= np.uint32(32 - by)
    words |= high


def _finished(hashes: _UInts, lengths: _UInts | np.uint32) -> _UInts:
    """The last step; changes its argument."""
    hashes ^= lengths
    hashes ^= hashes >> np.uint32(16)
    hashes *= _MIX_1
    hashes ^= hashes >> np.uint32(13)
    hashes *= _MIX_2
    hashes ^= hashes >> np.uint32(16)
    return hashes
