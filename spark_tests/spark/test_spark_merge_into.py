"""What `df.mergeInto` does in a registered session, for tables of our catalogs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds import Table, load_catalog, register, unregister
from icebergds.errors import (
    IcebergError,
    InvalidDataError,
    InvalidFilterError,
    InvalidOptionError,
    NoSuchTableError,
)

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_ROWS = [(1, "a", 10), (2, "b", 20), (3, "c", 30)]


@pytest.fixture
def table(front: SparkSession, tmp_path: Path) -> Table:
    """The table `harbour.db.t` with `_ROWS`."""
    warehouse = str(tmp_path / "harbour")
    front.conf.set("spark.icebergpy.catalog.harbour.warehouse", warehouse)
    register(front)
    catalog = load_catalog("harbour", warehouse=warehouse)
    catalog.create_namespace("db")
    created = catalog.create_table("db.t", "id bigint, name string, n int")
    created.append(front.createDataFrame(_ROWS, "id bigint, name string, n int").coalesce(1))
    return created


def given(spark: SparkSession) -> DataFrame:
    rows = [(2, "B", 21), (3, None, 31), (9, "I", 90)]
    return spark.createDataFrame(rows, "id bigint, name string, n int").alias("s")


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    found = table.refresh().scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_every_clause_of_a_merge_is_run_in_one_commit(front: SparkSession, table: Table) -> None:
    done = (
        given(front)
        .mergeInto("harbour.db.t", f.expr("t.id = s.id"))
        .whenMatched(f.col("s.name").isNull())
        .delete()
        .whenMatched()
        .update({"name": f.concat("t.name", "s.name"), "t.n": f.col("s.n")})
        .whenNotMatched(f.col("s.id") > 100)
        .insertAll()
        .whenNotMatched()
        .insert({"id": f.col("s.id"), "n": f.lit(0)})
        .whenNotMatchedBySource(f.col("t.n") < 5)
        .delete()
        .whenNotMatchedBySource()
        .update({"n": f.col("t.n") + 1})
    )
    assert done.merge() is None
    assert rows_of(table) == [(1, "a", 11), (2, "bB", 21), (9, None, 0)]
    assert len(table.refresh().snapshots()) == 2


def test_all_columns_are_updated_and_inserted(front: SparkSession, table: Table) -> None:
    merged = given(front).mergeInto("harbour.db.t", f.col("t.id") == f.col("s.id"))
    merged.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    assert rows_of(table) == [(1, "a", 10), (2, "B", 21), (3, None, 31), (9, "I", 90)]


def test_rows_come_from_views_and_dataframes_without_an_alias(
    front: SparkSession, table: Table
) -> None:
    given(front).createOrReplaceTempView("updates")
    view = front.table("updates").where("id = 2")
    view.mergeInto("harbour.db.t", f.expr("t.id = updates.id")).whenMatched().delete().merge()
    plain = front.range(3, 4)
    merged = plain.mergeInto("harbour.db.t", f.col("t.id") == plain["id"])
    merged.whenMatched().update({"n": f.lit(0)}).merge()
    assert rows_of(table) == [(1, "a", 10), (3, "c", 0)]


def test_columns_are_added_with_schema_evolution_alone(front: SparkSession, table: Table) -> None:
    wider = given(front).withColumn("more", f.lit("x")).alias("s")
    merged = wider.mergeInto("harbour.db.t", f.expr("t.id = s.id"))
    merged.whenMatched().updateAll().merge()
    assert rows_of(table) == [(1, "a", 10), (2, "B", 21), (3, None, 31)]
    merged = wider.mergeInto("harbour.db.t", f.expr("t.id = s.id")).withSchemaEvolution()
    merged.whenMatched().updateAll().merge()
    assert rows_of(table)[:2] == [(1, "a", 10, None), (2, "B", 21, "x")]


def test_what_cannot_be_merged_changes_nothing(front: SparkSession, table: Table) -> None:
    on = f.expr("t.id = s.id")
    with pytest.raises(NoSuchTableError, match=r"harbour\.db\.none does not exist"):
        given(front).mergeInto("harbour.db.none", on)
    merge = given(front).mergeInto
    with pytest.raises(InvalidOptionError, match="add a clause"):
        merge("harbour.db.t", on).merge()
    with pytest.raises(InvalidOptionError, match="no row of the DataFrame"):
        merge("harbour.db.t", on).whenNotMatchedBySource().updateAll()
    with pytest.raises(InvalidDataError, match="nme"):
        merge("harbour.db.t", on).whenMatched().update({"nme": f.lit("x")}).merge()
    with pytest.raises(InvalidFilterError, match="UNRESOLVED_COLUMN"):
        merge("harbour.db.t", f.expr("t.id = s.nope")).whenMatched().delete().merge()
    twice = given(front).union(given(front)).alias("s")
    with pytest.raises(IcebergError, match="id = "):
        twice.mergeInto("harbour.db.t", on).whenMatched().updateAll().merge()
    assert rows_of(table) == _ROWS


def test_tables_of_spark_and_of_sessions_that_are_not_registered_are_merged_by_spark(
    front: SparkSession, table: Table
) -> None:
    of_spark = type(given(front).mergeInto("spark_catalog.default.nothing", f.lit(True)))
    assert of_spark.__module__.startswith("pyspark.")
    df = given(front)
    unregister(front)
    with pytest.raises(PySparkException):
        df.mergeInto("harbour.db.t", f.lit(True)).whenMatched().delete().merge()
    assert rows_of(table) == _ROWS
