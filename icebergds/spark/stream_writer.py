"""Writes `df.writeStream.format("icebergpy")`: each micro-batch is committed exactly once.

Spark creates one writer to plan a batch and another to commit it, and gives neither the query id.
Tasks know the query id, so they report it in their messages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from icebergds.errors import IcebergError, InvalidOptionError
from icebergds.spark.errors import without_frames
from icebergds.spark.worker import spare_archives
from icebergds.spark.writer import discard_results, packed_job, run_task, unpacked_job

if TYPE_CHECKING:
    from icebergds.operations.write.jobs import PlannedJob, TaskResult
    from icebergds.operations.write.stream_options import StreamWriteOptions

# Spark's daemons import it in the processes that commit batches, and only there.
_SINK_RUNNER = "pyspark.sql.worker.python_streaming_sink_runner"
_QUERY_ID = "sql.streaming.queryId"
_IS_CONTINUOUS = "__is_continuous_processing"


@dataclass(frozen=True, slots=True)
class BatchTaskDone(WriterCommitMessage):
    """The result of one task of a micro-batch.

    Attributes:
        query_id: of the query that writes.
        job: the packed job of the task; only the first task reports it.
        metadata_location: of the table when the batch was planned.
    """

    result: TaskResult
    query_id: str
    job: bytes | None
    metadata_location: str


def batch_writer(
    options: StreamWriteOptions, schema: StructType, *, overwrite: bool
) -> IcebergStreamWriter:
    """The writer of a micro-batch: Spark makes one to plan the batch, another one to commit it.

    Arguments and errors are those of `plan_job`.
    """
    from icebergds.catalog.loaded_table import last_seen_for_write
    from icebergds.operations.write.options import parse_write_options
    from icebergds.spark.write_jobs import plan_job

    write = parse_write_options(options.write)
    if _commits_batches() and not write.merge_schema:
        # The table as the last batch left it, current if nobody else changed it; needs no request.
        table = last_seen_for_write(write.address)
        if table is not None:
            with suppress(IcebergError):
                planned = plan_job(write, schema, overwrite=overwrite, table=table)
                return IcebergStreamWriter(planned, options, is_current=False)
    planned = plan_job(write, schema, overwrite=overwrite)
    return IcebergStreamWriter(planned, options, is_current=True)


def _commits_batches() -> bool:
    """Whether Spark started this process to commit micro-batches."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _SINK_RUNNER in sys.modules or (main is not None and main.name == _SINK_RUNNER)


class IcebergStreamWriter(DataSourceStreamArrowWriter):
    """Writes a micro-batch of a query to a table.

    Args:
        is_current: whether the table was loaded for this batch; else this process saw it earlier.
    """

    def __init__(
        self, planned: PlannedJob, options: StreamWriteOptions, *, is_current: bool
    ) -> None:
        self._task = planned.task
        self._may_miss_batches = options.may_miss_batches
        self._maintenance = options.maintenance
        self._job, self._catalog_properties = packed_job(planned.job)
        # A table that is still to be created cannot be the base of the commit.
        is_new = getattr(planned.job, "new_table", None) is not None
        self._table = None if is_new else planned.table
        self._is_current = is_current
        self._metadata_location = planned.table.state.metadata_location

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
        result = run_task(self._task, iterator)
        return BatchTaskDone(result, query_id, job, self._metadata_location)

    @without_frames()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commits a micro-batch, or deletes its files if the table already has it.

        Then maintains the table, if that is configured and due. The batch stays committed, whatever
        the outcome.
        """
        from icebergds.operations.write.jobs import commit_batch

        spare_archives()
        done = [message for message in messages if isinstance(message, BatchTaskDone)]
        if len(done) < len(messages):
            raise InvalidOptionError(
                f"batch {batchId} is committed before its tasks are done: trigger(continuous=...) "
                "is not supported; use trigger(processingTime=...) or trigger(availableNow=True)"
            )
        # Take the job from the tasks: the table may have been replaced since they wrote.
        packed = next(message.job for message in done if message.job is not None)
        job, query_id = unpacked_job(packed, self._catalog_properties), done[0].query_id
        committed = commit_batch(
            job,
            [message.result for message in done],
            query_id,
            batchId,
            may_miss_batches=self._may_miss_batches,
            # The job may need parts of the table that an old state lacks.
            table=self._table if self._is_current or self._is_of(done[0]) else None,
        )
        # None if the batch is repeated: if maintenance killed the process, the query goes on.
        if committed is not None and self._maintenance is not None:
            from icebergds.operations.maintenance.stream_maintenance import (
                StreamBatch,
                maintain_after_batch,
            )

            batch = StreamBatch(job.options.branch, query_id, batchId)
            maintain_after_batch(committed.state, job.address, batch, self._maintenance)

    def _is_of(self, message: BatchTaskDone) -> bool:
        """Whether the table is in the state that the batch was planned for."""
        return self._metadata_location == message.metadata_location != ""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Deletes the files of a micro-batch whose tasks failed. Never raises."""
        results = [message.result for message in messages if isinstance(message, BatchTaskDone)]
        if len(results) < len(messages):
            discard_results(self._job, self._catalog_properties, results)

    def __getstate__(self) -> dict[str, Any]:
        # Spark pickles it only for tasks, which must not get the catalog's password.
        return {**self.__dict__, "_catalog_properties": None, "_table": None}
