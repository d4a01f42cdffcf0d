"""Writes `df.write.format("icebergpy")`: files on executors, one commit on the driver.

Spark creates the writer in one process, writes in others, and commits in yet another. It passes on
only the writer, as it was created, and the messages of the tasks.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from icebergds.errors import IcebergError
from icebergds.spark.errors import without_frames
from icebergds.spark.worker import settle_worker, spare_archives

if TYPE_CHECKING:
    from icebergds.operations.write.jobs import PreparedJob, Task, TaskResult

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TaskDone(WriterCommitMessage):
    """The result of one task."""

    result: TaskResult


class IcebergWriter(DataSourceArrowWriter):
    """Writes a DataFrame to a table, or changes the table's rows by key, in one commit."""

    def __init__(self, job: PreparedJob, task: Task) -> None:
        self._task = task
        self._job, self._catalog_properties = packed_job(job)
        self._goes_to_tasks = True

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        """Writes the rows of a task; deletes its files if that fails."""
        return TaskDone(run_task(self._task, iterator))

    @without_frames()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commits the files of all tasks."""
        from icebergds.operations.write.jobs import commit_job

        spare_archives()
        commit_job(unpacked_job(self._job, self._catalog_properties), _results(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Deletes the files of a failed job, if it is certain that it failed. Never raises.

        Spark also calls it if `commit` failed or its process died; all tasks have a message then.
        In that case nothing is deleted here: `commit` has deleted the files if it knew that nothing
        was committed, and otherwise the outcome is unknown.
        """
        if any(message is None for message in messages):
            discard_results(self._job, self._catalog_properties, _results(messages))

    def __getstate__(self) -> dict[str, Any]:
        # Spark pickles a writer twice: first in the function of the tasks, which must not get the
        # catalog's password, and then by itself, to commit or abort.
        goes_to_tasks, self._goes_to_tasks = self._goes_to_tasks, False
        if goes_to_tasks and self._catalog_properties:
            return {**self.__dict__, "_catalog_properties": None}
        return self.__dict__


@dataclass(frozen=True, slots=True)
class ReportingTask:
    """A task for `mapInArrow`: writes its rows, and returns its result as one row.

    Attributes:
        names: the real names of the columns, which arrive under other names.
    """

    task: Task
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = list(self.names)
        named = (batch.rename_columns(names) for batch in batches)
        result = pickle.dumps(run_task(self.task, named), pickle.HIGHEST_PROTOCOL)
        yield pa.RecordBatch.from_pydict({"result": pa.array([result], pa.binary())})


@without_frames()
def run_task(task: Task, batches: Iterator[pa.RecordBatch]) -> TaskResult:
    """Runs a task on the rows of the current Spark task."""
    settle_worker()
    context = TaskContext.get()
    assert context is not None, "Spark writes in tasks"
    return task(batches, partition_id=context.partitionId(), attempt_id=context.taskAttemptId())


def packed_job(job: PreparedJob) -> tuple[bytes, Mapping[str, str]]:
    """A pickled job without its catalog's properties, and these properties.

    It is pickled so that tasks need not import the commit code, which is half of all imports: every
    Python worker would pay for it before its first row.
    """
    from icebergds.operations.write.jobs import with_catalog_properties

    return pickle.dumps(with_catalog_properties(job, {})), dict(job.address.catalog_properties)


def unpacked_job(packed: bytes, catalog_properties: Mapping[str, str] | None) -> PreparedJob:
    """A packed job with the properties of its catalog.

    Raises:
        IcebergError: there are no properties, because this writer was pickled for tasks.
    """
    from icebergds.operations.write.jobs import with_catalog_properties

    if catalog_properties is None:
        raise IcebergError(
            "the properties of the catalog are kept from Spark's tasks, and Spark has committed "
            "with what it sent to them; configure the catalog by environment variables or "
            ".pyiceberg.yaml, or write with table.append or table.overwrite"
        )
    job: PreparedJob = pickle.loads(packed)
    return with_catalog_properties(job, catalog_properties)


def discard_results(
    packed: bytes, catalog_properties: Mapping[str, str] | None, results: Sequence[TaskResult]
) -> None:
    """Deletes the files of a packed job's tasks, unless it was committed. Never raises."""
    try:
        from icebergds.operations.write.jobs import discard_job

        discard_job(unpacked_job(packed, catalog_properties), results)
    except Exception as error:
        _LOG.warning("files of a failed write were left behind: %s", error)


def _results(messages: Sequence[WriterCommitMessage | None]) -> list[TaskResult]:
    return [message.result for message in messages if isinstance(message, TaskDone)]
