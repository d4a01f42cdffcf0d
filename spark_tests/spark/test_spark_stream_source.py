"""The source: `spark.readStream.format("icebergpy")` follows a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from effort import some
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQueryException
from spark_changes import Row, expected, ids_of, people, person, rows_of, set_property
from spark_reads import load, message_of
from spark_writes import create

from icebergds import Table, load_table
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.stream_reader import IcebergStreamReader

pytestmark = pytest.mark.spark

LIMIT = "streaming-max-files-per-micro-batch"


def stream(spark: SparkSession, table: Table, **options: str) -> DataFrame:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return spark.readStream.format("icebergpy").options(**named).load(table.location())


class Copy:
    """A table that a query fills with what it reads."""

    def __init__(self, spark: SparkSession, directory: Path, df: DataFrame) -> None:
        self._checkpoint = str(directory / "checkpoint")
        self._location = create(spark.createDataFrame([], df.schema), directory / "copy")

    def run(self, df: DataFrame) -> list[int]:
        """Runs the query until it has read what is there; the rows of each batch."""
        query = (
            df.writeStream.format("icebergpy")
            .option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
            .start(str(self._location))
        )
        query.awaitTermination()
        return [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]]

    def rows(self) -> list[Row]:
        return rows_of(load_table(self._location))


def test_rows_that_are_there_and_those_that_follow(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    df = stream(spark, table)
    copy = Copy(spark, tmp_path, df)
    assert copy.run(df) == [12]
    assert copy.run(df) == []
    few = load(spark, table.location()).where("id < 2")
    table.append(few.selectExpr("id + 50 AS id", "part", "name"))
    assert copy.run(df) == [2]
    assert copy.rows() == expected([*map(person, range(12)), (50, 0, "n0"), (51, 1, "n1")])


def test_batches_are_limited(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    df = stream(spark, table, **{LIMIT: "2"})
    copy = Copy(spark, tmp_path, df)
    batches: list[int] = []
    # Before Spark 4.2 this trigger takes one batch.
    while found := copy.run(df):
        batches += found
    assert batches == [4, 4, 4]
    assert copy.rows() == expected([person(i) for i in range(12)])


def test_reading_goes_on_behind_a_first_batch_that_is_repeated(tmp_path: Path) -> None:
    """As Spark 4.1 calls the reader of a query that ended within its first batch."""
    location = people(tmp_path).location()

    def reader(limit: str) -> IcebergStreamReader:
        source = IcebergDataSource({"path": location, LIMIT: limit})
        return cast(IcebergStreamReader, source.streamReader(source.schema()))

    ended = reader("4")
    start, end = ended.initialOffset(), ended.latestOffset()
    restarted = reader("1")
    assert restarted.initialOffset() == start
    restarted.partitions(start, end)
    assert restarted.latestOffset() == reader("1").latestOffset(start=end)


def test_filter_and_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    df = stream(spark, table, filter="part = 1 AND id > 3", columns="name,id")
    assert df.columns == ["name", "id"]
    copy = Copy(spark, tmp_path, df)
    assert copy.run(df) == [3]
    assert copy.rows() == expected([(f"n{i}", i) for i in (4, 7, 10)])


@pytest.mark.every_spark
def test_change_feed_of_every_statement(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, 3, count=4)
    df = stream(spark, table, read_change_feed="true").select("id", "name", "_change_type")
    copy = Copy(spark, tmp_path, df)
    copy.run(df)
    table.delete("id + 0 = 1")
    table.update({"name": "'new'"}, "id = 2")
    table.upsert(spark.createDataFrame([(3, 0, "up")], "id long, part int, name string"), ["id"])
    copy.run(df)
    first = [(i, f"n{i}", "INSERT") for i in range(4)]
    later = [
        (1, "n1", "DELETE"),
        (2, "n2", "DELETE"),
        (2, "new", "INSERT"),
        (3, "n3", "DELETE"),
        (3, "up", "INSERT"),
    ]
    assert copy.rows() == expected([*first, *later])


@pytest.mark.every_spark
def test_commit_that_is_no_append_ends_the_query(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    df = stream(spark, table, stream_from="now")
    copy = Copy(spark, tmp_path, df)
    copy.run(df)
    table.delete("part = 1")
    with pytest.raises(StreamingQueryException, match="read-change-feed=true"):
        copy.run(df)
    skipping = stream(spark, table, stream_from="now", streaming_skip_delete_snapshots="true")
    assert copy.run(skipping) == []


@pytest.mark.every_spark
def test_query_whose_snapshot_has_expired_says_so_and_may_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path, count=2)
    df = stream(spark, table, stream_from="now")
    copy = Copy(spark, tmp_path, df)
    copy.run(df)
    read = table.current_snapshot()
    more = load(spark, table.location()).selectExpr("id + 10 AS id", "part", "name").toArrow()
    for _ in range(2):
        table.append(more)
    table.expire_snapshots(older_than=table.metadata.last_updated_ms, retain_last=1)
    (known,) = table.snapshots()
    assert read is not None
    said = f"{read.snapshot_id}.* has expired; .*{known.snapshot_id}.*stream-on-expired"
    with pytest.raises(StreamingQueryException, match=said):
        copy.run(df)
    going_on = stream(spark, table, stream_from="now", stream_on_expired="latest")
    assert copy.run(going_on) == []
    table.append(more)
    assert copy.run(going_on) == [2]


@pytest.mark.every_spark
def test_added_columns_come_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    df = stream(spark, table)
    copy = Copy(spark, tmp_path, df)
    copy.run(df)
    wider = spark.createDataFrame([(7, 1, "n7", 5)], "id long, part int, name string, extra int")
    table.append(wider, options={"merge-schema": "true"})
    copy.run(df)
    assert (7, 1, "n7") in copy.rows()
    assert stream(spark, table).columns == ["id", "part", "name", "extra"]


def test_query_without_a_limit_follows_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    copy = create(spark.createDataFrame([], load(spark, table.location()).schema), tmp_path / "c")
    query = (
        stream(spark, table)
        .writeStream.format("icebergpy")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(copy))
    )
    try:
        query.processAllAvailable()
        table.append(load(spark, table.location()).selectExpr("id + 10 AS id", "part", "name"))
        query.processAllAvailable()
    finally:
        query.stop()
    assert ids_of(load_table(copy)) == [0, 1, 10, 11]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pushdown": "true"}, "readStream does not support"),
        ({"stream_frm": "now"}, "stream-from"),
        ({"stream_from": "then"}, "expected one of snapshot, now, earliest"),
    ],
)
def test_options_that_no_stream_can_have(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    table = people(tmp_path, count=2)

    def run() -> None:
        query = stream(spark, table, **options).writeStream.format("noop").start()
        query.processAllAvailable()

    assert said in message_of(run)


@pytest.mark.parametrize("value", some(["2024-01-01", "1.7e12", ""], 2))
def test_malformed_options_are_refused_by_the_load(
    spark: SparkSession, tmp_path: Path, value: str
) -> None:
    table = people(tmp_path, count=2)
    message = message_of(lambda: stream(spark, table, stream_from_timestamp=value))
    assert "option 'stream-from-timestamp'" in message
    assert "2026-01-31T12:00:00Z" in message


def test_options_of_streams_are_refused_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    df = load(spark, table.location(), **{"stream-from": "now"})
    assert "needs readStream" in message_of(df.collect)


@pytest.mark.every_spark
def test_changes_of_properties_are_not_noticed(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=4)
    df = stream(spark, table)
    copy = Copy(spark, tmp_path, df)
    copy.run(df)
    set_property(table, "comment", "no snapshot")
    assert copy.run(df) == []
