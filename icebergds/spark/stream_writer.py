"""Writes `df.writeStream.format("icebergpy")`: each micro-batch is committed exactly once.

Spark creates one writer to plan a batch and another to commit it, and tells neither which query is
running. Tasks know the query id, so they report it in their messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from icebergds.errors import InvalidOptionError
from icebergds.spark.errors import without_frames
from icebergds.spark.worker import spare_archives
from icebergds.spark.writer import discard_results, packed_job, run_task, unpacked_job

if TYPE_CHECKING:
    from icebergds.operations.write.jobs import PreparedJob, Task, TaskResult

_QUERY_ID = "sql.streaming.queryId"
_IS_CONTINUOUS = "__is_continuous_processing"


@dataclass(frozen=True, slots=True)
class BatchTaskDone(WriterCommitMessage):
    """The result of one task of a micro-batch.

    Attributes:
        query_id: of the query that writes.
        job: the packed job of the task; only the first task reports it.
    """

    result: TaskResult
    query_id: str
    job: bytes | None


class IcebergStreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a query to a table."""

    def __init__(self, job: PreparedJob, task: Task, *, may_miss_batches: bool) -> None:
        self._task = task
        self._may_miss_batches = may_miss_batches
        self._job, self._catalog_properties = packed_job(job)

    @without_frames()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchTaskDone:
        """Writes the rows of a task; deletes its files if that fails."""
        context = TaskContext.get()
        assert context is not None, "Spark writes in tasks"
        if context.getLocalProperty(_IS_CONTINUOUS) == "true":
            raise InvalidOptionError(
                "trigger(continuous=...) is not supported: its tasks never end, so nothing could "
                "be committed; use trigger(processingTime=...) or trigger(availableNow=True)"
            )
        query_id = context.getLocalProperty(_QUERY_ID)
        assert query_id is not None, "Spark names the query of a micro-batch"
        job = self._job if context.partitionId() == 0 else None
        return BatchTaskDone(run_task(self._task, iterator), query_id, job)

    @without_frames()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commits a micro-batch, or deletes its files if the table already has it."""
        from icebergds.operations.write.jobs import commit_batch

        spare_archives()
        done = [message for message in messages if isinstance(message, BatchTaskDone)]
        if len(done) < len(messages):
            raise InvalidOptionError(
                f"batch {batchId} is committed before its tasks are done: trigger(continuous=...) "
                "is not supported; use trigger(processingTime=...) or trigger(availableNow=True)"
            )
        # Take the job from the tasks: the table may have been replaced since they wrote.
        job = next(message.job for message in done if message.job is not None)
        results = [message.result for message in done]
        commit_batch(
            unpacked_job(job, self._catalog_properties),
            results,
            done[0].query_id,
            batchId,
            may_miss_batches=self._may_miss_batches,
        )

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Deletes the files of a micro-batch whose tasks failed. Never raises."""
        results = [message.result for message in messages if isinstance(message, BatchTaskDone)]
        if len(results) < len(messages):
            discard_results(self._job, self._catalog_properties, results)

    def __getstate__(self) -> dict[str, Any]:
        # Spark pickles it for tasks alone, which must not learn the catalog's password.
        return {**self.__dict__, "_catalog_properties": None}
