"""Readers and writers that name a table of our catalogs, and no format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds import Table, load_catalog, register
from icebergds.errors import InvalidOptionError

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
    assert ids(front.table("`t`")) == ids(front.read.table("`t`")) == [0, 1, 2]


def test_use_names_what_writers_and_merges_leave_out(front: SparkSession, table: Table) -> None:
    front.sql("USE quay.db")
    front.range(5, 6).writeTo("new").create()
    front.range(6, 7).writeTo("`new`").append()
    front.range(7, 8).writeTo("db.new").append()
    assert ids(front.read.table("quay.db.new")) == [5, 6, 7]
    front.range(8, 9).writeTo("new").overwrite(f.col("id") < 7)
    front.range(2, 4).mergeInto(
        "t", f.expr("t.id = source.id")
    ).whenNotMatched().insertAll().merge()
    assert ids(table.refresh().scan().to_df(front)) == [0, 1, 2, 3]
    front.range(2, 4).mergeInto("db.t", f.expr("t.id = source.id")).whenMatched().delete().merge()
    assert ids(front.read.table("quay.db.t")) == [0, 1]
    assert ids(front.read.table("quay.db.new")) == [7, 8]
    front.sql("USE spark_catalog.default")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        front.range(1).writeTo("t").append()
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        front.range(1).mergeInto("t", f.expr("t.id = 1")).whenMatched().delete().merge()


def test_use_names_what_streams_leave_out(
    front: SparkSession, table: Table, tmp_path: Path
) -> None:
    front.sql("USE quay.db")
    for source, target in (("t", "copy"), ("db.t", "db.other")):
        writer = front.readStream.table(source).writeStream.trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / target)).toTable(
            target
        ).awaitTermination()
    assert ids(front.read.table("quay.db.copy")) == [0, 1, 2]
    assert ids(front.read.table("quay.db.other")) == [0, 1, 2]
    front.sql("USE spark_catalog.default")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        front.readStream.table("t")


def test_a_temporary_view_hides_a_table_but_from_what_creates(
    front: SparkSession, table: Table, tmp_path: Path
) -> None:
    front.sql("USE quay.db")
    front.range(9, 10).createOrReplaceTempView("t")
    front.range(9, 10).createOrReplaceTempView("new")
    with pytest.raises(InvalidOptionError, match=r"t is a temporary view, .* write to quay\.db\.t"):
        front.range(1).writeTo("t").append()
    with pytest.raises(PySparkException):
        front.range(1).mergeInto("t", f.expr("t.id = 1")).whenMatched().delete().merge()
    events = front.readStream.table("quay.db.t").writeStream
    with pytest.raises(AnalysisException, match="new"):
        events.option("checkpointLocation", str(tmp_path / "new")).toTable("new")
    front.range(5, 6).writeTo("new").create()
    front.range(6, 7).write.mode("append").saveAsTable("new")
    assert ids(front.read.table("quay.db.new")) == [5, 6]
    front.range(7, 8).writeTo("t").createOrReplace()
    assert ids(front.read.table("quay.db.t")) == [7]
    assert ids(front.read.table("t")) == [9]
    front.sql("USE spark_catalog.default")


def test_another_format_and_names_of_spark_stay_sparks(front: SparkSession, table: Table) -> None:
    front.range(3).createOrReplaceTempView("t")
    assert ids(front.read.table("t")) == [0, 1, 2]
    with pytest.raises(AnalysisException):
        front.range(1).write.format("parquet").saveAsTable("quay.db.parquet")
    front.sql("USE quay.db")
    front.range(9, 10).createOrReplaceTempView("t")
    assert ids(front.read.table("t")) == [9]
    front.sql("USE spark_catalog.default")
