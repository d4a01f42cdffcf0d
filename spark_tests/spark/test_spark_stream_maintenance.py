"""A streaming query with `maintain-every` keeps its table small, and writes no batch twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.contents import live_files
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryException
from spark_changes import ids_of, rows_of
from spark_feeds import Feed

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_CREATED = {
    "create": "true",
    "table_property.history.expire.max-snapshot-age-ms": "-1000",
    "format_version": "3",
}


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path)


def test_a_query_compacts_and_expires_and_writes_no_batch_twice(feed: Feed) -> None:
    for number in range(6):
        feed.add((number, "a"))
    query = feed.run(**_CREATED, maintain_every="6")
    assert len(live_files(feed.table)) == 1
    # Not even the snapshot of the last batch is left.
    summaries = [snapshot.summary for snapshot in feed.loaded().snapshots()]
    assert not any("spark.sql.streaming.queryId" in summary for summary in summaries)
    before = feed.loaded().metadata_location
    feed.forget_last_commit()
    assert feed.run(maintain_every="6") == query
    assert feed.loaded().metadata_location == before
    feed.add((6, "b"))
    feed.run(maintain_every="6")
    assert ids_of(feed.loaded()) == list(range(7))


def test_batches_of_upserts_are_maintained_across_restarts(feed: Feed) -> None:
    upserts = {"write_operation": "upsert", "upsert_keys": "id", "maintain_every": "4"}
    feed.add((0, "first"))
    by_key = {"table_property.write.upsert.mode": "equality-deletes"}
    feed.run(create="true", format_version="3", **by_key)
    for number in range(1, 8):
        feed.add((number % 2, f"v{number}"))
        feed.run(**upserts)
    assert rows_of(feed.loaded()) == [(0, "v6"), (1, "v7")]
    deletes = feed.loaded().health().deletes
    assert (deletes.equality_delete_files, len(live_files(feed.table))) == (0, 1)


def test_batches_of_upserts_leave_no_keys_to_compare(feed: Feed) -> None:
    upserts = {"write_operation": "upsert", "upsert_keys": "id"}
    feed.add((0, "first"))
    feed.run(create="true", format_version="3")
    for number in range(1, 6):
        feed.add((number % 2, f"v{number}"))
        feed.run(**upserts)
    assert rows_of(feed.loaded()) == [(0, "v4"), (1, "v5")]
    deletes = feed.loaded().health().deletes
    assert (deletes.equality_delete_files, deletes.deletion_vectors) == (0, 4)
    before = feed.loaded().metadata_location
    feed.forget_last_commit()
    feed.run(**upserts)
    assert feed.loaded().metadata_location == before


def test_batches_of_upserts_beyond_the_limit_are_left_to_maintenance(feed: Feed) -> None:
    upserts = {"write_operation": "upsert", "upsert_keys": "id", "maintain_every": "6"}
    for name in "ab":
        feed.add((0, name), (1, name), (2, name))
        feed.run(**upserts if feed.table.exists() else {"create": "true", "format_version": "3"})
    for number in range(4):
        before = feed.loaded().health().deletes
        feed.add((number % 2, f"v{number}"))
        limit = {"write.upsert.resolve-limit-bytes": "1"} if number in (0, 2) else {}
        feed.run(**upserts, **limit)
        if number == 2:
            assert (before.equality_delete_files, before.deletion_vectors) == (1, 2)
    assert rows_of(feed.loaded()) == [(0, "v2"), (1, "v3"), (2, "b")]
    deletes = feed.loaded().health().deletes
    assert (before.equality_delete_files, deletes.equality_delete_files) == (2, 0)
    assert len(live_files(feed.table)) == 1


def test_maintenance_that_fails_does_not_fail_the_query(feed: Feed) -> None:
    for number in range(5):
        feed.add((number, "a"))
    feed.run(create="true")
    damaged = Path(live_files(feed.table)[0].file_path)
    content = damaged.read_bytes()
    damaged.write_bytes(b"damaged")
    feed.add((5, "a"))
    feed.run(maintain_every="1")
    damaged.write_bytes(content)
    assert ids_of(feed.loaded()) == list(range(6))
    assert len(live_files(feed.table)) == 6


def test_a_wrong_option_ends_the_query_before_a_row_is_written(feed: Feed) -> None:
    feed.add((1, "a"))
    with pytest.raises(StreamingQueryException, match="maintain-every"):
        feed.run(create="true", maintain_every="0")
    assert not feed.table.exists()
