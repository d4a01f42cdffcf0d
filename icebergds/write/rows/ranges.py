"""Splits rows into ranges of sort keys, which are sorted one by one.

The bounds of the ranges are quantiles of a sample. A frequent key can be a bound several times: its
rows are spread over the ranges between, because equal rows need no order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.write.rows.fanout import merged
from icebergds.write.rows.ordered_bits import ByteStrings, UInts, byte_strings
from icebergds.write.rows.sorting import KeyColumn, concatenated, sorted_indices

Keys = Callable[[pa.RecordBatch], Sequence[KeyColumn]]
"""Computes the columns to compare rows by."""

_Ints = npt.NDArray[np.int64]

_SAMPLE = 100_000
# If more than this share of rows need more than their words compared, all are compared at once.
_FEW = 0.3


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of rows by their keys; created by `ranges_of`.

    Attributes:
        count: the number of ranges; range 0 is first.
        bounds: the lowest key of each range except the first, sorted.
    """

    count: int
    bounds: tuple[KeyColumn, ...]

    def split(self, batch: pa.RecordBatch, keys: Keys) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The number and the rows of each range that has rows.

        The result depends only on the arguments, so that a repeated task does the same.
        """
        if self.count == 1:
            order, ends = None, np.array([batch.num_rows])
        else:
            order, ends = self._placed(keys(batch))
        rows = batch if order is None else batch.take(pa.array(order))
        for number in np.flatnonzero(np.diff(ends, prepend=0)):
            start = int(ends[number - 1]) if number else 0
            yield int(number), rows.slice(start, int(ends[number]) - start)

    def _placed(
        self, columns: Sequence[KeyColumn]
    ) -> tuple[npt.NDArray[np.unsignedinteger], _Ints]:
        """A row order that puts ranges one after the other, and the end of each range."""
        leading = leading_words_of(self.bounds)
        words, bounds = leading.of(columns), leading.of(self.bounds)
        numbers, below = (np.searchsorted(bounds, words, side) for side in ("right", "left"))
        # Rows whose words equal those of a bound; if words are exact, only of a repeated bound.
        is_exact = are_exact(columns) and are_exact(self.bounds)
        close = np.flatnonzero(numbers - below > is_exact)
        if len(close) > _FEW * len(words):
            order, *counts = _counted(columns, self.bounds)
            return order, np.append(_spread(*counts), len(order))
        if len(close):
            rows = pa.array(close)
            order, *counts = _counted([column.take(rows) for column in columns], self.bounds)
            sizes = np.diff(_spread(*counts), prepend=0, append=len(order))
            numbers[close[order]] = np.repeat(np.arange(self.count), sizes)
        narrow = numbers.astype(np.uint16 if self.count <= 1 << 16 else np.uint32)
        # numpy uses radix sort for integers of 16 bits.
        order = np.argsort(narrow, kind="stable").astype(np.uint32)
        return order, np.bincount(numbers, minlength=self.count).cumsum()


def ranges_of(columns: Sequence[KeyColumn], count: int) -> Ranges:
    """Ranges of about equally many rows.

    Args:
        columns: the keys of a sample, in any order.
        count: how many ranges are wanted; there is one if the sample is empty.
    """
    rows = len(columns[0].values)
    if not rows or count == 1:
        return Ranges(1, ())
    sizes = np.arange(1, count) * rows // count
    bounds = sorted_indices(columns).take(pa.array(sizes))
    return Ranges(count, tuple(column.take(bounds) for column in columns))


def in_order(batches: list[pa.RecordBatch], keys: Keys, limit: int) -> Iterator[pa.RecordBatch]:
    """Sorts rows by their keys.

    Args:
        batches: rows of one schema; the list is emptied, so that they are freed early.
        limit: how many bytes to sort at once, which copies them twice; more are split into ranges.
    """
    size = sum(batch.nbytes for batch in batches)
    if size > limit and sum(batch.num_rows for batch in batches) > 1:
        ranges = ranges_of(_sample(batches, keys), 2 * -(-size // limit))
        parts: list[list[pa.RecordBatch]] = [[] for _ in range(ranges.count)]
        while batches:
            for number, rows in ranges.split(batches.pop(), keys):
                parts[number].append(rows)
        for part in parts:
            # The growing limit ends the recursion, even if few rows are large.
            yield from in_order(part, keys, 2 * limit)
        return
    whole = list(merged(batches))
    batches.clear()
    while whole:
        yield _sorted(whole.pop(0), keys)


def _sorted(batch: pa.RecordBatch, keys: Keys) -> pa.RecordBatch:
    columns = keys(batch)
    words = leading_words_of(columns).of(columns)
    order = np.argsort(words)
    if not are_exact(columns):
        placed = words.take(order)
        same = placed[1:] == placed[:-1]
        # Rows whose words equal those of the row before or after.
        close = np.flatnonzero(np.append(same, False) | np.append(False, same))
        if len(close) > _FEW * len(words):
            return batch.take(sorted_indices(columns))
        rows = pa.array(order.take(close))
        nearer = [KeyColumn(pa.array(words).take(rows)), *(c.take(rows) for c in columns)]
        order[close] = np.asarray(rows.take(sorted_indices(nearer)))
    return batch.take(pa.array(order))


def _sample(batches: Sequence[pa.RecordBatch], keys: Keys) -> list[KeyColumn]:
    """The keys of some rows of all batches."""
    step = 1 + sum(batch.num_rows for batch in batches) // _SAMPLE
    parts = []
    for batch in batches:
        rows = pa.array(np.arange(0, batch.num_rows, step))
        parts.append([column.take(rows) for column in keys(batch)])
    return concatenated(parts)


def _counted(
    columns: Sequence[KeyColumn], bounds: Sequence[KeyColumn]
) -> tuple[npt.NDArray[np.unsignedinteger], _Ints, _Ints]:
    """The row order, and for each bound how many rows are below it and how many not above it."""
    rows, first = len(columns[0].values), len(bounds[0].values)
    # Equal rows keep their order: the first copy of a bound comes before rows that are equal to
    # it, the second one after them.
    whole = sorted_indices(concatenated([bounds, columns, bounds]))
    order = np.asarray(whole).astype(np.int64) - first
    is_row = (order >= 0) & (order < rows)
    before = is_row.cumsum()
    return order[is_row].astype(np.uint32), before[order < 0], before[order >= rows]


def _spread(below: _Ints, until: _Ints) -> _Ints:
    """Where ranges begin: before the rows that equal their bound.

    If several ranges begin with the same key, the last begins after its rows, which the others
    share.
    """
    begins = below.copy()
    equal = np.flatnonzero(until > below)
    _, firsts, which, counts = np.unique(
        below[equal], return_index=True, return_inverse=True, return_counts=True
    )
    turn, others = np.arange(len(equal)) - firsts[which], counts[which] - 1
    begins[equal] += (until - below)[equal] * turn // np.maximum(others, 1)
    return begins


_WORD_BYTES = 8
_SIGN = np.uint64(1 << 63)
_GREATEST = np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class _LeadingWords:
    """Condenses sort keys to integers that are never lower for a greater key.

    Comparing integers is many times as fast as comparing keys, which only equal integers need.

    Attributes:
        prefix: bytes that the texts or byte strings of most rows begin with, as words; they are
            left out.
        prefix_bytes: the number of these bytes.
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


def leading_words_of(columns: Sequence[KeyColumn]) -> _LeadingWords:
    """Chooses how to condense keys between the lowest and the greatest of these."""
    values = next((c.values for c in columns if not pa.types.is_boolean(c.values.type)), None)
    if values is None or _is_whole(values.type) or len(values) == values.null_count:
        return _LeadingWords((), 0)
    ends = pc.min_max(values)
    both = byte_strings(pa.array([ends["min"].as_py(), ends["max"].as_py()], values.type))
    size = _common_bytes(both)
    prefix = tuple(
        int(both.word(offset, min(size - offset, _WORD_BYTES))[0])
        for offset in range(0, size, _WORD_BYTES)
    )
    return _LeadingWords(prefix, size)


def are_exact(columns: Sequence[KeyColumn]) -> bool:
    """Whether rows with the same integer have the same key."""
    varying = [c for c in columns if not pa.types.is_boolean(c.values.type) or c.values.true_count]
    return len(varying) == 1 and _is_whole(varying[0].values.type)


def _common_bytes(two: ByteStrings) -> int:
    """The length of the common prefix of two strings, in bytes."""
    shortest = int((two.ends - two.starts).min())
    for offset in range(0, shortest, _WORD_BYTES):
        first, second = map(int, two.word(offset, _WORD_BYTES))
        if first != second:
            return min(shortest, offset + (64 - (first ^ second).bit_length()) // 8)
    return shortest


def _is_whole(kind: pa.DataType) -> bool:
    is_time = pa.types.is_date32(kind) or pa.types.is_time64(kind) or pa.types.is_timestamp(kind)
    return bool(is_time or pa.types.is_int32(kind) or pa.types.is_int64(kind))
