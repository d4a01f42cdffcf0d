"""Runs the tasks of a planned write as a Spark job, and commits what they wrote."""

from __future__ import annotations

import pickle
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from pyspark import SparkContext, SparkStageInfo
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidOptionError
from icebergds.interrupts import is_stopped, on_stop
from icebergds.io.locations import is_local
from icebergds.operations.runner import Runner
from icebergds.operations.write.jobs import (
    PlannedJob,
    Task,
    TaskResult,
    commit_job,
    discard_unreported,
    written_files,
)
from icebergds.reporting import polled, stage, writing_files
from icebergds.spark.errors import own_errors
from icebergds.spark.job_descriptions import phase
from icebergds.spark.key_transport import warn_of_clear_keys
from icebergds.spark.quick_batches import in_quick_batches
from icebergds.spark.session import is_connect
from icebergds.spark.writer import ReportingTask

CLEAN_UP = "icebergds-clean-up"
"""The name of threads that clean up after an interrupted job."""

_REPORT = StructType([StructField("result", BinaryType())])
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII | re.IGNORECASE)

# Spark's default of spark.python.task.killTimeout: how long a killed task may go on. Spark looks
# only every two seconds whether a task was killed.
_SECONDS_TO_KILL = 2.0
_SECONDS_TO_LOOK = 2.0
# How soon a Python worker notices that its task has ended.
_SECONDS_TO_NOTICE = 1.0
# How often a job is cancelled that may not have begun, and for how long it may begin.
_SECONDS_TO_CANCEL = 0.3
_SECONDS_TO_BEGIN = 1.0
# How long a caller waits for its error, at most, until the files of a failed job are deleted.
_SECONDS_TO_CLEAN_UP = 30.0


def run_job(df: DataFrame, planned: PlannedJob, runner: Runner | None = None) -> Committed | None:
    """Writes the rows of a DataFrame, one task per partition, and commits in this process.

    Deletes the files of a job that fails, once its tasks have ended.

    Args:
        runner: as for `commit_delta`.

    Returns:
        None if there was nothing to commit.

    Raises:
        IcebergError: the rows or the commit were refused, as by `commit_job`.
        PySparkException: the job failed for another reason.
    """
    warn_of_clear_keys(df.sparkSession, planned.table.state)
    writing_files()
    with stage("write files"):
        results = write_in_tasks(df, planned.task, partial(discard_unreported, planned))
    check_reached(df.sparkSession, planned, results)
    return commit_job(planned.job, results, planned.table, runner)


def check_reached(spark: SparkSession, planned: PlannedJob, results: list[TaskResult]) -> None:
    """Refuses to commit files that this process cannot see: the server may be another machine.

    Raises:
        InvalidOptionError: tasks of a server wrote such files.
    """
    if not is_connect(spark):
        return
    io, files = planned.job.io, written_files(results)
    if files and is_local(io.locate(files[0].file_path)) and not io.exists(files[0].file_path):
        raise InvalidOptionError(
            f"table {planned.table.name}: Spark's tasks wrote {files[0].file_path}, which this "
            "process does not see, so that nothing was committed: the location is one of each "
            "machine; use a storage that Spark and this process reach, or "
            "register(spark, writer=False), which commits on the server"
        )


def write_in_tasks(
    df: DataFrame,
    task: Task,
    discard: Callable[[], int],
    tracked: tuple[int, int, tuple[int, int]] = (0, 0, (0, 0)),
) -> list[TaskResult]:
    """Writes the rows of a DataFrame, one task per partition; returns their results.

    Args:
        discard: as for `discarding`.
        tracked: the number of tasks, how many stages come before them, and what they advance the
            current stage by.

    Raises:
        IcebergError: the rows were refused.
        PySparkException: the job failed for another reason.
    """
    names = df.columns
    reporting = ReportingTask(task, tuple(names))
    tasks, stages_before, weight = tracked
    with (
        discarding(df.sparkSession, discard) as job,
        polled(partial(job.part_done, tasks, stages_before), weight),
        own_errors(),
        phase("write"),
    ):
        # If the JVM runs out of memory while it sends rows, collect() returns those it has sent,
        # without an error, and the files of other tasks would not be committed.
        rows = in_quick_batches(_plainly_named(df, names))
        reports = rows.mapInArrow(reporting, _REPORT).toArrow()
        return [pickle.loads(result) for result in reports["result"].to_pylist()]


def _plainly_named(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """The rows under names that mapInArrow does not parse, as it does with dots and backticks."""
    if all(map(_PLAIN_NAME.fullmatch, names)) and len({*map(str.lower, names)}) == len(names):
        return df
    return df.toDF(*(f"c{at}" for at in range(len(names))))


@dataclass(frozen=True, slots=True)
class Job:
    """A job that runs.

    Attributes:
        tag: of Spark's jobs, or of the operations of Spark Connect.
        context: None if Python cannot reach it.
    """

    spark: SparkSession
    tag: str
    context: SparkContext | None

    def part_done(self, tasks: int, stages_before: int) -> float:
        """The part of the tasks of its last stage that are done, from 0 to 1."""
        stages = [] if self.context is None else _stages(self.context, self.tag)
        last = max(stages, key=lambda stage: stage.stageId, default=None)
        if last is None or len(stages) <= stages_before or last.numTasks != tasks:
            return 0.0
        return last.numCompletedTasks / tasks

    def cancel_until(self, ended: threading.Event) -> None:
        """Has Spark end its tasks, also those of a job that Spark still plans. Never raises."""
        with suppress(Exception):
            while not ended.is_set():
                self.cancel()
                ended.wait(_SECONDS_TO_CANCEL)

    def cancel(self) -> None:
        """Has Spark end its tasks.

        Raises:
            Exception: the JVM or the server has ended.
        """
        if self.context is not None:
            self.context.cancelJobsWithTag(self.tag)
        elif is_connect(self.spark):
            self.spark.interruptTag(self.tag)


@contextmanager
def discarding(spark: SparkSession, discard: Callable[[], int] | None) -> Iterator[Job]:
    """Ends the job that runs in the block and deletes its files, if the block raises.

    If the action is stopped, the job is cancelled, and the block raises. After Ctrl-C, a thread
    deletes the files: Spark takes seconds to end a task that runs Python. The process does not end
    before this thread.

    Args:
        discard: deletes files of the job; returns how many it found. None if it writes none.
    """
    job, ended = _tagged(spark), threading.Event()
    try:
        with on_stop(partial(job.cancel_until, ended)):
            yield job
    except AnalysisException:
        # Spark refused the plan, so that nothing ran.
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or is_stopped():
            threading.Thread(target=_clean_up, args=(job, discard, True), name=CLEAN_UP).start()
        elif discard is not None:
            _clean_up(job, discard)
        raise
    finally:
        ended.set()
        # If the JVM has ended, its error must not hide the job's error.
        with suppress(Exception):
            if job.context is not None:
                job.context.removeJobTag(job.tag)
            elif is_connect(spark):
                spark.removeTag(job.tag)


def _tagged(spark: SparkSession) -> Job:
    """A job of a session, whose next jobs get its tag, as far as Python can reach them."""
    tag = f"icebergds-{uuid.uuid4()}"
    if is_connect(spark):
        spark.addTag(tag)
        return Job(spark, tag, None)
    try:
        context = spark.sparkContext
        context.addJobTag(tag)
    except Exception:
        # Some platforms hide it from Python.
        context = None
    return Job(spark, tag, context)


def _clean_up(job: Job, discard: Callable[[], int] | None, interrupted: bool = False) -> None:
    """Ends the tasks of a failed job, and deletes its files until the last task has ended.

    Args:
        interrupted: whether Ctrl-C ended it: all of its tasks may run, or it may not have begun.
    """
    now = time.monotonic()
    deadline = now + _SECONDS_TO_CLEAN_UP
    were_killed = _end_tasks(job, now + _SECONDS_TO_BEGIN if interrupted else now, deadline)
    while discard is not None and discard() and were_killed and time.monotonic() < deadline:
        time.sleep(_SECONDS_TO_NOTICE)


def _end_tasks(job: Job, begun: float, deadline: float) -> bool:
    """Kills the tasks of a failed job that still run, and waits until they have ended.

    Args:
        begun: until when the job may begin.

    Returns:
        Whether tasks were killed, or may have been. Their Python workers take the input received
        so far for all of it, and end a little later.
    """
    now = time.monotonic()
    try:
        stages = _ended_stages(job, begun, deadline)
    except Exception:
        # The JVM has ended, too.
        stages = None
    if stages is None:
        time.sleep(_SECONDS_TO_KILL if begun <= now else _SECONDS_TO_LOOK + _SECONDS_TO_KILL)
    elif all(done.numCompletedTasks + done.numFailedTasks == done.numTasks for done in stages):
        return False
    time.sleep(_SECONDS_TO_NOTICE)
    return True


def _ended_stages(job: Job, begun: float, deadline: float) -> list[SparkStageInfo] | None:
    """The stages of a job, once none of their tasks runs any more; None if they are not known."""
    while True:
        # Spark has cancelled them already, except after Ctrl-C, when PySpark's own call fails.
        job.cancel()
        stages = None if job.context is None else _stages(job.context, job.tag)
        is_active = any(stage.numActiveTasks for stage in stages or ())
        now = time.monotonic()
        if (not is_active and now >= begun) or now >= deadline:
            return stages
        time.sleep(_SECONDS_TO_CANCEL if begun > now else 0.05)


def _stages(context: SparkContext, tag: str) -> list[SparkStageInfo]:
    """The stages of the jobs with a tag."""
    tracker = context.statusTracker()
    jobs = context._jsc.sc().statusTracker().getJobIdsForTag(tag)
    infos = [tracker.getJobInfo(job) for job in jobs]
    stages = [tracker.getStageInfo(id) for info in infos if info for id in info.stageIds]
    return [stage for stage in stages if stage]
