"""Tracks the file and position of each written row, by a row number that is not stored."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.formats.data_writer import DataFileWriter
from icebergds.formats.deletes.positions import PositionCollector, Positions, PositionSet
from icebergds.io.failures import storage_failures
from icebergds.spec.manifest import DataFile
from icebergds.write.rows.rolling import NewFiles

_NUMBER = pa.field("row number", pa.int64())


def with_numbers(batch: pa.RecordBatch, numbers: Positions) -> pa.RecordBatch:
    """Appends row numbers as the last column."""
    return batch.append_column(_NUMBER, pa.array(numbers, pa.int64()))


class TrackedFiles:
    """Opens files for numbered rows, and records the position of each row.

    Call `cleanup` at the end.

    Args:
        files: opens the files.
        limit: how many row numbers to keep in memory; consecutive numbers do not count.
    """

    def __init__(self, files: NewFiles, limit: int) -> None:
        self._files = files
        self._limit = limit
        self._runs: dict[str, list[_Run]] = {}
        self._in_memory = 0
        self._spill: IO[bytes] | None = None

    @property
    def row_group_size(self) -> int:
        return self._files.row_group_size

    def open(self, partition: tuple[Any, ...], memory: int) -> DataFileWriter:
        return _TrackedWriter(self._files.open(partition, memory), self)

    def close(
        self, writer: DataFileWriter, partition: tuple[Any, ...], sort_order_id: int
    ) -> DataFile:
        inner = writer.inner if isinstance(writer, _TrackedWriter) else writer
        return self._files.close(inner, partition, sort_order_id)

    def record(self, location: str, numbers: Positions) -> None:
        """Records the numbers of the next rows of a file."""
        first, count = int(numbers[0]), len(numbers)
        if int(numbers[-1]) - first == count - 1 and (numbers[1:] > numbers[:-1]).all():
            run = _Run(first, count)
        elif self._in_memory + count <= self._limit:
            run = _Run(first, count, numbers.copy())
            self._in_memory += count
        else:
            run = _Run(first, count, self._spill_numbers(numbers))
        self._runs.setdefault(location, []).append(run)

    def positions(self, location: str, numbers: PositionSet) -> PositionSet:
        """The positions in a file of the rows whose numbers are in a set."""
        found = PositionCollector()
        if numbers:
            first = 0
            for run in self._runs.get(location, ()):
                mask = self._mask(run, numbers)
                if mask is not None:
                    found.add(np.flatnonzero(mask) + first)
                first += run.count
        return found.result()

    def cleanup(self) -> None:
        """Deletes temporary files."""
        if self._spill is not None:
            # Data that did not fit on a full disk is not needed any more.
            with suppress(OSError):
                self._spill.close()

    def _mask(self, run: _Run, numbers: PositionSet) -> npt.NDArray[np.bool_] | None:
        if run.numbers is None:
            return numbers.mask(run.first, run.count)
        stored = run.numbers
        if isinstance(stored, int):
            assert self._spill is not None
            with storage_failures("reading temporary files in", gettempdir()):
                self._spill.seek(stored)
                stored = np.frombuffer(self._spill.read(8 * run.count), np.int64)
        return numbers.contains(stored)

    def _spill_numbers(self, numbers: Positions) -> int:
        with storage_failures("writing temporary files in", gettempdir()):
            if self._spill is None:
                # The operating system deletes it when it is closed.
                self._spill = TemporaryFile(prefix="icebergds-rows-")  # noqa: SIM115
            offset = self._spill.seek(0, 2)
            self._spill.write(np.ascontiguousarray(numbers).tobytes())
        return offset


@dataclass(frozen=True, slots=True)
class _Run:
    """Consecutive rows of a file.

    `numbers` holds their row numbers, or the file offset of spilled ones; None if they are
    consecutive from `first`.
    """

    first: int
    count: int
    numbers: Positions | int | None = None


class _TrackedWriter:
    """Writes numbered rows without their numbers, which it records."""

    def __init__(self, inner: DataFileWriter, tracker: TrackedFiles) -> None:
        self.inner = inner
        self._tracker = tracker
        self._schema: pa.Schema | None = None

    @property
    def location(self) -> str:
        return self.inner.location

    @property
    def num_rows(self) -> int:
        return self.inner.num_rows

    @property
    def size(self) -> int:
        return self.inner.size

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        last = batch.num_columns - 1
        self.inner.write(batch.remove_column(last))
        self._tracker.record(self.location, batch.column(last).to_numpy())

    def close(self) -> DataFile:
        return self.inner.close()

    def abort(self) -> None:
        self.inner.abort()
