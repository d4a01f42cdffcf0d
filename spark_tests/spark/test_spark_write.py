"""Appends, overwrites, branches and views, as docs/writing.md describes them."""

from __future__ import annotations

from inspect import unwrap
from pathlib import Path

import pytest
from built.contents import files_besides_metadata, live_files
from pyspark.sql import DataFrame, SparkSession
from spark_reads import ids, ids_of_each, load, message_of
from spark_writes import create, planned_write, refused, save

from icebergds import load_table
from icebergds.errors import NoSuchTableError
from icebergds.operations.write.append_overwrite import WRITE_ID

pytestmark = pytest.mark.spark


def numbers(spark: SparkSession, *wanted: int) -> DataFrame:
    """Ids with `part`, their last digit, in one partition."""
    rows = [(i, i % 10) for i in wanted]
    return spark.createDataFrame(rows, "id long, part int").coalesce(1)


def test_append_adds_rows_in_one_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.range(3), tmp_path / "t")
    save(spark.range(3, 5), path)
    assert ids(load(spark, path)) == [0, 1, 2, 3, 4]
    assert [s.operation for s in load_table(path).snapshots()] == ["append", "append"]


def test_each_save_is_a_write_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    """Also through one writer of Spark's, and whatever the user names it."""
    path = create(spark.range(1), tmp_path / "t")
    writer = spark.range(1, 3).write.format("icebergpy").mode("append")
    writer = writer.option(f"snapshot-property.{WRITE_ID}", "mine")
    writer.save(str(path))
    writer.save(str(path))
    assert ids(load(spark, path)) == [0, 1, 1, 2, 2]
    table = load_table(path)
    write_ids = [snapshot.summary[WRITE_ID] for snapshot in table.snapshots()]
    assert len({*write_ids, "mine"}) == 4
    for file in live_files(path):
        assert sum(write_id in str(file) for write_id in write_ids) == 1


def test_missing_table_says_how_to_create_it(spark: SparkSession, tmp_path: Path) -> None:
    message = message_of(lambda: save(spark.range(1), tmp_path / "t"))
    assert "icebergds.errors.NoSuchTableError" in message
    assert "option('create', 'true')" in message
    assert not (tmp_path / "t").exists()


def test_overwrite_replaces_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = create(numbers(spark, 1, 2), tmp_path / "t", **{"partition-by": "part"})
    save(numbers(spark, 3), path, "overwrite")
    assert ids(load(spark, path)) == [3]
    assert load_table(path).snapshots()[-1].operation == "overwrite"


def test_overwrite_with_a_filter_replaces_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = create(numbers(spark, 1, 2, 12), tmp_path / "t", **{"partition-by": "part"})
    save(numbers(spark, 22), path, "overwrite", **{"overwrite-filter": "part = 2"})
    assert ids(load(spark, path)) == [1, 22]


def test_filter_that_cuts_through_a_file_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = create(numbers(spark, 1, 2), tmp_path / "t")
    message = refused(numbers(spark, 3), path, "overwrite", **{"overwrite-filter": "id = 2"})
    assert "icebergds.errors.ValidationError" in message
    assert ids(load(spark, path)) == [1, 2]


def test_dynamic_overwrite_replaces_partitions_of_the_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = create(numbers(spark, 1, 2, 3), tmp_path / "t", **{"partition-by": "part"})
    save(numbers(spark, 12, 13), path, "overwrite", **{"overwrite-mode": "dynamic"})
    assert ids(load(spark, path)) == [1, 12, 13]


def test_overwrite_options_need_the_overwrite_mode(spark: SparkSession, tmp_path: Path) -> None:
    path = create(numbers(spark, 1), tmp_path / "t")
    message = refused(numbers(spark, 1), path, **{"overwrite-filter": "id = 1"})
    assert "need mode('overwrite')" in message


def test_save_mode_that_is_not_named_is_refused_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    writer = spark.range(1).write.format("icebergpy").option("create", "true")
    message = message_of(lambda: writer.save(str(tmp_path / "t")))
    assert "UNSUPPORTED_DATA_SOURCE_SAVE_MODE" in message


def test_save_as_table_points_to_save_and_views(spark: SparkSession) -> None:
    """Also in a session that is not registered, whose own method this is."""
    writer = spark.range(1).write.format("icebergpy").mode("append")
    save_as_table = unwrap(type(writer).saveAsTable)
    try:
        message = message_of(lambda: save_as_table(writer, "written_by_icebergds"))
    finally:
        spark.sql("DROP TABLE IF EXISTS written_by_icebergds")
    assert "icebergds.errors.InvalidOptionError" in message
    assert "session catalog" in message
    assert "temporary view" in message


def test_rows_of_a_table_may_overwrite_it(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.range(6), tmp_path / "t")
    before = load(spark, path)
    save(before.where("id > 3").selectExpr("id * 10 AS id"), path, "overwrite")
    assert ids(load(spark, path)) == [40, 50]
    save(load(spark, path), path)
    assert ids(load(spark, path)) == [40, 40, 50, 50]
    assert ids(before) == [0, 1, 2, 3, 4, 5]


def test_no_rows_append_nothing_and_overwrite_everything(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = create(spark.range(2), tmp_path / "t")
    nothing = spark.createDataFrame([], "id long")
    save(nothing, path)
    assert ids(load(spark, path)) == [0, 1]
    save(nothing, path, "overwrite")
    assert ids(load(spark, path)) == []
    assert live_files(path) == []


def test_table_created_without_rows_is_there(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.createDataFrame([], "id long, name string"), tmp_path / "t")
    assert load(spark, path).schema.simpleString() == "struct<id:bigint,name:string>"
    assert files_besides_metadata(path) == set()


def test_branch_gets_the_rows_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.range(1), tmp_path / "t")
    save(spark.range(1, 2), path, branch="b", **{"create-branch": "true"})
    save(spark.range(2, 3), path, **{"wap.branch": "audit"})
    frames = {
        "main": load(spark, path),
        "b": load(spark, path, branch="b"),
        "audit": load(spark, path, branch="audit"),
    }
    assert ids_of_each(frames) == {"main": [0], "b": [0, 1], "audit": [0, 2]}


def test_wap_id_stages_the_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.range(1), tmp_path / "t")
    save(spark.range(1, 2), path, **{"wap.id": "night-1"})
    staged = load_table(path).snapshots()[-1]
    assert staged.summary["wap.id"] == "night-1"
    assert ids(load(spark, path)) == [0]
    assert ids(load(spark, path, **{"snapshot-id": str(staged.snapshot_id)})) == [0, 1]


def test_snapshot_properties_stand_in_the_summary(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.range(1), tmp_path / "t", **{"snapshot-property.job": "Nightly"})
    assert load_table(path).snapshots()[-1].summary["job"] == "Nightly"


def test_sql_inserts_through_a_temporary_view(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.sql("SELECT 1L AS id, 'a' AS name"), tmp_path / "t")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW w USING icebergpy OPTIONS (path '{path}')")
    spark.sql("INSERT INTO w VALUES (2, 'b')")
    spark.sql("INSERT INTO w (name, id) VALUES ('c', 3)")
    spark.sql("INSERT INTO w BY NAME SELECT 'd' AS name, 4L AS id")
    spark.sql("SELECT 5L AS id, 'e' AS name").writeTo("w").append()
    expected = [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
    assert sorted(map(tuple, load(spark, path).collect())) == expected
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW w USING icebergpy OPTIONS (path '{path}')")
    spark.sql("INSERT OVERWRITE w SELECT 9, 'z'")
    assert [tuple(row) for row in load(spark, path).collect()] == [(9, "z")]


def test_options_of_a_view_hold_for_its_inserts(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.range(1), tmp_path / "t")
    save(spark.range(1, 2), path, branch="b", **{"create-branch": "true"})
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW w USING icebergpy OPTIONS (path '{path}', branch 'b')"
    )
    spark.sql("INSERT INTO w VALUES (7)")
    frames = {"main": load(spark, path), "b": load(spark, path, branch="b")}
    assert ids_of_each(frames) == {"main": [0], "b": [0, 1, 7]}


def test_unknown_option_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="did you mean 'overwrite-mode'"):
        planned_write("id long", tmp_path, **{"overwrite-mod": "dynamic"})


def test_planning_names_a_missing_table(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTableError, match="partition-by"):
        planned_write("id long", tmp_path / "t")
