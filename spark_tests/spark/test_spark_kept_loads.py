"""Loads of a snapshot that a registered session has loaded before: its files are listed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from spark_reads import session_conf

from icebergds import Table, load_catalog
from icebergds.spark import parquet_relation

pytestmark = pytest.mark.spark

_SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return created(tmp_path, 3)


def created(directory: Path, count: int) -> Table:
    """Ids below `count`, each in a file of its own."""
    catalog = load_catalog("lake", warehouse=str(directory / "lake"))
    catalog.create_namespace_if_not_exists("db")
    table = catalog.create_table("db.t", _SCHEMA)
    for number in range(count):
        table.append(pa.table([[number], [f"n{number}"]], schema=_SCHEMA))
    return table


def load(spark: SparkSession, table: Table, **options: str) -> DataFrame:
    return spark.read.format("icebergpy").options(**options).load(table.location())


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.collect())


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each listing has."""
    found: list[int] = []
    listed = parquet_relation.listed_files

    def counted(spark: Any, session: Any, schema: Any, addresses: Any, *others: Any) -> Any:
        found.append(len(addresses))
        return listed(spark, session, schema, addresses, *others)

    monkeypatch.setattr(parquet_relation, "listed_files", counted)
    return found


def test_files_that_are_read_again_are_not_listed_again(
    front: SparkSession, table: Table, listings: list[int]
) -> None:
    for _ in range(2):
        assert ids(load(front, table)) == [0, 1, 2]
        assert ids(load(front, table).where("id > 0")) == [1, 2]
    assert listings == [3, 2]


def test_nor_are_those_with_columns_that_spark_finds_under_other_names(
    front: SparkSession, tmp_path: Path, listings: list[int]
) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path / "floats"))
    catalog.create_namespace("db")
    rows = pa.table({"id": [1, 2, 3], "x": [0.5, float("nan"), None], "y": [1, 2, 3]})
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    first = list(map(str, load(front, table).collect()))
    again = load(front, table)
    assert list(map(str, again.collect())) == first
    again.createOrReplaceTempView("again")
    load(front, table).createOrReplaceTempView("other")
    assert ids(front.sql("SELECT id FROM again WHERE x > 1")) == [2]
    assert ids(front.sql("SELECT again.id FROM again JOIN other ON again.y = other.y")) == [1, 2, 3]
    assert listings == [1]


def test_a_listing_that_lost_a_file_is_of_one_load_alone(front: SparkSession, table: Table) -> None:
    assert ids(load(front, table)) == [0, 1, 2]
    again = load(front, table)
    again.createOrReplaceTempView("kept")
    assert ids(again) == [0, 1, 2]
    task, *_ = table.scan("id = 1").plan_files()
    file, aside = Path(task.file.file_path), Path(f"{task.file.file_path}.aside")
    file.rename(aside)
    front.catalog.refreshTable("kept")
    aside.rename(file)
    assert ids(load(front, table)) == [0, 1, 2]


def test_each_load_has_columns_of_its_own(front: SparkSession, table: Table) -> None:
    first, second = load(front, table), load(front, table)
    pairs = first.join(second, first["id"] + 1 == second["id"]).select(first["id"], second["name"])
    assert sorted(map(tuple, pairs.collect())) == [(0, "n1"), (1, "n2")]


def test_a_load_after_a_commit_has_its_rows(front: SparkSession, table: Table) -> None:
    assert ids(load(front, table)) == [0, 1, 2]
    table.append(pa.table([[9], ["n9"]], schema=_SCHEMA))
    assert ids(load(front, table)) == [0, 1, 2, 9]
    table.delete("id = 1")
    assert ids(load(front, table)) == [0, 2, 9]


def test_a_table_that_is_created_anew_in_the_same_place_has_its_own_rows(
    front: SparkSession, table: Table, tmp_path: Path
) -> None:
    assert ids(load(front, table)) == [0, 1, 2]
    load_catalog("lake", warehouse=str(tmp_path / "lake")).purge_table("db.t")
    again = created(tmp_path, 2)
    assert again.location() == table.location()
    assert ids(load(front, again)) == [0, 1]


def test_options_of_a_load_are_its_own(front: SparkSession, table: Table) -> None:
    first = str(table.snapshots()[0].snapshot_id)
    for _ in range(2):
        assert ids(load(front, table)) == [0, 1, 2]
        names = load(front, table, columns="name").collect()
        assert sorted(map(tuple, names)) == [("n0",), ("n1",), ("n2",)]
        assert ids(load(front, table, **{"snapshot-id": first})) == [0]
        assert ids(load(front, table, filter="id > 0")) == [1, 2]


def test_a_file_that_is_lost_meanwhile_is_named(front: SparkSession, table: Table) -> None:
    assert ids(load(front, table)) == [0, 1, 2]
    task, *_ = table.scan("id = 1").plan_files()
    Path(task.file.file_path).unlink()
    with pytest.raises(PySparkException, match=f"no such file: '{task.file.file_path}"):
        load(front, table).collect()


def test_settings_of_the_session_hold_as_they_are_at_a_load(
    front: SparkSession, table: Table
) -> None:
    def partitions() -> int:
        return load(front, table).rdd.getNumPartitions()

    count = partitions()
    with session_conf(front, "spark.sql.files.maxPartitionBytes", "100"):
        assert partitions() > count
    assert partitions() == count
