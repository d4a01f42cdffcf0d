"""Streams of tables by name, in registered sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from icebergds import Catalog, load_catalog, register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A catalog with the table `db.events`."""
    lake = load_catalog("lake", warehouse=str(tmp_path / "lake"))
    lake.create_table("db.events", "id bigint, day date")
    return lake


@pytest.fixture
def session(spark: SparkSession, catalog: Catalog, tmp_path: Path) -> Iterator[SparkSession]:
    """Knows the catalog; the table has one row."""
    own = spark.newSession()
    own.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path / "lake"))
    register(own)
    own.sql("SELECT 1L AS id, DATE'2026-03-01' AS day").writeTo("lake.db.events").append()
    yield own
    register(own)


def _run(writer: DataStreamWriter, start: Callable[[DataStreamWriter], Any], path: Path) -> None:
    given = writer.option("checkpointLocation", str(path / "checkpoint"))
    start(given.trigger(availableNow=True)).awaitTermination()


@pytest.mark.parametrize(
    "start",
    [
        lambda writer: writer.toTable("lake.db.copy"),
        lambda writer: writer.toTable("lake.db.copy", format="icebergpy", outputMode="append"),
        lambda writer: writer.format("icebergpy").option("create", "true").start("lake.db.copy"),
    ],
)
def test_a_stream_is_read_and_written_by_name(
    session: SparkSession,
    catalog: Catalog,
    tmp_path: Path,
    start: Callable[[DataStreamWriter], Any],
) -> None:
    _run(session.readStream.table("lake.db.events").writeStream, start, tmp_path)
    assert catalog.load_table("db.copy").scan().to_arrow()["id"].to_pylist() == [1]


def test_a_load_of_a_stream_takes_a_name(
    session: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    events = session.readStream.format("icebergpy").load("lake.db.events")
    _run(events.writeStream, lambda writer: writer.toTable("lake.db.copy"), tmp_path)
    assert catalog.load_table("db.copy").scan().count() == 1


@pytest.mark.parametrize(
    "start",
    [
        lambda writer: writer.toTable("lake.db.copy", partitionBy="day"),
        lambda writer: writer.toTable("lake.db.copy", partitionBy=["day"]),
        lambda writer: writer.partitionBy("day").toTable("lake.db.copy"),
        lambda writer: writer.toTable("lake.db.copy", **{"partition-by": "day"}),
        lambda writer: writer.format("icebergpy").start(
            "lake.db.copy", partitionBy="day", create="true"
        ),
        lambda writer: (
            writer.format("icebergpy")
            .partitionBy("day")
            .option("create", "true")
            .start("lake.db.copy")
        ),
    ],
)
def test_a_table_that_a_stream_creates_is_partitioned_as_asked(
    session: SparkSession,
    catalog: Catalog,
    tmp_path: Path,
    start: Callable[[DataStreamWriter], Any],
) -> None:
    _run(session.readStream.table("lake.db.events").writeStream, start, tmp_path)
    assert [field.name for field in catalog.load_table("db.copy").spec().fields] == ["day"]


def test_a_table_that_is_there_keeps_its_partitions(
    session: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    catalog.create_table("db.copy", "id bigint, day date")
    events = session.readStream.table("lake.db.events").writeStream.partitionBy("day")
    _run(events, lambda writer: writer.format("icebergpy").start("lake.db.copy"), tmp_path)
    assert catalog.load_table("db.copy").spec().is_unpartitioned
    assert catalog.load_table("db.copy").scan().count() == 1


def test_a_stream_is_started_in_any_thread(
    session: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    writer = session.readStream.table("lake.db.events").writeStream
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_run, writer, lambda w: w.toTable("lake.db.copy"), tmp_path).result()
    assert catalog.load_table("db.copy").scan().count() == 1


def test_a_name_is_no_directory(
    session: SparkSession, catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lake.db.copy").mkdir()
    events = session.readStream.table("lake.db.events")
    _run(events.writeStream, lambda writer: writer.toTable("lake.db.copy"), tmp_path)
    assert catalog.load_table("db.copy").scan().count() == 1
    assert list(Path("lake.db.copy").iterdir()) == []


def test_no_table_is_made_within_another(
    session: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    events = session.readStream.table("lake.db.events").writeStream
    with pytest.raises(StreamingQueryException, match="to write to a branch of that table, use"):
        _run(events, lambda writer: writer.toTable("lake.db.events.other"), tmp_path)
    assert catalog.list_namespaces("db") == []


def test_a_name_may_end_with_a_branch(
    session: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    events = session.readStream.table("lake.db.events").writeStream
    with pytest.raises(StreamingQueryException, match=r"lake\.db\.events has no branch 'b'"):
        _run(events, lambda writer: writer.toTable("lake.db.events.branch_b"), tmp_path / "first")
    table = catalog.load_table("db.events")
    table.manage_snapshots().create_branch("b").commit()
    _run(events, lambda writer: writer.toTable("lake.db.events.branch_b"), tmp_path / "second")
    assert table.refresh().scan().count() == 1
    assert table.scan(branch="b").count() == 2


def test_names_of_other_catalogs_are_left_to_spark(session: SparkSession, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE streamed (id BIGINT) USING parquet LOCATION '{tmp_path / 'p'}'")
    try:
        events = session.readStream.table("lake.db.events").select("id")
        _run(events.writeStream, lambda writer: writer.toTable("streamed"), tmp_path)
        assert session.readStream.table("streamed").isStreaming
        assert [row.id for row in session.table("streamed").collect()] == [1]
    finally:
        session.sql("DROP TABLE streamed")


@pytest.mark.parametrize(
    ("options", "path", "message"),
    [
        ({"catalog": "lke"}, "db.events", r"catalog lke is not configured .*did you mean lake\?"),
        ({}, "lke.db.events", r"no catalog is called 'lke'; did you mean 'lake'\?"),
        ({}, "lake.db.evnts", r"did you mean db.events\?"),
    ],
)
def test_errors_name_the_nearest(
    session: SparkSession, options: dict[str, str], path: str, message: str
) -> None:
    with pytest.raises(AnalysisException, match=message):
        session.readStream.format("icebergpy").options(**options).load(path)


def test_a_session_whose_reader_and_writer_are_spark_s_has_its_names(
    session: SparkSession, tmp_path: Path
) -> None:
    register(session, reader=False, writer=False)
    with pytest.raises(AnalysisException):
        session.readStream.table("lake.db.events")
    events = session.readStream.format("icebergpy").load("lake.db.events")
    with pytest.raises(AnalysisException):
        _run(events.writeStream, lambda writer: writer.toTable("lake.db.copy"), tmp_path)
