"""Readers and writers that name a table of our catalogs, and no format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from icebergds import Table, load_catalog, register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture
def table(front: SparkSession, tmp_path: Path) -> Table:
    """The table `quay.db.t` with the ids 0 to 2, in a catalog with views."""
    warehouse = str(tmp_path / "quay")
    properties = {"warehouse": warehouse, "uri": f"sqlite:///{tmp_path}/quay.db"}
    for name, value in properties.items():
        front.conf.set(f"spark.icebergpy.catalog.quay.{name}", value)
    register(front, sql=True)
    catalog = load_catalog("quay", **properties)
    catalog.create_namespace("db")
    created = catalog.create_table("db.t", "id bigint")
    created.append(front.range(2).coalesce(1))
    created.append(front.range(2, 3).coalesce(1))
    return created


def ids(df: DataFrame) -> list[Any]:
    return sorted(id for (id,) in df.collect())


def test_a_table_is_read_by_its_name(front: SparkSession, table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    assert ids(front.read.table("quay.db.t")) == [0, 1, 2]
    assert ids(front.read.table(f"quay.db.t@v{first}")) == [0, 1]
    assert ids(front.read.option("snapshot-id", first).table("quay.db.t")) == [0, 1]
    assert front.read.table("quay.db.t.snapshots").count() == 2
    front.sql("CREATE VIEW quay.db.v AS SELECT id + 1 AS id FROM quay.db.t")
    assert ids(front.read.table("quay.db.v")) == [1, 2, 3]


def test_a_table_is_read_by_its_name_where_sql_is_sparks(front: SparkSession, table: Table) -> None:
    register(front, sql=False)
    assert ids(front.read.table("quay.db.t")) == [0, 1, 2]


def test_a_table_is_created_and_written_by_its_name(front: SparkSession, table: Table) -> None:
    front.range(5, 7).write.saveAsTable("quay.db.new")
    front.range(7, 8).write.mode("append").saveAsTable("quay.db.new")
    front.range(8, 9).write.insertInto("quay.db.new")
    assert ids(front.read.table("quay.db.new")) == [5, 6, 7, 8]
    front.range(9, 10).write.mode("overwrite").saveAsTable("quay.db.new")
    assert ids(front.read.table("quay.db.new")) == [9]


def test_use_names_what_a_name_leaves_out(front: SparkSession, table: Table) -> None:
    front.sql("USE quay.db")
    assert ids(front.read.table("t")) == [0, 1, 2]
    assert ids(front.read.format("icebergpy").table("t")) == [0, 1, 2]
    front.range(5, 6).write.format("icebergpy").saveAsTable("other")
    front.range(6, 7).write.insertInto("other")
    front.range(7, 8).write.mode("append").saveAsTable("db.other")
    with_option = front.read.format("icebergpy").option("catalog", "quay")
    assert ids(with_option.table("db.other")) == [5, 6, 7]


def test_another_format_and_names_of_spark_stay_sparks(front: SparkSession, table: Table) -> None:
    front.range(3).createOrReplaceTempView("t")
    assert ids(front.read.table("t")) == [0, 1, 2]
    with pytest.raises(AnalysisException):
        front.range(1).write.format("parquet").saveAsTable("quay.db.parquet")
    front.sql("USE quay.db")
    front.range(9, 10).createOrReplaceTempView("t")
    assert ids(front.read.table("t")) == [9]
    front.sql("USE spark_catalog.default")
