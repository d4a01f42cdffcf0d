"""Writes with executors in processes of their own, some of which die."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from built.tables import TableBuilder
from executors import kill_executor, kill_workers
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from icebergds import NestedField, Schema, load_table
from icebergds.spec.types import LONG, STRING

# Kills something, or returns the row that offends.
Strike: TypeAlias = Callable[[], list[pa.RecordBatch] | None]
# Rows of each of two tasks: so many bytes that a file has been begun before a task is struck.
ROWS = 5_000
SCHEMA = Schema((NestedField(1, "id", LONG, True), NestedField(2, "pad", STRING)))


def see(spark: SparkSession, directory: str, *, kills_all: bool) -> dict[str, Any]:
    """What each write left, by what struck its second task.

    Args:
        kills_all: not only an executor is killed.
    """
    Path(directory).mkdir()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    seen = {
        "undisturbed": write(spark, Path(directory, "undisturbed"), None),
        "retried": write(spark, Path(directory, "retried"), offend),
        "executor": write(spark, Path(directory, "executor"), kill_executor),
        "failed": write(spark, Path(directory, "failed"), offend, always=True),
    }
    if kills_all:
        seen["worker"] = write(spark, Path(directory, "worker"), kill_workers)
        seen["stage"] = write(spark, Path(directory, "stage"), kill_executor, shuffled=True)
    return seen


def write(
    spark: SparkSession,
    path: Path,
    strike: Strike | None,
    *,
    always: bool = False,
    shuffled: bool = False,
) -> dict[str, Any]:
    """Writes 2 * ROWS ids in two tasks, of which the second is struck when it has its rows.

    Where they are shuffled first, half of the shuffle's files are lost with an executor, so that
    the whole stage that writes is tried again.
    """
    TableBuilder(path, SCHEMA).commit()
    # Columns that may be null, so that a task can get a row that is.
    rows = spark.range(0, 2 * ROWS, 1, 2).selectExpr(
        "if(id < 0, null, id) AS id", "if(id < 0, null, repeat('x', 5000)) AS pad"
    )
    shuffles = path.with_suffix(".shuffles")
    shuffles.mkdir()
    if shuffled:
        rows = noted(rows, shuffles).repartition(2)
    if strike is not None:
        rows = struck(rows, strike, path.with_suffix(".marker"), always=always)
    error = ""
    try:
        rows.write.format("icebergpy").mode("append").save(str(path))
    except PySparkException as raised:
        error = str(raised)
    on_disk = [file for file in path.rglob("*.parquet") if file.is_file()]
    if error:
        return {"error": error, "files": len(on_disk)}
    table = load_table(path)
    ids = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    snapshot = table.current_snapshot()
    return {
        "complete": sorted(ids) == list(range(2 * ROWS)),
        "snapshots": len(table.snapshots()) - 1,
        "live files": int(snapshot.summary["added-data-files"]) if snapshot else 0,
        "files": len(on_disk),
        "shuffling tasks": len(list(shuffles.iterdir())),
    }


def noted(rows: DataFrame, directory: Path) -> DataFrame:
    """The rows, of which each attempt of a task leaves a file."""

    def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        (directory / str(context.taskAttemptId())).touch()
        yield from batches

    return rows.mapInArrow(rows_of, "id long, pad string")


def struck(rows: DataFrame, strike: Strike, marker: Path, *, always: bool) -> DataFrame:
    """The rows, of which the second task meets its fate once, or always, at its end."""

    def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1 and (first(marker) or always):
            # By now the writer has its rows, and the first task is done.
            time.sleep(2)
            yield from strike() or ()

    return rows.mapInArrow(rows_of, "id long, pad string")


def first(marker: Path) -> bool:
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def offend() -> list[pa.RecordBatch]:
    """A row that the table does not take."""
    return [pa.record_batch({"id": pa.array([None], pa.int64()), "pad": ["x"]})]
