"""Buffers rows to be written, from batches of any size."""

from __future__ import annotations

import pyarrow as pa

# Smaller batches are concatenated: slices may keep much larger batches in memory, and each batch
# has some kilobytes of overhead.
_SMALL_ROWS = 4_096
_SMALL_BYTES = 512 * 1024
_MAX_SMALL = 64


class RowBuffer:
    """Batches of one schema, in order."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._small: list[pa.RecordBatch] = []
        self.num_rows = 0
        self.nbytes = 0

    def append(self, batch: pa.RecordBatch) -> None:
        """Appends rows."""
        size = batch.nbytes
        self.num_rows += batch.num_rows
        self.nbytes += size
        if batch.num_rows >= _SMALL_ROWS or size >= _SMALL_BYTES:
            self._gather()
            self._batches.append(batch)
        else:
            self._small.append(batch)
            if len(self._small) >= _MAX_SMALL:
                self._gather()

    def take(self) -> list[pa.RecordBatch]:
        """Returns all rows and empties the buffer."""
        self._gather()
        batches = self._batches
        self.clear()
        return batches

    def clear(self) -> None:
        """Drops all rows."""
        self._batches, self._small = [], []
        self.num_rows = self.nbytes = 0

    def latest(self, nbytes: int) -> list[pa.RecordBatch]:
        """The last rows, at most about `nbytes` bytes of them."""
        self._gather()
        taken: list[pa.RecordBatch] = []
        wanted = nbytes
        for batch in reversed(self._batches):
            size = batch.nbytes
            if size > wanted:
                count = batch.num_rows * wanted // size
                taken.append(batch.slice(batch.num_rows - count))
                break
            taken.append(batch)
            wanted -= size
        return taken[::-1]

    def _gather(self) -> None:
        if self._small:
            self._batches.append(pa.concat_batches(self._small))
            self._small.clear()
