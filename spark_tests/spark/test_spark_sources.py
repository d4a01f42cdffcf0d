"""When registered sessions of classic Spark get the data source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceRegistration

from icebergds import Table, load_catalog, register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """`lake.db.t`, without rows."""
    return load_catalog("lake", warehouse=str(tmp_path / "lake")).create_table("db.t", "id bigint")


@pytest.fixture
def session(spark: SparkSession, table: Table, tmp_path: Path) -> Iterator[SparkSession]:
    """Knows the catalog; the table has three rows."""
    own = spark.newSession()
    own.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path / "lake"))
    register(own)
    own.range(3).writeTo("lake.db.t").append()
    yield own
    register(own)


@pytest.fixture
def registered(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[type[DataSource]]:
    """The sources that Spark gets."""
    given: list[type[DataSource]] = []
    register_in_spark = DataSourceRegistration.register

    def noted(self: Any, source: type[DataSource]) -> None:
        given.append(source)
        register_in_spark(self, source)

    monkeypatch.setattr(DataSourceRegistration, "register", noted)
    return given


def test_what_spark_reads_itself_needs_no_source(
    session: SparkSession, table: Table, registered: list[type[DataSource]]
) -> None:
    register(session)
    assert session.read.format("icebergpy").load("lake.db.t").where("id > 0").count() == 2
    session.range(3, 5).write.format("icebergpy").mode("append").save("lake.db.t")
    assert table.refresh().delete("id = 0").deleted == 1
    for kind in ("snapshots", "files", "partitions", "all_files"):
        assert session.read.format("icebergpy").load(f"lake.db.t.{kind}").count()
    assert registered == []


@pytest.mark.parametrize(
    "read",
    [
        lambda spark: spark.read.format("icebergpy").option("pushdown", "true").load("lake.db.t"),
        lambda spark: (
            spark.read.format("icebergpy").schema("content int").load("lake.db.t.all_files")
        ),
        lambda spark: spark.sql("SELECT 1 AS icebergpy"),
        lambda spark: spark.readStream.format("icebergpy").load("lake.db.t"),
        lambda spark: spark.readStream.load("lake.db.t", format="icebergpy"),
        lambda spark: spark.readStream.table("lake.db.t"),
    ],
)
def test_what_asks_spark_for_the_format_registers_the_source_of_the_session(
    session: SparkSession,
    registered: list[type[DataSource]],
    read: Callable[[SparkSession], DataFrame],
) -> None:
    register(session)
    assert registered == []
    assert read(session).columns
    assert read(session).columns
    [source] = registered
    assert list(source.session_catalogs) == ["lake"]  # type: ignore[attr-defined]


def test_a_session_that_is_registered_again_gets_its_new_catalogs(
    session: SparkSession, tmp_path: Path
) -> None:
    def columns(name: str) -> list[str]:
        return session.readStream.format("icebergpy").load(name).columns

    assert columns("lake.db.t") == ["id"]
    session.conf.set("spark.icebergpy.catalog.other.warehouse", str(tmp_path / "lake"))
    register(session)
    assert columns("other.db.t") == ["id"]


def test_sql_of_any_object_of_the_session_knows_its_catalogs(session: SparkSession) -> None:
    same = SparkSession(session.sparkContext, session._jsparkSession)
    same.sql("CREATE TEMPORARY VIEW v USING icebergpy OPTIONS (path 'lake.db.t')")
    assert session.table("v").count() == 3


def test_the_session_of_a_batch_gets_the_source_too(
    session: SparkSession, table: Table, tmp_path: Path
) -> None:
    def copy(rows: DataFrame, _: int) -> None:
        load = rows.sparkSession.read.format("icebergpy")
        assert load.load("lake.db.t.snapshots").count() == 1
        rows.write.format("icebergpy").mode("append").save("lake.db.t")

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 7}\n')
    # The query copies the session before it has the source.
    query = session.readStream.schema("id bigint").json(str(tmp_path / "in")).writeStream
    query = query.foreachBatch(copy).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert table.refresh().scan().count() == 4
