"""Condenses sort keys to integers that are never lower for a greater key.

Integers are compared many times as fast as keys. Only rows with equal integers need more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.write.rows.ordered_bits import ByteStrings, UInts, byte_strings
from icebergds.write.rows.sorting import KeyColumn

_WORD_BYTES = 8
_SIGN = np.uint64(1 << 63)
_GREATEST = np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class LeadingWords:
    """Condenses keys; created by `leading_words_of`.

    Attributes:
        prefix: bytes that the texts or byte strings of most rows begin with, as words; they are
            left out.
        prefix_bytes: how many there are.
    """

    prefix: tuple[int, ...]
    prefix_bytes: int

    def of(self, columns: Sequence[KeyColumn]) -> UInts:
        """An integer for each row, not lower than that of a row with a lower key."""
        first = columns[0]
        if not pa.types.is_boolean(first.values.type):
            words = self._words(first.values)
            return ~words if first.descending else words
        rows = len(first.values)
        words = self.of(columns[1:]) if len(columns) > 1 else np.zeros(rows, np.uint64)
        if first.values.true_count:
            # Mostly nulls, whose values do not matter.
            words[np.flatnonzero(first.values.fill_null(False))] = (
                np.uint64(0) if first.descending else _GREATEST
            )
        return words

    def _words(self, values: pa.Array) -> UInts:
        if _is_whole(values.type):
            width = pa.int32() if values.type.bit_width == 32 else pa.int64()
            integers = np.asarray(values.view(width).fill_null(0)).astype(np.int64)
            return integers.view(np.uint64) ^ _SIGN
        strings = byte_strings(values)
        words = strings.word(self.prefix_bytes, _WORD_BYTES)
        # Rows with another prefix are all below those with it, or all above.
        for at in range(len(self.prefix) - 1, -1, -1):
            offset = at * _WORD_BYTES
            own = strings.word(offset, min(self.prefix_bytes - offset, _WORD_BYTES))
            words[own < self.prefix[at]] = 0
            words[own > self.prefix[at]] = _GREATEST
        return words


def leading_words_of(columns: Sequence[KeyColumn]) -> LeadingWords:
    """What condenses keys well that are between the lowest and the greatest of these."""
    values = next((c.values for c in columns if not pa.types.is_boolean(c.values.type)), None)
    if values is None or _is_whole(values.type) or len(values) == values.null_count:
        return LeadingWords((), 0)
    ends = pc.min_max(values)
    both = byte_strings(pa.array([ends["min"].as_py(), ends["max"].as_py()], values.type))
    size = _common_bytes(both)
    prefix = tuple(
        int(both.word(offset, min(size - offset, _WORD_BYTES))[0])
        for offset in range(0, size, _WORD_BYTES)
    )
    return LeadingWords(prefix, size)


def are_exact(columns: Sequence[KeyColumn]) -> bool:
    """Whether rows with the same integer have the same key."""
    varying = [c for c in columns if not pa.types.is_boolean(c.values.type) or c.values.true_count]
    return len(varying) == 1 and _is_whole(varying[0].values.type)


def _common_bytes(two: ByteStrings) -> int:
    """How many bytes two strings begin with in common."""
    shortest = int((two.ends - two.starts).min())
    for offset in range(0, shortest, _WORD_BYTES):
        first, second = map(int, two.word(offset, _WORD_BYTES))
        if first != second:
            return min(shortest, offset + (64 - (first ^ second).bit_length()) // 8)
    return shortest


def _is_whole(kind: pa.DataType) -> bool:
    is_time = pa.types.is_date32(kind) or pa.types.is_time64(kind) or pa.types.is_timestamp(kind)
    return bool(is_time or pa.types.is_int32(kind) or pa.types.is_int64(kind))
