"""The sink of `df.writeStream.format("icebergpy")`: each micro-batch is one commit, made once.

Spark makes a writer where it plans a batch and another one where it commits it, and tells neither
which query writes: tasks know, and their messages say so.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from icebergds.errors import InvalidOptionError
from icebergds.spark.worker import spare_archives
from icebergds.spark.writer import discard_results, run_task

if TYPE_CHECKING:
    from icebergds.operations.write.jobs import PreparedJob, Task, TaskResult

_QUERY_ID = "sql.streaming.queryId"
_IS_CONTINUOUS = "__is_continuous_processing"


@dataclass(frozen=True, slots=True)
class BatchTaskDone(WriterCommitMessage):
    """What one task of a micro-batch hands over.

    Attributes:
        query_id: of the query that writes.
        job: the packed job that the task was planned for, of the first task alone.
    """

    result: TaskResult
    query_id: str
    job: bytes | None


class IcebergStreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of one query to one table."""

    def __init__(self, job: PreparedJob, task: Task, *, may_miss_batches: bool) -> None:
        self._task = task
        self._may_miss_batches = may_miss_batches
        # Packed, so that tasks need not import what commits.
        self._job = pickle.dumps(job)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchTaskDone:
        """Writes the rows of a task; its files are gone again if that fails."""
        context = TaskContext.get()
        assert context is not None, "Spark writes in tasks"
        if context.getLocalProperty(_IS_CONTINUOUS) == "true":
            raise InvalidOptionError(
                "the trigger 'continuous' never ends a task, so that nothing could be committed; "
                "use trigger(processingTime=...) or trigger(availableNow=True)"
            )
        query_id = context.getLocalProperty(_QUERY_ID)
        assert query_id is not None, "Spark names the query of a micro-batch"
        job = self._job if context.partitionId() == 0 else None
        return BatchTaskDone(run_task(self._task, iterator), query_id, job)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commits a micro-batch, or deletes its files where the table has it already."""
        from icebergds.operations.write.jobs import commit_batch

        spare_archives()
        done = [message for message in messages if isinstance(message, BatchTaskDone)]
        if len(done) < len(messages):
            raise InvalidOptionError(
                f"batch {batchId} is committed before its tasks are done, which only the trigger "
                "'continuous' does; use trigger(processingTime=...) or trigger(availableNow=True)"
            )
        # The table may be another one by now than the one that the rows were written for.
        job = next(message.job for message in done if message.job is not None)
        results = [message.result for message in done]
        commit_batch(
            pickle.loads(job),
            results,
            done[0].query_id,
            batchId,
            may_miss_batches=self._may_miss_batches,
        )

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Deletes the files of a micro-batch whose tasks failed. Never raises."""
        results = [message.result for message in messages if isinstance(message, BatchTaskDone)]
        if len(results) < len(messages):
            discard_results(self._job, results)
