"""Runs the tasks of a maintenance action as a Spark job."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds.interrupts import check_stopped
from icebergds.operations.runner import LocalRunner, Runner, TaskAttempt
from icebergds.reporting import polled, weight_of, writing_files
from icebergds.spark.errors import own_errors, without_frames
from icebergds.spark.job_descriptions import phase
from icebergds.spark.save_job import discarding
from icebergds.spark.session import session_or_active
from icebergds.spark.worker import settle_worker

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def runner_of(spark: SparkSession | None) -> Runner:
    """A runner on a session, or on the active one; in this process if there is none."""
    session = session_or_active(spark)
    return LocalRunner() if session is None else SparkRunner(session)


@dataclass(frozen=True, slots=True)
class SparkRunner:
    """Runs each task as a task of Spark, in one job."""

    spark: SparkSession

    def run(
        self,
        task: Callable[[_Item, TaskAttempt], _Result],
        items: Iterable[_Item],
        discard: Callable[[], int] | None = None,
    ) -> list[_Result]:
        """Runs a task once for each item, as `Runner.run` says.

        Raises:
            IcebergError: what a task raised.
            PySparkException: the job failed for another reason.
        """
        check_stopped()
        packed, weight = pack_items(items)
        if not len(packed):
            return []
        if discard is not None:
            writing_files()
        with (
            discarding(self.spark, discard) as job,
            # Before these tasks, one stage hands out the items.
            polled(partial(job.part_done, len(packed), 1), weight),
            own_errors(),
            phase(),
        ):
            placed = items_frame(self.spark, packed)
            # Unlike collect(), it fails if the JVM cannot send all results.
            done = placed.mapInArrow(_Packed(task), "number int, result binary").toArrow()
        results = dict(unpacked(done.to_batches()))
        return [results[number] for number in range(len(packed))]


def pack_items(items: Iterable[Any]) -> tuple[pa.BinaryArray, tuple[int, int]]:
    """Packs items, one after the other; returns their weight in the current stage, too."""
    weights = [(0, 0)]

    def packed() -> Iterator[bytes]:
        for item in items:
            weights.append(weight_of(item))
            yield _packed(item)

    array = pa.array(packed(), pa.binary())
    count, nbytes = map(sum, zip(*weights, strict=True))
    return array, (count, nbytes)


def items_frame(spark: SparkSession, packed: pa.BinaryArray) -> DataFrame:
    """A DataFrame with one row and one task per packed item; `unpacked` reads it."""
    rows = pa.table({"number": pa.array(range(len(packed)), pa.int32()), "item": packed})
    return spark.createDataFrame(rows).repartitionById(len(packed), f.col("number"))


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    """The number of each item of `items_frame`, and the item."""
    for batch in batches:
        for number, item in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
            yield number, pickle.loads(zlib.decompress(item))


def _packed(value: Any) -> bytes:
    # Compressed, because the paths in it have much in common.
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), level=1)


@dataclass(frozen=True, slots=True)
class _Packed:
    """A task for `mapInArrow`; the input rows are items."""

    task: Callable[[Any, TaskAttempt], Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        for number, item in unpacked(batches):
            yield pa.RecordBatch.from_arrays(
                [pa.array([number], pa.int32()), pa.array([self._result(number, item)])],
                ["number", "result"],
            )

    @without_frames()
    def _result(self, number: int, item: Any) -> bytes:
        context = TaskContext.get()
        assert context is not None, "Spark runs tasks"
        return _packed(self.task(item, TaskAttempt(number, context.taskAttemptId())))
