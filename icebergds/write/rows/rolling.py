"""Writes the files of one partition one after the other, each up to the target size."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from icebergds.formats.data_writer import DataFileWriter
from icebergds.spec.manifest import DataFile
from icebergds.write.rows.sorting import OrderCheck, RowOrder

_UNSORTED = 0
# Rows are written in pieces much smaller than a file, so that files end near the target size.
_PIECES_PER_FILE = 8
_MIN_PIECE = 64 * 1024
_MAX_PIECE = 16 * 1024 * 1024


class NewFiles(Protocol):
    """Opens and closes files of one kind, such as `TaskFiles`."""

    @property
    def row_group_size(self) -> int: ...

    def open(self, partition: tuple[Any, ...], memory: int) -> DataFileWriter: ...

    def close(
        self, writer: DataFileWriter, partition: tuple[Any, ...], sort_order_id: int
    ) -> DataFile: ...


class RollingWriter:
    """Writes rows of one partition; opens a new file once the last one reaches the target size.

    Args:
        files: opens the files.
        partition: the partition tuple.
        target_size: of a file, in bytes.
        order: the sort order to check files for, if any.
    """

    def __init__(
        self, files: NewFiles, partition: tuple[Any, ...], target_size: int, order: RowOrder | None
    ) -> None:
        self._files = files
        self._partition = partition
        self._target_size = target_size
        self._piece = min(max(target_size // _PIECES_PER_FILE, _MIN_PIECE), _MAX_PIECE)
        self._order = order
        self._check: OrderCheck | None = None
        self._writer: DataFileWriter | None = None
        self._done: list[DataFile] = []
        self._memory = 0
        self._buffered = 0
        self._received = 0

    @property
    def buffered(self) -> int:
        """Approximate bytes of rows that the open file buffers in memory."""
        return self._buffered

    @property
    def is_open(self) -> bool:
        """Whether a file is open."""
        return self._writer is not None

    def write(self, batch: pa.RecordBatch, memory: int) -> None:
        """Writes rows, in their order.

        Args:
            batch: the rows.
            memory: how many bytes a newly opened file may buffer in memory.
        """
        rows = max(1, self._piece * batch.num_rows // max(batch.nbytes, 1))
        for start in range(0, batch.num_rows, rows):
            self._write_piece(batch.slice(start, rows), memory)

    def close(self) -> list[DataFile]:
        """Closes the open file; returns all written files."""
        self._close_file()
        return self._done

    def _write_piece(self, piece: pa.RecordBatch, memory: int) -> None:
        if self._writer is not None and self._is_full(self._writer):
            self._close_file()
        if self._writer is None:
            self._writer = self._files.open(self._partition, memory)
            self._memory = memory
            self._check = None if self._order is None else OrderCheck(self._order)
        if self._check is not None:
            self._check.add(piece)
        self._writer.write(piece)
        size = piece.nbytes
        self._received += size
        # Rows are buffered until they fill a row group.
        self._buffered += size
        if self._buffered >= self._memory:
            self._buffered = 0

    def _is_full(self, writer: DataFileWriter) -> bool:
        # Getting the size may require encoding rows, so compare the rows' size in memory first.
        return self._received >= self._target_size and writer.size >= self._target_size

    def _close_file(self) -> None:
        if self._writer is None:
            return
        in_order = self._order is not None and self._check is not None and self._check.in_order
        order_id = self._order.order_id if self._order is not None and in_order else _UNSORTED
        self._done.append(self._files.close(self._writer, self._partition, order_id))
        self._writer = None
        self._buffered = self._received = 0
