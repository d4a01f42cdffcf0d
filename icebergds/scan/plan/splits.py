"""Splits files and packs the splits into tasks of about equal weight.

A Python task costs tens of milliseconds before its first row, so tasks should be few and large.
Files are split at their `split_offsets`, the starts of row groups.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from icebergds.spec.manifest import DataFile, FileFormat
from icebergds.spec.table_properties import (
    SPLIT_OPEN_FILE_COST,
    SPLIT_PLANNING_LOOKBACK,
    SPLIT_TARGET_SIZE,
)

_Item = TypeVar("_Item")
_SPLITTABLE = frozenset({FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO})


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """How to pack files into tasks.

    Attributes:
        split_size: target weight of a task, in bytes (`read.split.target-size`).
        lookback: number of open tasks to try for a split (`read.split.planning-lookback`).
        file_open_cost: minimum weight of a file, in bytes (`read.split.open-file-cost`).
    """

    split_size: int = SPLIT_TARGET_SIZE.default
    lookback: int = SPLIT_PLANNING_LOOKBACK.default
    file_open_cost: int = SPLIT_OPEN_FILE_COST.default

    @classmethod
    def of(
        cls,
        properties: Mapping[str, str],
        split_size: int | None = None,
        lookback: int | None = None,
        file_open_cost: int | None = None,
    ) -> SplitOptions:
        """Takes arguments that are given, then the table's properties, then the defaults.

        Raises:
            InvalidOptionError: a property that is used is malformed.
        """
        return cls(
            SPLIT_TARGET_SIZE.of(properties) if split_size is None else split_size,
            SPLIT_PLANNING_LOOKBACK.of(properties) if lookback is None else lookback,
            SPLIT_OPEN_FILE_COST.of(properties) if file_open_cost is None else file_open_cost,
        )

    def evened(self, sizes: npt.NDArray[np.int64]) -> SplitOptions:
        """Options for as few tasks of about equal weight, for whole files of these sizes (bytes).

        If a few tasks are filled up, the last one may have almost nothing to do.
        """
        if not len(sizes):
            return self
        weights = np.maximum(sizes, self.file_open_cost)
        total = int(weights.sum())
        tasks = max(ceil(total / self.split_size), 1)
        even = ceil(total / tasks) + int(weights.max())
        return replace(self, split_size=min(self.split_size, even))


def split_file(data_file: DataFile, split_size: int) -> list[tuple[int, int]]:
    """The byte ranges (start, length) of a file's splits, each of about `split_size`.

    The ranges cover the whole file. A file is split at its split offsets if they are valid, at
    multiples of `split_size` if it has none (readers assign each row group or block to exactly one
    range), and not at all if the offsets are invalid or the format is not splittable.
    """
    size = data_file.file_size_in_bytes
    if size <= split_size or data_file.file_format not in _SPLITTABLE:
        return [(0, size)]
    offsets = data_file.split_offsets
    if not offsets:
        starts = list(range(0, size, split_size))
    elif _are_valid(offsets, size):
        starts = _group_offsets(offsets, size, split_size)
    else:
        return [(0, size)]
    ends = [*starts[1:], size]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def pack(
    items: Iterable[_Item],
    weigh: Callable[[_Item], int],
    options: SplitOptions,
    shared: Callable[[_Item], Mapping[Hashable, int]] | None = None,
) -> Iterator[list[_Item]]:
    """Packs items into bins of at most `split_size`, first fit among the `lookback` open bins.

    An item heavier than a bin gets its own bin. If too many bins are open, the heaviest is closed.
    Order is kept within a bin.

    Args:
        shared: the weights, by name, of what an item needs and can share with other items of its
            bin. A bin counts each name once, and limits the sum separately from the weight of the
            items. So items with the same needs are packed together, however heavy these are.
    """
    open_bins: deque[_Bin[_Item]] = deque()
    for item in items:
        weight, needed = weigh(item), shared(item) if shared is not None else _NOTHING
        for open_bin in open_bins:
            if open_bin.has_room(weight, needed, options.split_size):
                open_bin.add(item, weight, needed)
                break
        else:
            new_bin: _Bin[_Item] = _Bin()
            new_bin.add(item, weight, needed)
            open_bins.append(new_bin)
            if len(open_bins) > options.lookback:
                heaviest = max(range(len(open_bins)), key=lambda i: open_bins[i].filled)
                closed = open_bins[heaviest]
                del open_bins[heaviest]
                yield closed.items
    for open_bin in open_bins:
        yield open_bin.items


_NOTHING: Mapping[Hashable, int] = {}


class _Bin(Generic[_Item]):
    """Packed items, and what they share."""

    def __init__(self) -> None:
        self.items: list[_Item] = []
        self.filled = 0
        self._shared: dict[Hashable, int] = {}

    def has_room(self, weight: int, needed: Mapping[Hashable, int], size: int) -> bool:
        if self.filled + weight > size:
            return False
        more = sum(needed[name] for name in needed if name not in self._shared)
        return not more or not self._shared or sum(self._shared.values()) + more <= size

    def add(self, item: _Item, weight: int, needed: Mapping[Hashable, int]) -> None:
        self.items.append(item)
        self.filled += weight
        for name, cost in needed.items():
            self._shared[name] = max(cost, self._shared.get(name, 0))


def _are_valid(offsets: Sequence[int], size: int) -> bool:
    ascending = all(a < b for a, b in pairwise(offsets))
    return ascending and offsets[0] >= 0 and offsets[-1] < size


def _group_offsets(offsets: Sequence[int], size: int, split_size: int) -> list[int]:
    """Starts of ranges that end at split offsets, with at most `split_size` bytes if possible."""
    starts = [0]
    boundaries = [*offsets[1:], size]
    previous = 0
    for boundary in boundaries:
        if boundary - starts[-1] > split_size and previous > starts[-1]:
            starts.append(previous)
        previous = boundary
    return starts
