"""Scans whose filter is a column of Spark's: rows, counts, pruning, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession, functions as f
from spark_changes import people, person

from icebergds import Table
from icebergds.errors import InvalidFilterError, InvalidOptionError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return people(tmp_path)


@pytest.fixture(params=["registered", "data source"])
def session(spark: SparkSession, front: SparkSession, request: pytest.FixtureRequest) -> Any:
    return front if request.param == "registered" else spark


def test_a_column_chooses_rows(session: SparkSession, table: Table) -> None:
    scan = table.scan(f.col("id") > 9)
    assert sorted(scan.to_df(session).collect()) == [person(10), person(11)]
    assert scan.count(session) == 2
    assert table.scan(row_filter=f.upper("name") == "N3").to_df(session).collect() == [person(3)]
    assert table.scan(f.col("id") > 5, limit=3).to_df(session).count() == 3


def test_it_may_name_columns_that_are_not_shown(session: SparkSession, table: Table) -> None:
    read = table.scan(f.col("part") == 1, columns=["name", "_file"]).to_df(session)
    assert read.columns == ["name", "_file"]
    assert sorted(row.name for row in read.collect()) == ["n1", "n10", "n4", "n7"]


def test_it_prunes_files(session: SparkSession, table: Table) -> None:
    task, *_ = table.scan("part = 2").plan_files()
    Path(task.file.file_path).unlink()
    assert table.scan(f.col("part") == 1).to_df(session).count() == 4


def test_it_travels_in_time(session: SparkSession, table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    assert table.scan(f.col("id") < 100, snapshot_id=first).to_df(session).count() == 6


def test_changes_take_one(session: SparkSession, table: Table) -> None:
    changes = table.changes(filter=f.col("id") == 3).to_df(session)
    assert [row.id for row in changes.collect()] == [3]


def test_what_needs_text_refuses_a_column(session: SparkSession, table: Table) -> None:
    scan = table.scan(f.col("id") > 5)
    for use in (scan.to_arrow, scan.plan_files, scan.count, scan.plan_summary):
        with pytest.raises(InvalidFilterError, match="which Spark evaluates; give it as text"):
            use()


def test_a_condition_that_does_not_fit_is_refused(session: SparkSession, table: Table) -> None:
    for condition in (f.col("none") > 5, f.rand() > 0.5, f.col("name")):
        with pytest.raises(InvalidFilterError, match="filter"):
            table.scan(condition).to_df(session)
    with pytest.raises(InvalidFilterError, match="or as a Column"):
        table.scan(5)  # type: ignore[arg-type]


def test_columns_inside_of_others_need_text(session: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path / "nested", count=2)
    table.update_schema().add_column("s", "struct<a: int, b: int>").commit()
    with pytest.raises(InvalidOptionError, match="choose fields inside of 's'"):
        table.scan(f.col("id") > 0, columns="s.a").to_df(session)
    assert table.scan(f.col("id") > 0, columns="s").to_df(session).count() == 1
