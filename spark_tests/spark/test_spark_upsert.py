"""Changes by key: `Table.upsert`, `delta`, `delete_keys`, and saves with `write-operation`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from built.contents import live_files
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as f
from spark_changes import (
    arrow,
    expected,
    head,
    ids_of,
    leaves_as_it_was,
    people,
    person,
    rows_of,
)
from spark_reads import ids, load
from spark_writes import planned_write, save

from icebergds import Schema
from icebergds.errors import (
    InvalidDataError,
    InvalidOptionError,
    UnsupportedFeatureError,
)
from icebergds.operations.write.row_counts import RowCounts
from icebergds.spec.manifest import FileContent
from icebergds.spec.types import DOUBLE, LONG, STRING, MapType, NestedField

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

VERSIONS = pytest.mark.parametrize("version", [2, 3])


def changes(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id long, part int, name string")


@VERSIONS
def test_upsert_replaces_rows_of_its_keys(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    table = people(tmp_path, version)
    source = changes(spark, (1, 1, "a"), (8, 0, "moved"), (90, 0, "new"))
    assert table.upsert(source, "id") == RowCounts(upserted=3)
    assert table.upsert(changes(spark, (90, 0, "newer")), ["id"]) == RowCounts(upserted=1)
    others = [person(i) for i in range(12) if i not in (1, 8)]
    assert rows_of(table) == expected([*others, (1, 1, "a"), (8, 0, "moved"), (90, 0, "newer")])
    assert len(ids(load(spark, table.location()))) == 13


@VERSIONS
def test_greatest_value_of_a_column_wins(spark: SparkSession, tmp_path: Path, version: int) -> None:
    """It need be no column of the table; null comes before every value."""
    table = people(tmp_path, version, count=3)
    rows = [(1, 1, "b", 7), (1, 1, "c", None), (1, 2, "last", 9), (1, 1, "a", 8), (2, 2, "x", None)]
    source = spark.createDataFrame(rows, "id long, part int, name string, at long").repartition(3)
    assert table.upsert(source, "id", order_by="at") == RowCounts(upserted=2)
    assert rows_of(table) == [(0, 0, "n0"), (1, 2, "last"), (2, 2, "x")]


def test_rows_of_one_key_are_an_error_without_an_order(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    source = changes(spark, (1, 1, "a"), (2, 2, "b"), (1, 1, "c")).repartition(3)
    message = leaves_as_it_was(table, lambda: table.upsert(source, "id"), InvalidDataError)
    assert "different keys (id)" in message


def test_rows_of_one_key_meet_though_the_source_is_partitioned_by_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path)
    keys = spark.range(0, 12, 1, 2)
    versions = spark.range(0, 120, 1, 2).selectExpr("id % 12 AS id", "id AS at")
    rows = versions.join(keys.hint("shuffle_merge"), "id").selectExpr(
        "id", "CAST(id AS int) AS part", "CAST(at AS string) AS name", "at"
    )
    assert table.upsert(rows, ["id"], order_by="at") == RowCounts(upserted=12)
    names = {row["id"]: row["name"] for row in table.scan().to_arrow().to_pylist()}
    assert names == {i: str(108 + i) for i in range(12)}
    with pytest.raises(InvalidDataError, match="different keys"):
        table.upsert(rows.drop("at"), ["id"])


def test_null_is_a_key(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=1)
    for name in ("first", "second"):
        table.upsert(changes(spark, (None, 5, name)), "id")
    assert rows_of(table) == [(0, 0, "n0"), (None, 5, "second")]


@VERSIONS
def test_stream_of_changes(spark: SparkSession, tmp_path: Path, version: int) -> None:
    """In the order of the frame: of the rows of one key, the last one counts."""
    table = people(tmp_path, version)
    stream = [
        ("+I", 50, 0, "a"),
        ("-U", 50, 0, "a"),
        ("+U", 50, 1, "b"),
        ("insert", 51, 0, "c"),
        ("delete", 51, 0, "c"),
        ("-D", 3, 0, "n3"),
        ("update_before", 4, 1, "n4"),
        ("UPDATE_AFTER", 4, 2, "moved"),
    ]
    source = spark.createDataFrame(stream, "kind string, id long, part int, name string")
    counts = table.delta(source, "kind", "id")
    others = [person(i) for i in range(12) if i not in (3, 4)]
    assert rows_of(table) == expected([*others, (4, 2, "moved"), (50, 1, "b")])
    # Of keys: whether the table had 50, 51 and 3, nobody has looked.
    assert (counts.inserted, counts.upserted, counts.deleted) == (0, 2, 2)


def test_stream_of_changes_by_a_column(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    stream = [("+U", 1, 1, f"v{i}", i) for i in range(20)] + [("-D", 0, 0, "", 3)]
    schema = "kind string, id long, part int, name string, at int"
    source = spark.createDataFrame(stream, schema).repartition(4)
    table.delta(source, "kind", ["id"], order_by="at")
    assert rows_of(table) == [(1, 1, "v19")]


def test_keys_are_deleted(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    assert table.delete_keys(spark.range(3, 5), "id") == RowCounts(deleted=2)
    assert ids_of(table) == [0, 1, 2, 5, 6, 7, 8, 9, 10, 11]
    assert head(table).operation == "delete"


def test_nothing_is_committed_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    before = table.metadata_location
    assert table.upsert(changes(spark).where("false"), "id") == RowCounts()
    assert table.refresh().metadata_location == before


def test_rows_of_arrow(tmp_path: Path) -> None:
    """Without Spark."""
    table = people(tmp_path)
    assert table.upsert(arrow([(1, 1, "a"), (70, 1, "b")]), "id") == RowCounts(upserted=2)
    assert table.delete_keys(arrow([(0, 0, "x")]).select(["id"]), "id") == RowCounts(deleted=1)
    with pytest.raises(InvalidDataError, match="different keys"):
        table.upsert(arrow([(1, 1, "a"), (1, 1, "b")]), "id")
    assert ids_of(table) == [*range(1, 12), 70]


# Where deletes by key go.


def test_deletes_stay_in_the_partition_of_their_key(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    table.upsert(changes(spark, (1, 1, "a"), (2, 2, "b")), "id, part")
    deletes = [f for f in live_files(Path(table.location())) if f.content is not FileContent.DATA]
    assert sorted((f.content, f.partition) for f in deletes) == [
        (FileContent.EQUALITY_DELETES, (1,)),
        (FileContent.EQUALITY_DELETES, (2,)),
    ]
    assert len(table.metadata.partition_specs) == 1


def test_deletes_are_global_where_keys_do_not_tell_the_partition(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By an unpartitioned spec, which the table is given once, and which stays unused by data."""
    table = people(tmp_path)
    for _ in range(2):
        table.upsert(changes(spark, (1, 2, "a")), "id")
    deletes = [f for f in live_files(Path(table.location())) if f.content is not FileContent.DATA]
    assert [f.partition for f in deletes] == [(), ()]
    assert [len(spec.fields) for spec in table.metadata.partition_specs] == [1, 0]
    assert table.spec().fields
    assert rows_of(table)[1] == (1, 2, "a")


# Rows that are deleted by position at the commit.

_BY_POSITION = {"write.upsert.mode": "positions"}


@VERSIONS
@pytest.mark.parametrize("in_a_job", [False, True])
def test_rows_are_found_at_the_commit(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    in_a_job: bool,
) -> None:
    if in_a_job:
        monkeypatch.setattr("icebergds.operations.write.key_resolver._BYTES_IN_PROCESS", 0)
    table = people(tmp_path, version, properties=_BY_POSITION)
    source = changes(spark, (1, 1, "a"), (8, 0, "moved"), (90, 0, "new"))
    assert table.upsert(source, "id") == RowCounts(inserted=1, updated=2)
    assert table.upsert(changes(spark, (90, 0, "newer")), ["id"]) == RowCounts(updated=1)
    assert table.delete_keys(spark.range(3, 5), "id") == RowCounts(deleted=2)
    others = [person(i) for i in range(12) if i not in (1, 3, 4, 8)]
    assert rows_of(table) == expected([*others, (1, 1, "a"), (8, 0, "moved"), (90, 0, "newer")])
    deletes = [f for f in live_files(Path(table.location())) if f.content is not FileContent.DATA]
    assert {f.content for f in deletes} == {FileContent.POSITION_DELETES}
    assert len(ids(load(spark, table.location()))) == 11
    # Not even the unpartitioned spec that equality deletes would have.
    assert len(table.specs()) == 1


def test_rows_keep_their_ids(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, 3, properties=_BY_POSITION)

    def row_ids() -> dict[int, int]:
        found = table.refresh().scan(columns="id,_row_id").to_arrow().to_pylist()
        return {row["id"]: row["_row_id"] for row in found}

    before = row_ids()
    source = changes(spark, (1, 2, "a"), (8, 0, "b"), (90, 0, "new")).repartition(3)
    assert table.upsert(source, "id") == RowCounts(inserted=1, updated=2)
    after = row_ids()
    assert {key: after[key] for key in before} == before
    assert len(set(after.values())) == 13


def test_rows_that_are_others_each_time_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, 3, properties=_BY_POSITION)
    different = f.udf(lambda _: time.time_ns(), "long").asNondeterministic()
    source = spark.range(3).select((different("id") + f.col("id")).alias("id"))
    message = leaves_as_it_was(table, lambda: table.upsert(source, "id"), InvalidDataError)
    assert "cache them first" in message


def test_a_changelog_deletes_by_position(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, 3, count=4, properties=_BY_POSITION)
    stream = [("+U", 1, 1, f"v{i}", i) for i in range(20)] + [("-D", 0, 0, "", 3)]
    schema = "kind string, id long, part int, name string, at int"
    source = spark.createDataFrame(stream, schema).repartition(4)
    table.delta(source, "kind", ["id"], order_by="at")
    assert rows_of(table) == [(1, 1, "v19"), (2, 2, "n2"), (3, 0, "n3")]


def test_a_save_finds_rows_without_a_session(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, 3, properties={"write.upsert.mode": "auto"})
    by_id = {"write-operation": "upsert", "upsert-keys": "id"}
    save(changes(spark, (1, 1, "a")), table.location(), **by_id)
    save(
        changes(spark, (2, 2, "b")),
        table.location(),
        **by_id,
        **{"write.upsert.resolve-limit-bytes": "1"},
    )
    told = [s.summary["icebergds.keys-deleted-by"] for s in table.refresh().snapshots()[-2:]]
    assert [text.partition(":")[0] for text in told] == ["positions", "equality-deletes"]
    assert {(1, 1, "a"), (2, 2, "b")} < set(rows_of(table))
    assert len(rows_of(table)) == 12


# Saves.


def test_saves_change_rows_by_key(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, schema=identified())
    path = table.location()
    save(changes(spark, (1, 1, "a"), (40, 1, "b")), path, **{"write-operation": "upsert"})
    save(spark.range(2, 4), path, **{"write-operation": "delete", "upsert-keys": "ID"})
    stream = changes(spark, (5, 2, "-D"), (41, 0, "+I")).coalesce(1)
    options = {"write-operation": "delta", "row-kind-column": "kind"}
    save(stream.selectExpr("id", "part", "name", "name AS kind"), path, **options)
    rows = changes(spark, (6, 0, "y"), (6, 0, "z"), (6, 0, "x")).coalesce(1)
    save(rows, path, **{"write-operation": "upsert", "upsert-order-by": "name"})
    assert ids_of(table) == [0, 1, 4, 6, 7, 8, 9, 10, 11, 40, 41]
    assert {(1, 1, "a"), (6, 0, "z"), (41, 0, "+I")} < set(rows_of(table))


def test_key_in_two_tasks_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """By the plain path, which does not bring them together."""
    table = people(tmp_path)
    rows = changes(spark, (1, 1, "a")).union(changes(spark, (1, 1, "b")))
    options = {"write-operation": "upsert", "upsert-keys": "id"}
    message = leaves_as_it_was(
        table, lambda: save(rows, table.location(), **options), PySparkException
    )
    assert "more than one task" in message


def test_new_columns_with_merge_schema(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    rows = spark.createDataFrame([(1, 1, "a", 5)], "id long, part int, name string, more int")
    table.upsert(rows, "id", options={"merge-schema": "true"})
    assert rows_of(table) == [(0, 0, "n0", None), (1, 1, "a", 5)]


# What is refused, before anything is written.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"write-operation": "upsrt"}, "expected append, upsert"),
        ({"write-operation": "upsert"}, "has no identifier fields"),
        ({"write-operation": "upsert", "upsert-keys": "idd"}, "did you mean id"),
        ({"upsert-keys": "id"}, "needs 'write-operation'"),
        ({"write-operation": "delta", "upsert-keys": "id"}, "needs option 'row-kind-column'"),
        (
            {"write-operation": "delta", "upsert-keys": "id", "row-kind-column": "k"},
            "row kind column 'k'",
        ),
        ({"write-operation": "upsert", "upsert-keys": "id", "create": "true"}, "contradict"),
        (
            {"write-operation": "upsert", "upsert-keys": "id", "upsert-order-by": "at"},
            "no such column",
        ),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, options: dict[str, str], said: str) -> None:
    table = people(tmp_path, count=1)
    message = leaves_as_it_was(
        table,
        lambda: planned_write("id long, part int, name string", table.location(), **options),
        InvalidOptionError,
    )
    assert said in message


def test_mode_overwrite_is_refused(tmp_path: Path) -> None:
    table = people(tmp_path, count=1)
    options = {"write-operation": "upsert", "upsert-keys": "id"}
    with pytest.raises(InvalidOptionError, match="mode\\('append'\\)"):
        planned_write("id long", table.location(), overwrite=True, **options)


def test_unknown_row_kind(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    stream = changes(spark, (1, 1, "++"))
    message = leaves_as_it_was(table, lambda: table.delta(stream, "name", "id"), InvalidDataError)
    assert "'++'" in message


def test_version_1_is_refused(tmp_path: Path) -> None:
    table = people(tmp_path, 1)
    message = leaves_as_it_was(
        table, lambda: table.upsert(arrow([(1, 1, "a")]), "id"), UnsupportedFeatureError
    )
    assert "upgrade(2)" in message


def test_keys_that_cannot_be_compared(tmp_path: Path) -> None:
    floating = NestedField(4, "d", DOUBLE)
    mapped = NestedField(5, "m", MapType(6, STRING, 7, LONG))
    schema = Schema((NestedField(1, "id", LONG), floating, mapped))
    table = people(tmp_path, schema=schema, partition_by="", count=0)
    rows = arrow([(1, 1.0, None)], schema)
    for key in ("d", "m"):
        message = leaves_as_it_was(
            table,
            lambda key=key: table.upsert(rows, key),
            InvalidOptionError,  # type: ignore[misc]
        )
        assert repr(key) in message or f" {key} " in message


def test_identifier_that_is_null(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, schema=identified())
    row = changes(spark, (None, 1, "a"))
    message = leaves_as_it_was(table, lambda: table.upsert(row), InvalidDataError)
    assert "'id'" in message


def identified() -> Schema:
    columns = (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "part", LONG),
        NestedField(3, "name", STRING),
    )
    return Schema(columns, identifier_field_ids=(1,))
