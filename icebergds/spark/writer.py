"""The writer of `df.write.format("icebergpy")`: files on executors, one commit on the driver.

Spark makes it in one process, writes in others, commits in yet another one, and hands nothing from
one to the next but this object, as it was made, and the messages of the tasks.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from icebergds.spark.worker import settle_worker
from icebergds.spec.manifest import DataFile
from icebergds.write.task import write_batches

if TYPE_CHECKING:
    from icebergds.table.writing import PreparedWrite

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FilesWritten(WriterCommitMessage):
    """The data files of one task."""

    files: tuple[DataFile, ...]


class IcebergWriter(DataSourceArrowWriter):
    """Writes one DataFrame to one table, in one commit."""

    def __init__(self, write: PreparedWrite) -> None:
        self._plan = write.plan
        # Packed, so that tasks need not import what commits: that is half of all imports, which
        # every Python worker would pay before its first row.
        self._write = pickle.dumps(write)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        """Writes the rows of a task; its files are gone again if that fails."""
        settle_worker()
        context = TaskContext.get()
        assert context is not None, "Spark writes in tasks"
        files = write_batches(
            self._plan,
            iterator,
            partition_id=context.partitionId(),
            attempt_id=context.taskAttemptId(),
        )
        return FilesWritten(tuple(files))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commits the files of all tasks."""
        from icebergds.table.writing import commit_write

        commit_write(pickle.loads(self._write), _files(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Deletes the files of tasks whose job failed, if that is certain. Never raises.

        Spark calls it also when `commit` failed or its process died; all tasks have a message
        then. `commit` has cleaned up after itself if it knew that nothing had landed, and if it
        did not know or died, then nobody knows.
        """
        if all(message is not None for message in messages):
            return
        try:
            from icebergds.table.writing import delete_files, is_committed

            write = pickle.loads(self._write)
            if not is_committed(write):
                delete_files(write, _files(messages))
        except Exception as error:
            _LOG.warning("files of a failed write were left behind: %s", error)


def _files(messages: Sequence[WriterCommitMessage | None]) -> list[DataFile]:
    return [
        file for message in messages if isinstance(message, FilesWritten) for file in message.files
    ]
