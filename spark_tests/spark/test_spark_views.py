"""Overwrites of a table by rows that were read from it before, through views and DataFrames."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_reads import load, message_of
from spark_writes import create, save

from icebergds import load_table
from icebergds.errors import ValidationError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> Path:
    return create(spark.sql("SELECT 1L AS id, 'a' AS name"), tmp_path / "t")


def view_of(spark: SparkSession, path: Path, further: str = "") -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v USING icebergpy OPTIONS (path '{path}' {further})"
    )


def rows(spark: SparkSession, path: Path, **options: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, load(spark, path, **options).collect()))


def test_overwrite_through_a_view_that_is_older_than_the_table_is_refused(
    spark: SparkSession, path: Path
) -> None:
    view_of(spark, path)
    spark.sql("INSERT INTO v VALUES (2, 'b')")
    message = message_of(lambda: spark.sql("INSERT OVERWRITE v SELECT id, upper(name) FROM v"))
    assert "icebergds.errors.ValidationError" in message
    assert "create the view, again" in message
    assert rows(spark, path) == [(1, "a"), (2, "b")]

    view_of(spark, path)
    spark.sql("INSERT OVERWRITE v SELECT id, upper(name) FROM v")
    assert rows(spark, path) == [(1, "A"), (2, "B")]


def test_overwrite_through_a_view_of_the_table_before_its_first_row_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = create(spark.sql("SELECT 1L AS id WHERE false"), tmp_path / "t")
    view_of(spark, path)
    save(spark.range(3), path)
    message_of(lambda: spark.sql("INSERT OVERWRITE v SELECT * FROM v"))
    assert rows(spark, path) == [(0,), (1,), (2,)]


def test_view_without_isolation_replaces_what_is_there(spark: SparkSession, path: Path) -> None:
    view_of(spark, path, ", 'isolation-level' 'none'")
    spark.sql("INSERT INTO v VALUES (2, 'b')")
    spark.sql("INSERT OVERWRITE v SELECT 9, 'z'")
    assert rows(spark, path) == [(9, "z")]


def test_overwrite_by_rows_of_an_older_load_is_refused(spark: SparkSession, path: Path) -> None:
    older = load(spark, path)
    save(spark.sql("SELECT 2L AS id, 'b' AS name"), path)
    message = message_of(
        lambda: save(older.selectExpr("upper(name) AS name", "id"), path, "overwrite")
    )
    assert "come from a load of the table at snapshot" in message
    assert rows(spark, path) == [(1, "a"), (2, "b")]
    save(older, path, "overwrite", **{"isolation-level": "none"})
    assert rows(spark, path) == [(1, "a")]


def test_older_snapshot_that_was_asked_for_may_replace_the_table(
    spark: SparkSession, path: Path
) -> None:
    first = load_table(path).current_snapshot()
    assert first is not None
    save(spark.sql("SELECT 2L AS id, 'b' AS name"), path)
    older = load(spark, path, **{"snapshot-id": str(first.snapshot_id)})
    save(older, path, "overwrite")
    assert rows(spark, path) == [(1, "a")]


def test_rows_of_another_table_or_branch_may_be_older(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    other = create(spark.sql("SELECT 7L AS id, 'x' AS name"), tmp_path / "other")
    frame, main = load(spark, other), load(spark, path)
    save(spark.sql("SELECT 8L AS id, 'y' AS name"), other)
    save(main, path, branch="b", **{"create-branch": "true"})
    save(frame, path, "overwrite")
    save(main, path, "overwrite", branch="b")
    assert (rows(spark, path), rows(spark, path, branch="b")) == ([(7, "x")], [(1, "a")])


@pytest.mark.parametrize("overwrite_filter", [None, "id < 9", "id < 3 and name like '%a%'"])
def test_table_is_not_overwritten_by_rows_of_an_older_load(
    spark: SparkSession, path: Path, overwrite_filter: str | None
) -> None:
    older = load(spark, path)
    save(spark.sql("SELECT 2L AS id, 'a' AS name"), path)
    upper = older.selectExpr("id", "upper(name) AS name")
    with pytest.raises(ValidationError):
        load_table(path).overwrite(upper, overwrite_filter)
    assert rows(spark, path) == [(1, "a"), (2, "a")]
    load_table(path).overwrite(load(spark, path), overwrite_filter)
    assert rows(spark, path) == [(1, "a"), (2, "a")]
