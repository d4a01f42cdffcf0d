"""Rewrites position delete files on executors."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.errors import InvalidMetadataError
from icebergds.formats.deletes.position_deletes import PositionBatch, position_batches
from icebergds.formats.deletes.positions import PositionCollector, Positions, PositionSet
from icebergds.formats.wrong_counts import Recorded
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.deletes.live_files import LiveFiles, Mask, Numbers
from icebergds.operations.runner import TaskAttempt
from icebergds.spec.manifest import DataFile, DataFileRef, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.write.deletes.position_deletes import FilePositions
from icebergds.write.deletes.row_deletes import DeleteSettings, write_deletes
from icebergds.write.files import TaskAttempt as NewFiles
from icebergds.write.locations import FileNames, LocationProvider

# Small files take as long to open as to read, above all in an object store.
_READERS = 8
_Codes = npt.NDArray[np.int64]

# Sorted by data file at once: many delete files have few rows of each data file.
_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class DeleteFileRef:
    """What a task needs to know of a position delete file."""

    location: str
    file_format: FileFormat
    recorded: Recorded
    data_sequence_number: int
    key_metadata: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """The delete files that one task rewrites.

    Attributes:
        number: the task's number, part of the names of its files.
        group: the number of the group that the files belong to.
        spec_id, partition: the partition of the files.
        live: the data files that keep their deletes.
    """

    number: int
    group: int
    spec_id: int
    partition: tuple[Any, ...]
    files: tuple[DeleteFileRef, ...]
    live: LiveFiles


@dataclass(frozen=True, slots=True)
class DeleteRewrite:
    """What all tasks share.

    Attributes:
        operation_id: part of the names of all new files.
        specs: the table's partition specs by id, which refer to `schema`.
        settings: how to write new files.
        keeps_going: whether a task that fails returns its error, so that others go on.
    """

    io: FileIO
    locations: LocationProvider
    operation_id: str
    schema: Schema
    specs: Mapping[int, PartitionSpec]
    settings: DeleteSettings
    keeps_going: bool


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Why a task failed; its files were deleted."""

    error: str


def rewrite_delete_files(
    rewrite: DeleteRewrite, task: DeleteTask, attempt: TaskAttempt
) -> list[DataFile] | TaskFailure:
    """Writes the deletes of live data files to new files, each row once; returns these.

    Raises:
        CorruptFileError, MissingFileError: a delete file cannot be read.
        StorageError: the storage failed.
    """
    names = FileNames(task.number, attempt.attempt_id, rewrite.operation_id)
    try:
        with NewFiles(rewrite.io, rewrite.locations, names, rewrite.schema) as files:
            deletes = [
                FilePositions(DataFileRef(path, task.spec_id, task.partition), positions)
                for path, positions in _live_deletes(rewrite.io, task)
            ]
            return write_deletes(files, deletes, rewrite.settings, rewrite.specs)
    except Exception as error:
        if rewrite.keeps_going:
            return TaskFailure(f"{type(error).__name__}: {error}")
        raise


def _live_deletes(io: FileIO, task: DeleteTask) -> list[tuple[str, PositionSet]]:
    found = LivePositions(task.live)

    def read(file: DeleteFileRef) -> None:
        for batch in position_batches(
            io,
            file.location,
            file.file_format,
            recorded=file.recorded,
            key_metadata=file.key_metadata,
        ):
            found.add(batch, file.data_sequence_number)

    with ThreadPoolExecutor(_READERS) as pool:
        for _ in pool.map(read, task.files):
            pass
    return found.result()


class LivePositions:
    """Collects positions from several threads, in about as much memory as their sets."""

    def __init__(self, live: LiveFiles) -> None:
        self._live = live
        self._lock = Lock()
        self._codes: dict[str, int] = {}
        # By code: the data sequence numbers of the data file.
        self._lowest: Numbers = np.empty(0, np.int64)
        self._highest: Numbers = np.empty(0, np.int64)
        self._collected: list[PositionCollector] = []
        self._pending: list[tuple[_Codes, Positions]] = []
        self._pending_count = 0

    def add(self, batch: PositionBatch, data_sequence_number: int) -> None:
        """Adds the rows of a delete file that apply to live data files.

        Raises:
            InvalidMetadataError: they apply to one entry of a data file, but not to another one.
        """
        with self._lock:
            named = self._codes_of(batch.paths)
            is_live = self._lowest[named] <= data_sequence_number
            self._refuse_partly(batch, is_live & (self._highest[named] > data_sequence_number))
            codes, positions = named[batch.codes], batch.positions
            if not is_live.all():
                kept = is_live[batch.codes]
                codes, positions = codes[kept], positions[kept]
            self._pending.append((codes, positions))
            self._pending_count += len(codes)
            if self._pending_count >= _ROWS_AT_ONCE:
                self._sort_pending()

    def result(self) -> list[tuple[str, PositionSet]]:
        """The positions of each data file that has some."""
        self._sort_pending()
        found = zip(self._codes, self._collected, strict=True)
        return [(path, positions.result()) for path, positions in found if positions.added]

    def _codes_of(self, paths: list[str]) -> _Codes:
        new = [path for path in paths if path not in self._codes]
        if new:
            lowest, highest = self._live.numbers_of(pa.array(new, pa.string()))
            self._lowest = np.append(self._lowest, lowest)
            self._highest = np.append(self._highest, highest)
            self._codes.update(zip(new, range(len(self._codes), len(self._lowest)), strict=True))
            self._collected += (PositionCollector() for _ in new)
        return np.fromiter((self._codes[path] for path in paths), np.int64, len(paths))

    def _refuse_partly(self, batch: PositionBatch, is_partly: Mask) -> None:
        if is_partly.any():
            raise InvalidMetadataError(
                f"data file {batch.paths[int(is_partly.argmax())]} is listed several times, and a "
                "position delete file applies to the older entries only, so it cannot be "
                "rewritten; remove the file from the table first"
            )

    def _sort_pending(self) -> None:
        if not self._pending:
            return
        codes, positions = map(np.concatenate, zip(*self._pending, strict=True))
        self._pending, self._pending_count = [], 0
        order = codes.argsort(kind="stable")
        codes, positions = codes[order], positions[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        parts = np.split(positions, starts[1:])
        for code, part in zip(codes[starts].tolist(), parts, strict=False):
            self._collected[code].add(part.copy())
