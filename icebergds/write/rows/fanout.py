"""Writes rows of many partitions at a time, within bounds on open files and memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from icebergds.spec.manifest import DataFile
from icebergds.write.rows.partitioning import PartitionRows, partition_key
from icebergds.write.rows.rolling import NewFiles, RollingWriter
from icebergds.write.rows.sorting import RowOrder

# What a partition gathers before it is written: enough for batches to cost little each.
_GATHERED_BYTES = 16 * 1024 * 1024
_SMALLEST_ROW_GROUP = 1024 * 1024
# Larger batches are written as they are: to copy them costs more than to write one by one.
_WORTH_WRITING = 64 * 1024


@dataclass(frozen=True, slots=True)
class FanoutSettings:
    """How many partitions are written at a time.

    Attributes:
        enabled: whether rows of partitions may come in any order at little cost. If not, one
            partition is written at a time, and one that comes back begins a new file.
        max_open_files: files that are open at a time; above, the one that was written to least
            recently is ended.
        max_buffered_bytes: memory for rows, half of it for those that wait to be written and half
            for those that open files hold: row groups are the smaller the more files are open.
    """

    enabled: bool = True
    max_open_files: int = 128
    max_buffered_bytes: int = 256 * 1024 * 1024


class FanoutWriter:
    """Gathers the rows of each partition and writes them to rolling files.

    Args:
        files: opens files.
        settings: the bounds.
        target_size: of a file, in bytes.
        order: the sort order that files are checked for, if any.
        sort: whether to bring the rows that are in memory into that order before they are written.
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
        self._gathered = self._half if sort else min(_GATHERED_BYTES, self._half)
        # The least recently used partition first.
        self._partitions: OrderedDict[Hashable, _Partition] = OrderedDict()
        self._done: list[DataFile] = []
        self._waiting = 0
        self._since_copy = 0

    def write(self, rows: PartitionRows) -> None:
        """Takes rows of one partition, after those that it has already."""
        key = partition_key(rows.partition)
        if not self._settings.enabled:
            self._end_others(key)
        partition = self._partitions.get(key)
        if partition is None:
            partition = _Partition(rows.partition, self._rolling(rows.partition))
            self._partitions[key] = partition
        self._partitions.move_to_end(key)
        size = rows.batch.nbytes
        partition.add(rows.batch, size)
        self._waiting += size
        if partition.size >= self._gathered:
            self._flush(partition)
        while self._waiting > self._half:
            self._flush(max(self._partitions.values(), key=lambda partition: partition.size))
        self._end_largest()
        self._release(size)

    def close(self) -> list[DataFile]:
        """Ends all files; returns what was written, in no particular order."""
        while self._partitions:
            self._end(next(iter(self._partitions)))
        return self._done

    def _rolling(self, partition: tuple[Any, ...]) -> RollingWriter:
        return RollingWriter(self._files, partition, self._target_size, self._order)

    def _flush(self, partition: _Partition) -> None:
        """Writes what a partition has gathered."""
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
        return min(max(self._half // files, _SMALLEST_ROW_GROUP), self._files.row_group_size)

    def _end_largest(self) -> None:
        """Ends the files that hold most, which began when there were fewer partitions."""
        held = {key: partition.writer.held for key, partition in self._partitions.items()}
        while sum(held.values()) > self._half:
            largest = max(held, key=held.__getitem__)
            del held[largest]
            self._end(largest)

    def _make_room(self) -> None:
        """Ends files until one more may be open."""
        opened = [key for key, partition in self._partitions.items() if partition.writer.is_open]
        too_many = len(opened) + 1 - self._settings.max_open_files
        for key in opened[: max(too_many, 0)]:
            self._end(key)

    def _end_others(self, key: Hashable) -> None:
        for other in [other for other in self._partitions if other != key]:
            self._end(other)

    def _end(self, key: Hashable) -> None:
        """Writes the rest of a partition and ends its file."""
        partition = self._partitions.pop(key)
        self._flush(partition)
        self._done.extend(partition.writer.close())

    def _release(self, received: int) -> None:
        """Copies what is gathered once in a while.

        Slices keep the whole batch in memory that they were cut from, and rows of a rare partition
        may be the last ones that need it.
        """
        self._since_copy += received
        if self._since_copy > self._settings.max_buffered_bytes:
            self._since_copy = 0
            for partition in self._partitions.values():
                partition.copy()


@dataclass(slots=True)
class _Partition:
    """Rows of a partition that are not yet written, and the writer of the others."""

    partition: tuple[Any, ...]
    writer: RollingWriter
    size: int = 0
    batches: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch, size: int) -> None:
        self.batches.append(batch)
        self.size += size

    def take(self, *, whole: bool) -> list[pa.RecordBatch]:
        """The rows, in batches worth writing, or in as few as Arrow can hold them."""
        batches, size = self.batches, self.size
        self.batches, self.size = [], 0
        # Rows that were split from others would keep these in memory, so they are copied.
        if whole or self.partition or size < len(batches) * _WORTH_WRITING:
            return merged(batches)
        return batches

    def copy(self) -> None:
        self.batches = [
            batch.take(pa.array(np.arange(batch.num_rows, dtype=np.uint32)))
            for batch in merged(self.batches)
        ]


def merged(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same rows in as few batches as Arrow can hold them."""
    if len(batches) < 2:
        return batches
    return list(pa.Table.from_batches(batches).combine_chunks().to_batches())
