"""Rewrites position delete files on executors."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from icebergds.formats.deletes.position_deletes import position_batches
from icebergds.formats.deletes.positions import PositionSet
from icebergds.formats.wrong_counts import Recorded
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.deletes.live_files import LiveFiles
from icebergds.operations.maintenance.deletes.live_positions import LivePositions
from icebergds.operations.maintenance.runner import TaskAttempt
from icebergds.spec.manifest import DataFile, DataFileRef, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.write.deletes.position_deletes import FilePositions
from icebergds.write.deletes.row_deletes import DeleteSettings, write_deletes
from icebergds.write.files import TaskAttempt as NewFiles
from icebergds.write.locations import FileNames, LocationProvider

# Small files take as long to open as to read, above all in an object store.
_READERS = 8


@dataclass(frozen=True, slots=True)
class DeleteFileRef:
    """A position delete file, as far as a task needs to know it."""

    location: str
    file_format: FileFormat
    recorded: Recorded
    data_sequence_number: int


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """The delete files that one task rewrites.

    Attributes:
        number: of the task, part of the names of its files.
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
    files = NewFiles(rewrite.io, rewrite.locations, names, rewrite.schema)
    try:
        deletes = [
            FilePositions(DataFileRef(path, task.spec_id, task.partition), positions)
            for path, positions in _live_deletes(rewrite.io, task)
        ]
        return write_deletes(files, deletes, rewrite.settings, rewrite.specs)
    except BaseException as error:
        files.discard(error)
        if rewrite.keeps_going and isinstance(error, Exception):
            return TaskFailure(f"{type(error).__name__}: {error}")
        raise


def _live_deletes(io: FileIO, task: DeleteTask) -> list[tuple[str, PositionSet]]:
    found = LivePositions(task.live)

    def read(file: DeleteFileRef) -> None:
        for batch in position_batches(io, file.location, file.file_format, recorded=file.recorded):
            found.add(batch, file.data_sequence_number)

    with ThreadPoolExecutor(_READERS) as pool:
        for _ in pool.map(read, task.files):
            pass
    return found.result()
