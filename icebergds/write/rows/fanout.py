"""Writes rows of many partitions at the same time, with limits on open files and memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from icebergds.spec.manifest import DataFile, values_key
from icebergds.write.rows.partitioning import PartitionRows
from icebergds.write.rows.rolling import NewFiles, RollingWriter
from icebergds.write.rows.sorting import RowOrder

# How much a partition buffers before it is written: enough to make the cost per batch small.
_BUFFERED_BYTES = 16 * 1024 * 1024
_MIN_ROW_GROUP = 1024 * 1024
# Larger batches are written as they are: copying them costs more than writing them one by one.
_WORTH_WRITING = 64 * 1024


@dataclass(frozen=True, slots=True)
class FanoutSettings:
    """How many partitions are written at the same time.

    Attributes:
        enabled: whether several partitions are written at the same time. If not, rows should come
            partition by partition: a partition that returns gets a new file.
        max_open_files: limit on open files; beyond it, the least recently used file is closed.
        max_buffered_bytes: memory for rows, half of it for rows that are not written yet and half
            for the buffers of open files: the more files are open, the smaller the row groups.
    """

    enabled: bool = True
    max_open_files: int = 128
    max_buffered_bytes: int = 256 * 1024 * 1024


class FanoutWriter:
    """Buffers the rows of each partition and writes them to rolling files.

    Args:
        files: opens files.
        settings: the limits.
        target_size: of a file, in bytes.
        order: the sort order to check files for, if any.
        sort: whether to sort the buffered rows by that order before they are written.
    """

    def __init__(
        self,
        files: NewFiles,
        settings: FanoutSettings,
        target_size: int,
        *,
        order: RowOrder | None,
        sort: bool,
    ) -> None:
        self._files = files
        self._settings = settings
        self._target_size = target_size
        self._order = order
        self._sort = sort
        self._half = settings.max_buffered_bytes // 2
        self._flush_size = self._half if sort else min(_BUFFERED_BYTES, self._half)
        # Least recently used partition first.
        self._partitions: OrderedDict[Hashable, _Partition] = OrderedDict()
        self._done: list[DataFile] = []
        self._waiting = 0
        self._since_copy = 0

    def write(self, rows: PartitionRows) -> None:
        """Adds rows to a partition."""
        key = values_key(rows.partition)
        if not self._settings.enabled:
            self._close_others(key)
        partition = self._partitions.get(key)
        if partition is None:
            partition = _Partition(rows.partition, self._rolling(rows.partition))
            self._partitions[key] = partition
        self._partitions.move_to_end(key)
        size = rows.batch.nbytes
        partition.add(rows.batch, size)
        self._waiting += size
        if partition.size >= self._flush_size:
            self._flush(partition)
        while self._waiting > self._half:
            self._flush(max(self._partitions.values(), key=lambda partition: partition.size))
        self._close_largest()
        self._release(size)

    def close(self) -> list[DataFile]:
        """Closes all files; returns them in no particular order."""
        while self._partitions:
            self._close(next(iter(self._partitions)))
        return self._done

    def _rolling(self, partition: tuple[Any, ...]) -> RollingWriter:
        return RollingWriter(self._files, partition, self._target_size, self._order)

    def _flush(self, partition: _Partition) -> None:
        """Writes the buffered rows of a partition."""
        if not partition.batches:
            return
        if not partition.writer.is_open:
            self._make_room()
        self._waiting -= partition.size
        order = self._order if self._sort else None
        for batch in partition.take(whole=order is not None):
            rows = batch if order is None else order.sort(batch)
            partition.writer.write(rows, self._memory_of_a_file())

    def _memory_of_a_file(self) -> int:
        files = max(1, min(len(self._partitions), self._settings.max_open_files))
        return min(max(self._half // files, _MIN_ROW_GROUP), self._files.row_group_size)

    def _close_largest(self) -> None:
        """Closes the files with the largest buffers, opened when there were fewer partitions."""
        buffered = {key: partition.writer.buffered for key, partition in self._partitions.items()}
        while sum(buffered.values()) > self._half:
            largest = max(buffered, key=buffered.__getitem__)
            del buffered[largest]
            self._close(largest)

    def _make_room(self) -> None:
        """Closes files until one more may be opened."""
        opened = [key for key, partition in self._partitions.items() if partition.writer.is_open]
        too_many = len(opened) + 1 - self._settings.max_open_files
        for key in opened[: max(too_many, 0)]:
            self._close(key)

    def _close_others(self, key: Hashable) -> None:
        for other in [other for other in self._partitions if other != key]:
            self._close(other)

    def _close(self, key: Hashable) -> None:
        """Writes the remaining rows of a partition and closes its file."""
        partition = self._partitions.pop(key)
        self._flush(partition)
        self._done.extend(partition.writer.close())

    def _release(self, received: int) -> None:
        """Copies the buffered rows once in a while.

        A slice keeps its whole batch in memory, and the rows of a rare partition may be the last
        ones that use it.
        """
        self._since_copy += received
        if self._since_copy > self._settings.max_buffered_bytes:
            self._since_copy = 0
            for partition in self._partitions.values():
                partition.copy()


@dataclass(slots=True)
class _Partition:
    """The buffered rows of a partition, and its writer."""

    partition: tuple[Any, ...]
    writer: RollingWriter
    size: int = 0
    batches: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch, size: int) -> None:
        self.batches.append(batch)
        self.size += size

    def take(self, *, whole: bool) -> list[pa.RecordBatch]:
        """Removes and returns the buffered rows, in as few batches as possible if `whole`."""
        batches, size = self.batches, self.size
        self.batches, self.size = [], 0
        # Slices of larger batches are copied, because they would keep these in memory.
        if whole or self.partition or size < len(batches) * _WORTH_WRITING:
            return merged(batches)
        return batches

    def copy(self) -> None:
        self.batches = [
            batch.take(pa.array(np.arange(batch.num_rows, dtype=np.uint32)))
            for batch in merged(self.batches)
        ]


def merged(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Merges batches into as few as possible."""
    if len(batches) < 2:
        return batches
    return list(pa.Table.from_batches(batches).combine_chunks().to_batches())


def combined(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Merges batches until they have `size` bytes."""
    waiting: list[pa.RecordBatch] = []
    nbytes = 0
    for batch in batches:
        waiting.append(batch)
        nbytes += batch.nbytes
        if nbytes >= size:
            yield from merged(waiting)
            waiting, nbytes = [], 0
    yield from merged(waiting)
