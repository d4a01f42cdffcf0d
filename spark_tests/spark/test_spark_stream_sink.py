"""The sink: `df.writeStream.format("icebergpy")` commits each micro-batch once."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from built.contents import files_besides_metadata
from pyspark.sql import SparkSession, functions as f
from pyspark.sql.streaming import StreamingQueryException
from spark_changes import ids_of, rows_of
from spark_feeds import Feed
from spark_writes import create

from icebergds.catalog.address import TableAddress
from icebergds.commit.operations import Change
from icebergds.commit.retry import commit_change
from icebergds.spec.updates.table_updates import RemoveProperties

pytestmark = pytest.mark.spark

QUERY_ID = "spark.sql.streaming.queryId"
EPOCH_ID = "spark.sql.streaming.epochId"


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    made = Feed(spark, tmp_path)
    create(spark.createDataFrame([], "id long, name string"), made.table)
    return made


def test_each_batch_is_one_append(feed: Feed) -> None:
    feed.add((1, "a"), (2, "b"))
    feed.add((3, "c"))
    query_id = feed.run()
    assert rows_of(feed.loaded()) == [(1, "a"), (2, "b"), (3, "c")]
    summaries = [snapshot.summary for snapshot in feed.loaded().snapshots()[-2:]]
    assert [(s[QUERY_ID], s[EPOCH_ID]) for s in summaries] == [(query_id, "0"), (query_id, "1")]


def test_query_goes_on_where_it_ended(feed: Feed) -> None:
    feed.add((1, "a"))
    first = feed.run()
    feed.add((2, "b"))
    assert feed.run() == first
    assert ids_of(feed.loaded()) == [1, 2]


def test_batch_that_is_replayed_is_committed_once(feed: Feed) -> None:
    feed.add((1, "a"))
    feed.add((2, "b"))
    feed.run()
    before = feed.loaded().metadata_location, files_besides_metadata(feed.table)
    feed.forget_last_commit()
    feed.run()
    assert (feed.loaded().metadata_location, files_besides_metadata(feed.table)) == before


def test_replayed_batch_is_known_when_its_snapshot_has_expired(feed: Feed) -> None:
    feed.add((1, "a"))
    feed.run()
    table = feed.loaded()
    table.append(table.scan().to_arrow().slice(0, 0))
    table.expire_snapshots(older_than=table.metadata.last_updated_ms, retain_last=1)
    assert len(table.snapshots()) == 1
    feed.forget_last_commit()
    feed.run()
    assert ids_of(feed.loaded()) == [1]


def test_expiry_warns_of_the_query_whose_only_mark_it_removes(
    feed: Feed, caplog: pytest.LogCaptureFixture
) -> None:
    """As of queries of Java Iceberg, which leave no mark in the properties."""
    feed.add((1, "a"))
    query_id = feed.run()
    table = feed.loaded()
    table.append(table.scan().to_arrow().slice(0, 0))
    marks = tuple(name for name in table.metadata.properties if query_id in name)
    commit_change(
        TableAddress(table.location()).operations(),
        lambda state: Change([], [RemoveProperties(marks)]),
        lambda state: not set(marks) & set(state.metadata.properties),
    )
    table.refresh()
    with caplog.at_level(logging.WARNING):
        table.expire_snapshots(older_than=table.metadata.last_updated_ms, retain_last=1)
    (message,) = caplog.messages
    assert f"the newest known version of '{query_id}' was 0, and is none" in message
    feed.add((2, "b"))
    with pytest.raises(StreamingQueryException, match="has no batch before 1 of the streaming"):
        feed.run()


def test_batches_of_another_query_are_other_batches(feed: Feed) -> None:
    feed.add((1, "a"))
    first = feed.run()
    shutil.rmtree(feed.checkpoint)
    assert feed.run() != first
    assert ids_of(feed.loaded()) == [1, 1]


def test_branch_has_markers_of_its_own(feed: Feed) -> None:
    feed.add((1, "a"))
    feed.run(branch="audit", create_branch="true")
    feed.forget_last_commit()
    feed.run(branch="audit", create_branch="true")
    assert ids_of(feed.loaded(), branch="audit") == [1]
    assert ids_of(feed.loaded()) == []


def test_complete_mode_replaces_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path)
    create(spark.createDataFrame([], "name string, rows long"), feed.table)
    feed.add((1, "a"), (2, "b"))
    feed.add((3, "a"))
    counts = feed.stream().groupBy("name").agg(f.count("*").alias("rows"))
    feed.run(counts, "complete")
    assert rows_of(feed.loaded()) == [("a", 2), ("b", 1)]


def test_table_is_created(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path)
    feed.add((1, "a"))
    feed.add((2, "b"))
    feed.run(create="true", partition_by="bucket(4, id)")
    assert ids_of(feed.loaded()) == [1, 2]
    assert len(feed.loaded().spec().fields) == 1


def test_rows_are_upserted(feed: Feed) -> None:
    feed.add((1, "a"), (2, "b"))
    feed.add((2, "B"), (3, "c"))
    feed.run(write_operation="upsert", upsert_keys="id")
    assert rows_of(feed.loaded()) == [(1, "a"), (2, "B"), (3, "c")]


def test_change_feed_is_applied(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path, "op string, id long, name string")
    create(spark.createDataFrame([], "id long, name string"), feed.table)
    feed.add(("+I", 1, "a"), ("+I", 2, "b"))
    feed.add(("-U", 1, "a"), ("+U", 1, "A"), ("-D", 2, "b"), ("+I", 3, "c"))
    delta = {"write_operation": "delta", "upsert_keys": "id", "row_kind_column": "op"}
    feed.run(**delta)
    assert rows_of(feed.loaded()) == [(1, "A"), (3, "c")]
    feed.forget_last_commit()
    feed.run(**delta)
    assert rows_of(feed.loaded()) == [(1, "A"), (3, "c")]


def test_keys_are_deleted(feed: Feed) -> None:
    feed.add((1, "a"), (2, "b"), (3, "c"))
    feed.run()
    shutil.rmtree(feed.checkpoint)
    feed.add((2, None))
    (feed.table.parent / "feed" / "00000.json").unlink()
    feed.run(write_operation="delete", upsert_keys="id")
    assert ids_of(feed.loaded()) == [1, 3]


def test_added_column_flows_in_after_a_restart(spark: SparkSession, feed: Feed) -> None:
    feed.add((1, "a"))
    feed.run()
    feed.add((2, "b"))
    wider = feed.stream().withColumn("extra", f.lit(7))
    feed.run(wider, merge_schema="true")
    assert sorted(map(tuple, feed.loaded().scan().to_df(spark).collect()), key=str) == [
        (1, "a", None),
        (2, "b", 7),
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"txn_app_id": "a", "txn_version": "1"}, "numbers its batches by itself"),
        ({"wap.id": "w"}, "staged snapshot"),
        ({"overwrite_mode": "dynamic"}, "complete"),
        ({"upsert_kys": "id"}, "upsert-keys"),
    ],
)
def test_options_that_no_query_can_have(feed: Feed, options: dict[str, str], said: str) -> None:
    feed.add((1, "a"))
    before = feed.loaded().metadata_location, files_besides_metadata(feed.table)
    with pytest.raises(StreamingQueryException, match=said):
        feed.run(**options)
    assert (feed.loaded().metadata_location, files_besides_metadata(feed.table)) == before


@pytest.mark.every_spark
def test_checkpoint_of_another_table_is_refused(spark: SparkSession, feed: Feed) -> None:
    feed.add((1, "a"))
    feed.run()
    feed.table = create(spark.createDataFrame([], "id long, name string"), feed.table.parent / "u")
    feed.add((2, "b"))
    with pytest.raises(StreamingQueryException, match="has no batch before 1 of the streaming"):
        feed.run()
    assert (ids_of(feed.loaded()), files_besides_metadata(feed.table)) == ([], set())
    feed.run(on_missing_batches="continue")
    assert ids_of(feed.loaded()) == [2]


@pytest.mark.parametrize("options", [{}, {"write_operation": "upsert", "upsert_keys": "id"}])
def test_batches_without_rows_commit_nothing(feed: Feed, options: dict[str, str]) -> None:
    """The first one leaves its mark, by which later ones know the table."""
    for number in range(3):
        feed.add((number, "a"))
    before = len(feed.loaded().snapshots())
    feed.run(feed.stream().where("id = 2"), **options)
    assert len(feed.loaded().snapshots()) == before + 1
    assert ids_of(feed.loaded()) == [2]


def test_first_batch_without_rows_makes_the_table(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path)
    feed.add((0, "a"))
    feed.add((1, "b"))
    feed.run(feed.stream().where("id = 1"), create="true")
    assert ids_of(feed.loaded()) == [1]


@pytest.mark.every_spark
def test_continuous_trigger_writes_nothing(spark: SparkSession, feed: Feed) -> None:
    """Spark ignores what commits raise there, and shows nothing of what tasks raise."""
    rate = spark.readStream.format("rate").load().selectExpr("value AS id", "'x' AS name")
    query = (
        rate.writeStream.format("icebergpy")
        .option("checkpointLocation", str(feed.checkpoint))
        .trigger(continuous="1 second")
        .start(str(feed.table))
    )
    try:
        query.awaitTermination(8)
    finally:
        query.stop()
    assert (ids_of(feed.loaded()), files_besides_metadata(feed.table)) == ([], set())
