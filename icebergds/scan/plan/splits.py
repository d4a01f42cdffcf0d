"""Cuts files into splits and packs splits into tasks of about equal weight.

A Python task costs tens of milliseconds before its first row, so tasks should be few and large;
`split_offsets` (the starts of row groups) say where a file may be cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from icebergds.spec.manifest import DataFile, FileFormat

_Item = TypeVar("_Item")
_SPLITTABLE = frozenset({FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO})


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """How to pack files into tasks.

    Attributes:
        split_size: target weight of a task, in bytes (`read.split.target-size`).
        lookback: how many open tasks a split may choose from (`read.split.planning-lookback`).
        file_open_cost: least weight of a file, in bytes (`read.split.open-file-cost`).
    """

    split_size: int = 128 * 1024 * 1024
    lookback: int = 10
    file_open_cost: int = 4 * 1024 * 1024


def split_file(data_file: DataFile, split_size: int) -> list[tuple[int, int]]:
    """The byte ranges (start, length) to read a file in, each of about `split_size`.

    Together the ranges cover the file. A file is cut at its split offsets where they are sound,
    at multiples of `split_size` where it has none (readers give every row group or block to
    exactly one range), and not at all where the format cannot be cut.
    """
    size = data_file.file_size_in_bytes
    if size <= split_size or data_file.file_format not in _SPLITTABLE:
        return [(0, size)]
    offsets = data_file.split_offsets
    if not offsets:
        starts = list(range(0, size, split_size))
    elif _are_sound(offsets, size):
        starts = _group_offsets(offsets, size, split_size)
    else:
        return [(0, size)]
    ends = [*starts[1:], size]
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def pack(
    items: Iterable[_Item],
    weigh: Callable[[_Item], int],
    options: SplitOptions,
    needs: Callable[[_Item], Mapping[Hashable, int]] | None = None,
) -> Iterator[list[_Item]]:
    """Groups items in bins of at most `split_size`, first fit among the `lookback` open bins.

    An item heavier than a bin gets one of its own. When too many bins are open the heaviest
    closes. Order is kept within a bin.

    Args:
        needs: what an item needs beside itself, by name, with its weight. What items of a bin need
            alike they share: it has no weight but the first one's, apart from that of the items.
            So what all items need does not keep them apart, however heavy it is.
    """
    open_bins: deque[_Bin[_Item]] = deque()
    for item in items:
        weight, needed = weigh(item), needs(item) if needs is not None else _NOTHING
        for found in open_bins:
            if found.has_room(weight, needed, options.split_size):
                found.add(item, weight, needed)
                break
        else:
            made: _Bin[_Item] = _Bin()
            made.add(item, weight, needed)
            open_bins.append(made)
            if len(open_bins) > options.lookback:
                heaviest = max(range(len(open_bins)), key=lambda i: open_bins[i].filled)
                closed = open_bins[heaviest]
                del open_bins[heaviest]
                yield closed.items
    for left in open_bins:
        yield left.items


_NOTHING: Mapping[Hashable, int] = {}


class _Bin(Generic[_Item]):
    """Items, and what they need."""

    def __init__(self) -> None:
        self.items: list[_Item] = []
        self.filled = 0
        self._needs: dict[Hashable, int] = {}

    def has_room(self, weight: int, needed: Mapping[Hashable, int], size: int) -> bool:
        if self.filled + weight > size:
            return False
        more = sum(needed[name] for name in needed if name not in self._needs)
        return not more or not self._needs or sum(self._needs.values()) + more <= size

    def add(self, item: _Item, weight: int, needed: Mapping[Hashable, int]) -> None:
        self.items.append(item)
        self.filled += weight
        for name, cost in needed.items():
            self._needs[name] = max(cost, self._needs.get(name, 0))


def _are_sound(offsets: Sequence[int], size: int) -> bool:
    ascending = all(a < b for a, b in pairwise(offsets))
    return ascending and offsets[0] >= 0 and offsets[-1] < size


def _group_offsets(offsets: Sequence[int], size: int, split_size: int) -> list[int]:
    """Starts of ranges that end at an offset and hold at most `split_size` where possible."""
    starts = [0]
    boundaries = [*offsets[1:], size]
    previous = 0
    for boundary in boundaries:
        if boundary - starts[-1] > split_size and previous > starts[-1]:
            starts.append(previous)
        previous = boundary
    return starts
