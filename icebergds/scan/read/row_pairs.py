"""Pairs of equal rows on two sides, as multisets: each row has at most one partner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from icebergds.formats.deletes.key_columns import Mask
from icebergds.scan.read.row_fingerprints import Fingerprints

_Places = npt.NDArray[np.intp]
_Counts = npt.NDArray[np.int32]


class RowCounts:
    """Distinct fingerprints, and how many rows have each; immutable.

    Args:
        parts: the fingerprints of some rows, in any order.
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
        """How many rows have each of some fingerprints, of which all are among these."""
        return self.counts[self.find(rows)]

    def find(self, rows: Fingerprints) -> _Places:
        """Where each row's fingerprint is among the distinct ones; -1 where it is not."""
        places = np.full(len(rows), -1, np.intp)
        # Searches in ascending order touch memory in order.
        searched = rows.high.argsort()
        at = self._high.searchsorted(rows.high[searched])
        while len(searched):
            inside = at < len(self._high)
            searched, at = searched[inside], at[inside]
            same = self._high[at] == rows.high[searched]
            searched, at = searched[same], at[same]
            hit = self._low[at] == rows.low[searched]
            places[searched[hit]] = at[hit]
            # Different fingerprints hardly ever share a half.
            searched, at = searched[~hit], at[~hit] + 1
        return places


class PartnerFinder:
    """Gives the rows of one side partners of the other, each at most once.

    Args:
        others: the rows of the other side.
        counts: how many of each fingerprint are to be had; those of `others` by default.
    """

    __slots__ = ("_others", "left")

    def __init__(self, others: RowCounts, counts: _Counts | None = None) -> None:
        self._others = others
        self.left = (others.counts if counts is None else counts).copy()

    def match(self, rows: Fingerprints) -> Mask:
        """Which of the next rows have a partner; of equal rows the first ones have."""
        matched = np.zeros(len(rows), np.bool_)
        places = self._others.find(rows)
        found = np.flatnonzero(places >= 0)
        order = found[places[found].argsort(kind="stable")]
        at = places[order]
        starts = np.flatnonzero(np.append(True, at[1:] != at[:-1])) if len(at) else at[:0]
        sizes = np.diff(np.append(starts, len(at)))
        rank = np.arange(len(at)) - np.repeat(starts, sizes)
        matched[order[rank < self.left[at]]] = True
        distinct = at[starts]
        self.left[distinct] -= np.minimum(sizes, self.left[distinct]).astype(np.int32)
        return matched
