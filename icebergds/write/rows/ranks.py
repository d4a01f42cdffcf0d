"""Maps values to their ranks in a sample of their column.

Along a curve through several columns, each bit of each column should halve the rows. The bits of
raw values do not: the leading bits of small numbers and of text with a common prefix are constant,
so that other columns come first, and most skewed values share a cell. Ranks spread the rows of
every column evenly over 16 bits, whatever the type, range and skew; a value that is repeated in the
sample gets room in proportion to its rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.spec.types import ScalarType
from icebergds.write.rows.ordered_bits import (
    ByteStrings,
    UInts,
    byte_strings,
    fits_an_integer,
    ordered_integers,
    plain_array,
)

_Ints = npt.NDArray[np.int64]

# Enough for many more files than a rewrite has in one group; the search takes 12 steps.
_MOST_BOUNDARIES = 4095
# Byte strings are searched for 6 bytes at a time, in a tree whose nodes have numbers of 16 bits.
_STEP_BYTES = 6
_NODE_SHIFT = np.uint64(8 * _STEP_BYTES)
# At most 48 bytes after the common prefix of all boundaries are compared.
_MOST_STEPS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The ranks of a column's values; created by `sample_ranks`, and can be pickled.

    Attributes:
        field_type: the column's type.
        count: the number of boundaries, including nulls.
        nulls: the number of boundaries that are null; they are first.
    """

    field_type: ScalarType
    count: int
    nulls: int
    _levels: tuple[_Level, ...]

    def of(self, array: pa.Array) -> npt.NDArray[np.uint16]:
        """The ranks of values: never lower for a greater value, and lowest for null.

        Args:
            array: values of the Arrow type `to_arrow(field_type)`.
        """
        # Twice the number of boundaries below, so that a value that equals boundaries gets the rank
        # in their middle, distinct from its neighbours.
        if fits_an_integer(self.field_type):
            found, _, _ = self._levels[0].search(ordered_integers(array, self.field_type))
        else:
            found = self._search(byte_strings(array))
        found += 2 * self.nulls + 1
        if array.null_count:
            found[array.is_null().to_numpy(zero_copy_only=False)] = self.nulls
        return ((found << 16) // (2 * self.count + 2)).astype(np.uint16)

    def _search(self, strings: ByteStrings) -> _Ints:
        found, node, equal = self._levels[0].search(strings.word(0, _STEP_BYTES))
        rows = np.arange(len(found))
        for depth, level in enumerate(self._levels[1:], 1):
            # Only rows that equal a boundary up to here are searched further.
            if not equal.all():
                kept = np.flatnonzero(equal)
                rows, strings, node = rows.take(kept), strings.take(kept), node.take(kept)
            if not len(rows):
                break
            part, node, equal = level.search(_keys(node, strings, depth))
            found[rows] = part
        return found


def sample_ranks(sample: pa.Array | pa.ChunkedArray, field_type: ScalarType) -> Ranks:
    """Computes ranks from a sample of a column.

    The boundaries are quantiles of the sample, at most 4,095, nulls and repeated values included.
    10,000 to 100,000 rows from all parts of the column are enough.

    Args:
        sample: values of the type, in any order, nulls included.
        field_type: the column's type, one that `curve_keys.can_order` accepts.
    """
    whole = plain_array(sample, field_type)
    count = min(len(whole), _MOST_BOUNDARIES)
    quantiles = (2 * np.arange(count) + 1) * len(whole) // (2 * max(count, 1))
    quantiles = quantiles[quantiles >= whole.null_count] - whole.null_count
    values = whole.drop_null()
    if fits_an_integer(field_type):
        level, _ = _level(np.sort(ordered_integers(values, field_type)).take(quantiles))
        levels = [level]
    else:
        levels = _tree(byte_strings(values.take(pc.sort_indices(values).take(quantiles))))
    return Ranks(field_type, count, count - len(quantiles), tuple(levels))


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """The different keys of sorted boundaries.

    Attributes:
        keys: sorted, padded with the greatest integer to a power of two minus one.
        starts: the index of the first boundary of each key, then the number of boundaries.
    """

    keys: UInts
    starts: _Ints

    def search(self, values: UInts) -> tuple[_Ints, _Ints, npt.NDArray[np.bool_]]:
        """Twice the number of boundaries below each value, plus the number of equal ones.

        Also returns the index of the first key that is not less, and whether it is equal.
        """
        # A binary search in lock-step, which is several times as fast as np.searchsorted.
        at = np.zeros(len(values), np.int64)
        step = (len(self.keys) + 1) // 2
        while step:
            at += (self.keys.take(at + (step - 1)) < values) * np.int64(step)
            step //= 2
        count = len(self.starts) - 1
        if not count:
            return at, at, np.zeros(len(values), np.bool_)
        equal = (self.keys.take(at, mode="clip") == values) & (at < count)
        return self.starts.take(at) + self.starts.take(at + equal), at, equal


def _tree(boundaries: ByteStrings) -> list[_Level]:
    """A level for each 6 bytes of sorted boundaries, until all differ or all bytes are compared."""
    node = np.zeros(len(boundaries.starts), np.int64)
    longest = int((boundaries.ends - boundaries.starts).max(initial=0))
    levels: list[_Level] = []
    after_prefix = 0
    for depth in range(longest // _STEP_BYTES + 1):
        level, node = _level(_keys(node, boundaries, depth))
        levels.append(level)
        different = len(level.starts) - 1
        after_prefix += different > 1
        if different == len(node) or after_prefix == _MOST_STEPS:
            break
    return levels


def _keys(node: _Ints, strings: ByteStrings, depth: int) -> UInts:
    """The bytes at a depth, combined with the node of all bytes before."""
    words = strings.word(depth * _STEP_BYTES, _STEP_BYTES)
    return words | (node.view(np.uint64) << _NODE_SHIFT)


def _level(keys: UInts) -> tuple[_Level, _Ints]:
    """A level of sorted keys, and the index of each key among the distinct ones."""
    different, starts, indices = np.unique(keys, return_index=True, return_inverse=True)
    padded = np.full((1 << len(different).bit_length()) - 1, np.iinfo(np.uint64).max, np.uint64)
    padded[: len(different)] = different
    return _Level(padded, np.append(starts, len(keys))), indices.astype(np.int64)
