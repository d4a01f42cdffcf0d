"""The writer of changes of rows: files on executors, one commit on the driver.

It lives as `spark.writer.IcebergWriter` does.
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
from icebergds.write.deltas import DeltaFiles
from icebergds.write.key_hashes import KeyHashes

if TYPE_CHECKING:
    from icebergds.table.row_changes import PreparedDelta, WriteTask

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeltaWritten(WriterCommitMessage):
    """What one task did, and the keys of its rows where they name rows by key."""

    delta: DeltaFiles
    keys: KeyHashes | None


class DeltaWriter(DataSourceArrowWriter):
    """Changes rows of one table by one DataFrame, in one commit."""

    def __init__(self, prepared: PreparedDelta, task: WriteTask) -> None:
        self._task = task
        # Packed, so that tasks need not import what commits.
        self._prepared = pickle.dumps(prepared)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> DeltaWritten:
        """Writes the files of a task; they are gone again if that fails."""
        settle_worker()
        context = TaskContext.get()
        assert context is not None, "Spark writes in tasks"
        done = self._task(
            iterator, partition_id=context.partitionId(), attempt_id=context.taskAttemptId()
        )
        return DeltaWritten(*done) if isinstance(done, tuple) else DeltaWritten(done, None)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commits the files of all tasks."""
        from icebergds.table.row_changes import commit_delta, delete_delta
        from icebergds.write.key_hashes import refuse_shared_keys

        prepared = pickle.loads(self._prepared)
        parts = _parts(messages)
        try:
            keys = [part.keys for part in parts if part.keys is not None]
            refuse_shared_keys(keys, prepared.address.path)
        except Exception:
            delete_delta(prepared, [part.delta for part in parts])
            raise
        commit_delta(prepared, [part.delta for part in parts])

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Deletes the files of tasks whose job failed, if that is certain. Never raises."""
        # All messages are there: `commit` failed, and has cleaned up as far as it could.
        if all(message is not None for message in messages):
            return
        try:
            from icebergds.table.row_changes import delete_delta, is_delta_committed

            prepared = pickle.loads(self._prepared)
            if not is_delta_committed(prepared):
                delete_delta(prepared, [part.delta for part in _parts(messages)])
        except Exception as error:
            _LOG.warning("files of a failed write were left behind: %s", error)


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[DeltaWritten]:
    return [message for message in messages if isinstance(message, DeltaWritten)]
