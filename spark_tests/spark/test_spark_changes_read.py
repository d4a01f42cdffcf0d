"""Changes between snapshots, read by Spark."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder
from pyspark.sql import SparkSession
from spark_reads import ids, load, message_of, planned
from spark_tables import PEOPLE

from icebergds import load_table, register
from icebergds.errors import InvalidOptionError

pytestmark = pytest.mark.spark

_FEED = {"read-change-feed": "true"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """Ids 0 to 3; 1 deleted by key and 4 added; 2 updated by copy-on-write; 5 appended."""
    table = TableBuilder(tmp_path_factory.mktemp("changes") / "t", PEOPLE)
    first = table.data_file([(i, "x", None) for i in range(4)])
    table.commit(first)
    added = table.data_file([(4, "x", None)])
    table.commit(added, table.equality_deletes(["id"], [(1,)]), operation="overwrite")
    new = table.data_file([(0, "x", None), (2, "new", 7), (3, "x", None)])
    table.commit(new, removed=[first], operation="overwrite")
    table.commit(table.data_file([(5, "x", None)]))
    return table


@pytest.mark.every_spark
def test_a_feed_has_the_columns_of_the_table_and_of_the_change(
    spark: SparkSession, built: TableBuilder
) -> None:
    feed = load(spark, built.location, **_FEED, **{"start-snapshot-id": "1001"})
    assert feed.columns == [
        *("id", "name", "at"),
        *("_change_type", "_change_ordinal", "_commit_snapshot_id"),
    ]
    assert [field.dataType.simpleString() for field in feed.schema.fields[3:]] == [
        *("string", "int", "bigint")
    ]
    found = feed.select("_change_ordinal", "_commit_snapshot_id", "_change_type", "id", "name")
    assert sorted(map(tuple, found.collect())) == [
        (0, 1002, "DELETE", 1, "x"),
        (0, 1002, "INSERT", 4, "x"),
        (1, 1003, "DELETE", 2, "x"),
        (1, 1003, "INSERT", 2, "new"),
        (2, 1004, "INSERT", 5, "x"),
    ]
    assert feed.where("_change_type = 'DELETE'").count() == 2


def test_options_make_updates_and_net_changes(spark: SparkSession, built: TableBuilder) -> None:
    def types(**options: Any) -> list[tuple[Any, ...]]:
        feed = load(spark, built.location, **_FEED, **options)
        return sorted(map(tuple, feed.select("id", "_change_type").collect()))

    updates = types(**{"start-snapshot-id": "1002", "identifier-columns": "id"})
    assert updates == [(2, "UPDATE_AFTER"), (2, "UPDATE_BEFORE"), (5, "INSERT")]
    net = types(**{"net-changes": "true"})
    assert net == [(i, "INSERT") for i in (0, 2, 3, 4, 5)]


def test_columns_and_a_schema_of_the_users_choose_columns(
    spark: SparkSession, built: TableBuilder
) -> None:
    chosen = load(
        spark, built.location, **_FEED, columns="_change_type, id", filter="id = 2"
    ).collect()
    assert sorted(map(tuple, chosen)) == [("DELETE", 2), ("INSERT", 2), ("INSERT", 2)]
    schema = "_commit_snapshot_id bigint, id bigint"
    reader = spark.read.format("icebergpy").options(**_FEED, **{"start-snapshot-id": "1003"})
    assert list(map(tuple, reader.schema(schema).load(str(built.location)).collect())) == [
        (1004, 5)
    ]


def test_appended_rows_are_read_after_a_snapshot(spark: SparkSession, built: TableBuilder) -> None:
    assert ids(load(spark, built.location, **{"start-snapshot-id": "1003"})) == [5]
    options = {"start-timestamp": "0", "skip-overwrite-snapshots": "true"}
    found = load(spark, built.location, **options)
    assert found.columns == ["id", "name", "at"]
    # 1 was deleted since; that 2 was rewritten is left out.
    assert ids(found) == [0, 2, 3, 5]
    message = message_of(lambda: load(spark, built.location, **{"start-timestamp": "0"}).collect())
    assert "is not an append" in message


def test_a_table_reads_its_changes_as_a_dataframe(spark: SparkSession, built: TableBuilder) -> None:
    table = load_table(str(built.location))
    feed = table.changes(1003, columns=["id", "_change_type"]).to_df(spark)
    assert list(map(tuple, feed.collect())) == [(5, "INSERT")]
    assert ids(table.appends(1003).to_df(spark)) == [5]


def test_native_scans_leave_changes_to_the_data_source(
    spark: SparkSession, built: TableBuilder
) -> None:
    register(spark, reader=False)
    try:
        table = load_table(str(built.location))
        assert ids(table.appends(1003).to_df(spark)) == [5]
        assert ids(table.changes(1002).to_df(spark)) == [2, 2, 5]
    finally:
        spark.conf.unset("spark.icebergpy.native-scans")
        spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


def test_what_is_wrong_with_a_range_shows_at_the_load(built: TableBuilder) -> None:
    path = {"path": str(built.location), **_FEED}
    with pytest.raises(InvalidOptionError, match="later than their end"):
        planned({**path, "start-snapshot-id": "1003", "end-snapshot-id": "1002"})
    with pytest.raises(InvalidOptionError, match="no identifier fields"):
        planned({**path, "compute-updates": "true"})


def test_a_load_stays_at_the_head_that_it_settled_on(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", PEOPLE)
    table.commit(table.data_file([(0, "x", None)]))
    reader = planned({"path": str(table.location), **_FEED})
    table.commit(table.data_file([(1, "x", None)]))
    partitions = reader.partitions()
    tasks = pickle.loads(pickle.dumps((reader, partitions)))
    rows = [batch.num_rows for part in tasks[1] for batch in tasks[0].read(part)]
    assert rows == [1]
