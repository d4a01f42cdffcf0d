"""Frames that a `Table` writes through Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from built.contents import files_besides_metadata
from effort import IS_NIGHTLY
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions as f
from spark_changes import people
from spark_reads import ids, load, run_program
from spark_writes import create

from icebergds import load_table
from icebergds.errors import InvalidDataError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def append_halting(
    spark: SparkSession, path: Path, *, error: str = "raise RuntimeError('halted')"
) -> None:
    """Appends the rows of two tasks; the second one fails once the first one is through."""
    through = path.parent / "through"

    def fail_late(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column("id").to_pylist() != [0]:
                while not through.exists():
                    time.sleep(0.05)
                exec(error)
            yield batch

    def first_is_through() -> bool:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(stage is not None and stage.numCompletedTasks == 1 for stage in stages)

    def tell() -> None:
        deadline = time.monotonic() + 60
        while not first_is_through() and time.monotonic() < deadline:
            time.sleep(0.05)
        through.touch()

    teller = Thread(target=tell)
    teller.start()
    try:
        rows = spark.range(0, 2, 1, 2).mapInArrow(fail_late, "id long")
        load_table(path).append(rows)
    finally:
        teller.join()


def test_files_of_finished_tasks_go_when_another_one_fails(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = create(spark.range(3), tmp_path / "t")
    before = files_besides_metadata(path)
    with pytest.raises(PySparkException, match="halted"):
        append_halting(spark, path)
    assert files_besides_metadata(path) == before
    assert ids(load(spark, path)) == [0, 1, 2]


def test_an_error_of_ours_in_a_task_is_raised_as_what_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = create(spark.range(3), tmp_path / "t")
    before = files_besides_metadata(path)
    error = "from icebergds.errors import InvalidDataError; raise InvalidDataError('no such row')"
    with pytest.raises(InvalidDataError, match="no such row"):
        append_halting(spark, path, error=error)
    assert files_besides_metadata(path) == before


def test_a_statement_that_fails_leaves_no_file(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    before = files_besides_metadata(Path(table.location()))
    inverse = f.udf(lambda part: 1 // part, "int")
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        table.update({"part": inverse("part")}, f.col("id") >= 0, spark=spark)
    assert files_besides_metadata(Path(table.location())) == before


def test_names_with_dots_get_through(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(2).withColumn("a.b", f.lit(2)).withColumn("c`d", f.lit(3))
    path = create(rows, tmp_path / "t")
    load_table(path).append(rows)
    assert [tuple(row) for row in load(spark, path).collect()] == [
        (row_id, 2, 3) for row_id in (0, 1, 0, 1)
    ]


def test_columns_of_one_name_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.range(2), tmp_path / "t")
    with pytest.raises(InvalidDataError, match="id"):
        load_table(path).append(spark.range(1).select("id", f.col("id").alias("ID")))


def test_rows_of_no_task_are_committed(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.range(2), tmp_path / "t")
    load_table(path).append(spark.range(0))
    assert len(load_table(path).snapshots()) == 2


@pytest.mark.skipif(not IS_NIGHTLY, reason="a driver of its own, left to the nightly profile")
def test_no_result_is_missing_if_the_driver_has_hardly_memory_for_them(tmp_path: Path) -> None:
    assert run_program("small_driver.py", directory=tmp_path) == {"tasks": list(range(16))}
