"""Matches equal rows of two sides as multisets: each row matches at most one other row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from icebergds.formats.deletes.key_columns import Mask
from icebergds.scan.read.row_fingerprints import Fingerprints

_Indices = npt.NDArray[np.intp]
_Counts = npt.NDArray[np.int32]


class FingerprintCounts:
    """The distinct fingerprints of rows, and how many rows have each; immutable.

    Args:
        parts: fingerprints of rows, in any order.
    """

    __slots__ = ("_high", "_low", "counts")

    def __init__(self, parts: Sequence[Fingerprints]) -> None:
        rows = Fingerprints.concat(parts)
        order = np.lexsort((rows.low, rows.high))
        high, low = rows.high[order], rows.low[order]
        first = np.ones(len(high), np.bool_)
        first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        starts = np.flatnonzero(first)
        self._high, self._low = high[starts], low[starts]
        self.counts: _Counts = np.diff(np.append(starts, len(high))).astype(np.int32)

    def __len__(self) -> int:
        return len(self._high)

    def count(self, rows: Fingerprints) -> _Counts:
        """How many rows have each fingerprint; all of them must be known."""
        return self.counts[self.find(rows)]

    def find(self, rows: Fingerprints) -> _Indices:
        """The index of each fingerprint among the distinct ones; -1 for unknown ones."""
        indices = np.full(len(rows), -1, np.intp)
        # Searching in ascending order accesses memory sequentially.
        searched = rows.high.argsort()
        at = self._high.searchsorted(rows.high[searched])
        while len(searched):
            inside = at < len(self._high)
            searched, at = searched[inside], at[inside]
            same = self._high[at] == rows.high[searched]
            searched, at = searched[same], at[same]
            hit = self._low[at] == rows.low[searched]
            indices[searched[hit]] = at[hit]
            # Different fingerprints very rarely have equal high halves.
            searched, at = searched[~hit], at[~hit] + 1
        return indices


class RowMatcher:
    """Matches the rows of one side with rows of the other side, each at most once.

    Args:
        others: the rows of the other side.
        counts: how many rows of each fingerprint may be matched; by default those of `others`.

    Attributes:
        remaining: how many rows of each fingerprint are not matched yet.
    """

    __slots__ = ("_others", "remaining")

    def __init__(self, others: FingerprintCounts, counts: _Counts | None = None) -> None:
        self._others = others
        self.remaining = (others.counts if counts is None else counts).copy()

    def match(self, rows: Fingerprints) -> Mask:
        """Marks the next rows that match; of equal rows, the first ones match."""
        matched = np.zeros(len(rows), np.bool_)
        indices = self._others.find(rows)
        found = np.flatnonzero(indices >= 0)
        order = found[indices[found].argsort(kind="stable")]
        at = indices[order]
        starts = np.flatnonzero(np.append(True, at[1:] != at[:-1])) if len(at) else at[:0]
        sizes = np.diff(np.append(starts, len(at)))
        rank = np.arange(len(at)) - np.repeat(starts, sizes)
        matched[order[rank < self.remaining[at]]] = True
        distinct = at[starts]
        self.remaining[distinct] -= np.minimum(sizes, self.remaining[distinct]).astype(np.int32)
        return matched
