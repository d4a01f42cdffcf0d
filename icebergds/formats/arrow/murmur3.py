"""Computes Murmur3 hashes (32 bits, x86, seed 0) of whole arrays (spec: Appendix B)."""

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
# Longer values are hashed one by one: a vectorised step costs as much for one value as for many.
_LONGEST_VECTORISED = 256
# Intermediate results of this many rows stay in the processor's cache.
_CHUNK_ROWS = 32_768


def hash_longs(values: _Int64s) -> _UInts:
    """Hashes of the 8 little-endian bytes of integers."""
    words = np.ascontiguousarray(values).view(np.uint32).reshape(-1, 2)
    hashes = np.empty(len(values), np.uint32)
    for first in range(0, len(values), _CHUNK_ROWS):
        rows = slice(first, first + _CHUNK_ROWS)
        part = _with_word(np.zeros_like(hashes[rows]), words[rows, 0])
        hashes[rows] = _finished(_with_word(part, words[rows, 1]), np.uint32(8))
    return hashes


def hash_slices(data: npt.NDArray[np.uint8], starts: _Int64s, lengths: _Int64s) -> _UInts:
    """Hashes of slices of a buffer."""
    # Padded so that two whole words can be read at the last byte.
    padded = np.zeros(len(data) // 4 * 4 + 8, np.uint8)
    padded[: len(data)] = data
    words = np.ndarray((len(padded) - 3,), "<u4", padded, strides=(1,))
    hashes = np.empty(len(starts), np.uint32)
    for first in range(0, len(starts), _CHUNK_ROWS):
        rows = slice(first, first + _CHUNK_ROWS)
        short = np.where(lengths[rows] > _LONGEST_VECTORISED, 0, lengths[rows])
        step = _even_step(starts[rows], short)
        if step is None:
            hashes[rows] = _hash_slices(padded.view("<u4"), starts[rows], short)
        else:
            start, length = int(starts[first]), int(short[0])
            hashes[rows] = _hash_even_slices(words, start, step, len(short), length)
    for row in np.flatnonzero(lengths > _LONGEST_VECTORISED):
        value = data[starts[row] : starts[row] + lengths[row]].tobytes()
        hashes[row] = mmh3.hash(value, 0, signed=False)
    return hashes


def _hash_even_slices(words: _UInts, start: int, step: int, count: int, length: int) -> _UInts:
    """Hashes of equally long slices that start at equal distances."""
    hashes = np.zeros(count, np.uint32)
    for at in range(start, start + length // 4 * 4, 4):
        hashes = _with_word(hashes, words[at::step][:count])
    if rest := length % 4:
        mask = np.uint32((1 << 8 * rest) - 1)
        hashes ^= _mixed(words[start + length - rest :: step][:count] & mask)
    return _finished(hashes, np.uint32(length))


def _even_step(starts: _Int64s, lengths: _Int64s) -> int | None:
    """The distance at which equally long slices start; None if lengths or distances differ."""
    if len(starts) < 2 or (lengths != lengths[0]).any():
        return None
    steps = np.diff(starts)
    return int(steps[0]) if steps[0] > 0 and (steps == steps[0]).all() else None


def _hash_slices(words: _UInts, starts: _Int64s, lengths: _Int64s) -> _UInts:
    """Hashes of a few slices of a buffer of words."""
    # Longest first, so that the slices with words left are always in front.
    order = np.argsort(-lengths.astype(np.int16), kind="stable")
    starts, lengths = starts[order], lengths[order]
    counts = lengths // 4
    hashes = np.zeros(len(starts), np.uint32)
    # Unaligned words are joined from two aligned ones, which is faster than unaligned reads.
    indices = starts // 4
    down = (starts % 4 * 8).astype(np.uint32)
    up = np.uint32(32) - down
    low = words.take(indices)
    for at in range(int(counts.max(initial=0))):
        more = int(np.searchsorted(-counts, -at))
        high = words.take(indices[:more] + (at + 1))
        hashes[:more] = _with_word(hashes[:more], _joined(low[:more], high, down, up))
        low = high
    indices += counts
    bits = (lengths - 4 * counts).astype(np.uint32) * np.uint32(8)
    mask = (np.uint32(1) << bits) - np.uint32(1)
    # The bytes after the last whole word; if there are none, mixing in zero changes nothing.
    rest = _joined(words.take(indices), words.take(indices + 1), down, up)
    hashes ^= _mixed(rest & mask)
    unordered = np.empty_like(hashes)
    unordered[order] = _finished(hashes, lengths.astype(np.uint32))
    return unordered


def _joined(low: _UInts, high: _UInts, down: _UInts, up: _UInts) -> _UInts:
    """Unaligned words, which start `down` bits after the start of `low`."""
    count = len(low)
    joined: _UInts = low >> down[:count]
    # In numpy, a shift by 32 bits gives zero.
    joined |= high << up[:count]
    return joined


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
    """The finalization step; changes its argument."""
    hashes ^= lengths
    hashes ^= hashes >> np.uint32(16)
    hashes *= _MIX_1
    hashes ^= hashes >> np.uint32(13)
    hashes *= _MIX_2
    hashes ^= hashes >> np.uint32(16)
    return hashes
