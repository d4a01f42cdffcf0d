"""MERGE through `Table.merge`, as docs/changing.md describes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest
from effort import IS_NIGHTLY
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as f
from spark_changes import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    WAYS,
    arrow,
    expected,
    head,
    ids_of,
    leaves_as_it_was,
    lineage_of,
    meanwhile_appended,
    people,
    person,
    rows_of,
)

from icebergds import Schema, load_catalog, load_table
from icebergds.errors import (
    InvalidDataError,
    InvalidFilterError,
    InvalidOptionError,
    MissingFileError,
    ValidationError,
)
from icebergds.operations.write.row_counts import RowCounts
from icebergds.spark.row_level import match_filter
from icebergds.spec.types import INT, LONG, STRING, NestedField, StructType

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Per change, tests of one way to change rows are of a small or of a large table."""
    sizes = ["small", "large"]
    if not IS_NIGHTLY and "version" not in metafunc.fixturenames:
        sizes = [sizes[crc32(metafunc.function.__name__.encode()) % 2]]
    metafunc.parametrize("size", sizes)


@pytest.fixture(autouse=True)
def _as_a_table_of_some_size(size: str, monkeypatch: Any) -> None:
    """Of large tables, rows that cannot match are dropped first."""
    if size == "large":
        monkeypatch.setattr(match_filter, "_LEAST_ROWS", 0)


def changes(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id long, part int, name string").coalesce(1)


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_every_clause_in_one_merge(
    spark: SparkSession, tmp_path: Path, version: int, mode: str
) -> None:
    table = people(tmp_path, version, mode)
    source = changes(
        spark, (1, 1, "one"), (2, 2, "gone"), (3, 0, "kept"), (50, 2, "new"), (51, 0, "skipped")
    )
    counts = (
        table.merge(source, "target.id = source.id")
        .when_matched_delete("source.name = 'gone'")
        .when_matched_update({"name": "concat(target.name, source.name)"}, "source.id < 3")
        .when_not_matched_insert({"id": "source.id", "name": "source.name"}, "source.id < 51")
        .when_not_matched_by_source_delete("target.id >= 10")
        .when_not_matched_by_source_update({"part": "9"}, "target.id = 9")
        .execute()
    )
    assert counts == RowCounts(inserted=1, updated=2, deleted=3)
    others = [person(i) for i in (0, 3, 4, 5, 6, 7, 8)]
    changed = [(1, 1, "n1one"), (9, 9, "n9"), (50, None, "new")]
    assert rows_of(table) == expected([*others, *changed])
    assert head(table).operation == "overwrite"


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
def test_all_columns_by_name(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    table = people(tmp_path, 2, mode)
    source = changes(spark, (1, 2, "a"), (60, 7, "b")).selectExpr("name", "PART", "id", "1 AS more")
    merge = table.merge(source, ["id"]).when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute() == RowCounts(inserted=1, updated=1)
    others = [person(i) for i in range(12) if i != 1]
    assert rows_of(table) == expected([*others, (1, 2, "a"), (60, 7, "b")])


def test_first_clause_that_holds_is_taken(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    source = changes(spark, (1, 1, None), (2, 2, "x"))
    (
        table.merge(source, ["id"])
        .when_matched_update({"name": "'first'"}, "source.name = 'x'")
        .when_matched_update({"name": "'second'"}, "target.id < 3")
        .when_matched_delete()
        .execute()
    )
    assert rows_of(table)[1] == (1, 1, "second")
    assert (2, 2, "first") in rows_of(table)


def test_condition_and_values_may_be_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    source = changes(spark, (1, 1, "x")).alias("anything")
    (
        table.merge(source, f.col("t.id") == f.col("s.id") + 1, source_alias="s", target_alias="t")
        .when_matched_update({"name": f.concat("s.name", "t.name")}, f.col("t.part") == 2)
        .execute()
    )
    assert (2, 2, "xn2") in rows_of(table)


def test_columns_that_no_clause_sets_stay(spark: SparkSession, tmp_path: Path) -> None:
    """Also where names of the source are those of columns that are not read."""
    table = people(tmp_path)
    source = changes(spark, (1, 5, "x"), (2, 6, "y"), (30, 7, "z"))
    merge = table.merge(source, "target.id = source.id").when_matched_update(
        {"name": "source.name"}, "source.part = 5"
    )
    merge = merge.when_matched_update_all().when_not_matched_insert({"name": "source.name"})
    assert merge.execute() == RowCounts(inserted=1, updated=2)
    others = [person(i) for i in (0, *range(3, 12))]
    assert rows_of(table) == expected([*others, (1, 1, "x"), (2, 6, "y"), (None, None, "z")])


@pytest.mark.parametrize("on", ["id", " ID ", "`id`"])
def test_the_name_of_a_column_of_both_sides_is_a_key(
    spark: SparkSession, tmp_path: Path, on: str
) -> None:
    table = people(tmp_path, count=3)
    merge = table.merge(changes(spark, (1, 1, "one"), (9, 1, "new")), on)
    counts = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert counts == RowCounts(inserted=1, updated=1)
    assert rows_of(table) == expected([person(0), (1, 1, "one"), person(2), (9, 1, "new")])


def test_the_name_of_a_column_of_one_side_is_a_condition(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path, count=3)
    source = spark.sql("SELECT true AS all_of_them")
    counts = table.merge(source, "all_of_them").when_matched_delete().execute()
    assert counts == RowCounts(deleted=3)


def test_the_name_of_a_column_may_hold_the_alias_of_the_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    name = "the source.id"
    schema = Schema((NestedField(1, name, LONG), NestedField(2, "name", STRING)))
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    table = catalog.create_table("db.t", schema)
    table.append(pa.table({name: pa.array([1, 2], pa.int64()), "name": ["a", "b"]}))
    source = spark.sql("SELECT 2L AS id")
    merge = table.merge(source, f"target.`{name}` = source.id")
    assert merge.when_matched_delete().execute() == RowCounts(deleted=1)
    assert rows_of(table) == [(1, "a")]


def test_fields_of_structs(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((NestedField(3, "a", INT), NestedField(4, "b", INT)))
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "source", inner)))
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    properties = {"write.merge.mode": MERGE_ON_READ}
    table = load_table(catalog.create_table("db.t", schema, properties=properties).location())
    table.append(spark.sql("SELECT id, named_struct('a', 1, 'b', 2) AS source FROM range(2)"))
    merge = table.merge(spark.range(1, 3), ["id"], source_alias="s")
    merge = merge.when_matched_update({"source.a": "target.source.b + s.id"})
    assert merge.when_not_matched_insert({"id": "s.id"}).execute().updated == 1
    assert rows_of(table) == [(0, {"a": 1, "b": 2}), (1, {"a": 3, "b": 2}), (2, None)]


def test_table_of_nothing_but_structs(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((NestedField(3, "a", INT),))
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    table = catalog.create_table("db.t", Schema((NestedField(1, "s", inner),)))
    merge = table.merge(spark.sql("SELECT named_struct('a', 5) s"), "target.s.a = source.s.a")
    assert merge.when_not_matched_insert_all().execute() == RowCounts(inserted=1)
    assert rows_of(table) == [({"a": 5},)]


def test_values_may_be_those_of_python(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    source = changes(spark, (1, 0, "x"), (7, 0, "x"))
    merge = table.merge(source, "id").when_matched_update({"part": 70})
    merge = merge.when_not_matched_insert({"id": "source.id", "part": 71, "name": "'new'"})
    merge = merge.when_not_matched_by_source_update({"part": 72})
    assert merge.execute() == RowCounts(inserted=1, updated=2)
    assert [row[:2] for row in rows_of(table)] == [(0, 72), (1, 70), (7, 71)]


def test_null_keys_match_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    source = changes(spark, (None, 5, "a"))
    table.merge(source, ["id"]).when_not_matched_insert_all().execute()
    merge = table.merge(source, ["id"]).when_matched_delete().when_not_matched_insert_all()
    assert merge.execute() == RowCounts(inserted=1)
    assert len(rows_of(table)) == 4


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
def test_row_that_two_rows_change_is_an_error(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    table = people(tmp_path, 3, mode)
    source = changes(spark, (1, 1, "a"), (1, 1, "b"))
    twice = table.merge(source, ["id"]).when_matched_update_all()
    message = leaves_as_it_was(table, twice.execute, InvalidDataError)
    assert "more than one row of the source" in message
    assert message.endswith("; one such row has id = 1")
    on = (f.col("source.part") == f.col("target.part")) & (f.col("target.id") == f.col("source.id"))
    by_two = table.merge(source, on).when_matched_update({"name": "source.name"})
    message = leaves_as_it_was(table, by_two.execute, InvalidDataError)
    assert message.endswith("; one such row has part = 1, id = 1")
    once = table.merge(source, ["id"]).when_matched_update_all("source.name = 'b'")
    assert once.execute() == RowCounts(updated=1)
    none = table.merge(source, ["id"]).when_matched_delete("source.name = 'z'")
    assert none.when_not_matched_insert_all().execute() == RowCounts()
    assert ids_of(table) == list(range(12))


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
def test_matched_rows_that_are_all_deleted_may_match_several_rows(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    table = people(tmp_path, 3, mode)
    source = changes(spark, (1, 1, "a"), (1, 1, "b"), (70, 1, "c"), (70, 1, "c"))
    merge = table.merge(source, ["id"]).when_matched_delete().when_not_matched_insert_all()
    assert merge.execute() == RowCounts(deleted=1, inserted=2)
    assert ids_of(table) == [0, *range(2, 12), 70, 70]
    some = table.merge(source, ["id"]).when_matched_delete("target.id > 1")
    assert "row of the source" in leaves_as_it_was(table, some.execute, InvalidDataError)


def test_an_error_of_ours_in_the_source_is_raised_as_what_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, other = people(tmp_path / "target"), people(tmp_path / "source")
    lost = next(Path(other.location()).rglob("*.parquet"))
    lost.unlink()
    source = spark.read.format("icebergpy").load(other.location())
    merge = table.merge(source, "target.part = source.part AND target.id = source.id")
    message = leaves_as_it_was(table, merge.when_matched_delete().execute, MissingFileError)
    assert lost.name in message


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
def test_rows_keep_their_ids(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    table = people(tmp_path, 3, mode)
    before = lineage_of(table)
    source = changes(spark, (1, 1, "a"), (7, 1, "b"), (70, 1, "c"))
    merge = table.merge(source, ["id"]).when_matched_update_all("source.id = 1")
    merge.when_not_matched_insert_all().execute()
    after = lineage_of(table)
    new, third = after.pop(70), head(table).sequence_number
    assert after == {**before, 1: (before[1][0], third)}
    assert new[1] == third
    assert new[0] not in {row_id for row_id, _ in after.values()}


def test_inserts_into_a_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=0)
    source = changes(spark, *map(person, range(4)))
    merge = table.merge(source, ["id"]).when_matched_delete().when_not_matched_insert_all()
    assert merge.execute() == RowCounts(inserted=4)
    assert rows_of(table) == expected([person(i) for i in range(4)])
    assert head(table).operation == "append"


def test_source_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    merge = table.merge(changes(spark, person(1)).where("false"), ["part", "id"])
    merge = merge.when_matched_delete().when_not_matched_insert_all()
    assert merge.execute() == RowCounts()
    by_source = merge.when_not_matched_by_source_delete("target.id > 9")
    assert by_source.execute() == RowCounts(deleted=2)
    assert head(table).summary["spark.merge-into.num-target-rows-deleted"] == "2"
    assert ids_of(table) == list(range(10))


def test_source_may_be_the_table_itself(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    source = table.scan().to_df(spark).where("part = 0")
    merge = table.merge(source, "target.id = source.id + 1").when_matched_update(
        {"name": "source.name"}
    )
    assert merge.execute() == RowCounts(updated=4)
    assert (10, 1, "n9") in rows_of(table)


def test_left_out_columns_have_their_defaults(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(
        (
            NestedField(1, "id", LONG, required=True),
            NestedField(2, "v", INT, initial_default=5, write_default=6),
            NestedField(3, "s", STRING),
        )
    )
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    properties = {"format-version": "3", "write.merge.mode": MERGE_ON_READ}
    created = catalog.create_table("db.t", schema, properties=properties)
    table = load_table(created.location())
    merge = table.merge(spark.range(1), ["id"])
    merge.when_not_matched_insert({"id": "source.id"}).execute()
    assert rows_of(table) == [(0, 6, None)]
    without_id = merge.when_not_matched_insert({"s": "'x'"})
    message = leaves_as_it_was(table, without_id.execute, InvalidDataError)
    assert "required" in message


def test_branch_is_merged_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    created = table.merge(spark.range(5), ["id"], branch="b", options={"create-branch": "true"})
    created.when_matched_delete().execute()
    table.merge(spark.range(7), ["id"], branch="b").when_matched_delete().execute()
    assert ids_of(table) == list(range(12))
    assert ids_of(table, branch="b") == [7, 8, 9, 10, 11]


# What a merge looks at.


ON = "target.part = source.part AND target.id = source.id"


def test_merges_of_different_partitions_go_together(spark: SparkSession, tmp_path: Path) -> None:
    """At serializable isolation: the partitions of the source are what a merge looks at."""
    table = people(tmp_path)
    source = changes(spark, (1, 1, "a"), (101, 1, "new"))
    source = meanwhile_appended(source, table, (200, 2, "other"))
    merge = table.merge(source, ON).when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute() == RowCounts(inserted=1, updated=1)
    assert {200, 101} < set(ids_of(table))


def test_rows_added_to_the_same_partition_are_a_conflict(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path)
    source = changes(spark, (1, 1, "a"), (101, 1, "new"))
    source = meanwhile_appended(source, table, (101, 1, "other"))
    merge = table.merge(source, ON).when_matched_update_all().when_not_matched_insert_all()
    with pytest.raises(ValidationError):
        merge.execute()
    assert (101, 1, "other") in rows_of(table)
    assert (1, 1, "n1") in rows_of(table)
    relaxed = table.merge(
        meanwhile_appended(source, table, (201, 1, "more")),
        ON,
        options={"isolation-level": "snapshot"},
    )
    assert relaxed.when_matched_delete().execute() == RowCounts(deleted=2)


def test_condition_on_the_table_alone_plans_the_scan(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, partition_by="")
    source = changes(spark, (1, 1, "a"), (11, 2, "b"))
    source = meanwhile_appended(source, table, (300, 0, "other"))
    on = "target.id = source.id AND (target.id < 100 AND target.name LIKE 'n%')"
    assert table.merge(source, on).when_matched_delete().execute() == RowCounts(deleted=2)
    merge = table.merge(source, on).when_not_matched_by_source_delete("target.id >= 10")
    assert merge.execute().deleted == 2
    assert ids_of(table) == [i for i in range(10) if i != 1]


def test_source_that_is_another_one_each_time_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its values choose what is read of the table: others may match rows that were not."""
    table = people(tmp_path)

    def draw(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            part = pa.array([time.time_ns() // 1000 % 1_000_000_000], pa.int32())
            yield pa.RecordBatch.from_arrays([part], ["part"])

    drawn = spark.range(0, 1, 1, 1).mapInArrow(draw, "part int")
    merge = (
        table.merge(drawn, ["part"])
        .when_matched_delete()
        .when_not_matched_insert({"part": "source.part"})
    )
    message = leaves_as_it_was(table, merge.execute, PySparkException)
    assert "different values of part each time" in message


def test_source_that_is_another_one_each_time_is_computed_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A row that matches the first time must not be inserted because of a second time."""
    table = people(tmp_path)

    def draw(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            shift = time.time_ns() // 1000
            ids = pa.array([(shift + id) % 12 for id in batch["id"].to_pylist()], pa.int64())
            yield pa.RecordBatch.from_arrays([ids], ["id"])

    drawn = spark.range(0, 3, 1, 1).mapInArrow(draw, "id long")
    merge = table.merge(drawn, "target.id = source.id").when_matched_update({"name": "'drawn'"})
    merge = merge.when_not_matched_insert({"id": "source.id"})
    assert merge.execute() == RowCounts(updated=3)


def test_values_may_be_columns_of_the_source(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    source = changes(spark, (1, 1, "one"), (50, 2, "new"))
    more = source.withColumn("longer", f.concat("name", f.lit("!")))
    merge = table.merge(more, ["id"]).when_matched_update({"name": more.longer}, source.part == 1)
    merge = merge.when_not_matched_insert({"id": source.id, "name": source["name"]})
    assert merge.execute() == RowCounts(inserted=1, updated=1)
    assert {(1, 1, "one!"), (50, None, "new")} <= set(rows_of(table))


@pytest.mark.parametrize(
    "on",
    [
        "target.id = source.id and (target.part = source.part or source.part is null)",
        "target.id = source.id and target.part = source.part is not distinct from true",
        "target.id = source.id::int",
        "target.id = source.id | 0",
        "target.id = source.id and target.name = source.name || '1'",
    ],
)
def test_conditions_that_only_begin_like_equal_columns(
    spark: SparkSession, tmp_path: Path, on: str
) -> None:
    table = people(tmp_path)
    source = changes(spark, (1, 1, "n"), (50, 2, "new"))
    merge = table.merge(source, on).when_matched_update({"name": "source.name"})
    assert merge.when_not_matched_insert_all().execute() == RowCounts(inserted=1, updated=1)


def test_a_struct_of_the_source_with_the_name_of_its_alias(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path)
    source = changes(spark, (1, 1, "one"), (50, 2, "new"))
    source = source.select(f.struct("id").alias("source"), "part", "name")
    merge = table.merge(source, "target.id = source.id").when_matched_update({"part": "9"})
    assert merge.when_not_matched_insert({"part": "source.part"}).execute() == RowCounts(
        inserted=1, updated=1
    )


def test_keys_in_structs(spark: SparkSession, tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    inner = StructType((NestedField(3, "a.b", INT), NestedField(4, "c", INT)))
    table = load_table(
        catalog.create_table("db.t", Schema((NestedField(1, "s", inner),))).location()
    )
    rows = spark.sql("SELECT named_struct('a.b', int(id), 'c', int(id)) AS s FROM range(4)")
    table.append(rows)
    source = spark.sql("SELECT named_struct('a.b', int(id), 'c', 9) AS s FROM range(3, 5)")
    for on in ("target.s.`a.b` = source.s.`a.b`", ["s.`a.b`"]):
        merge = table.merge(source, on).when_matched_update_all()
        counts = merge.when_not_matched_insert_all().execute()
        assert counts.updated + counts.inserted == 2
    found = [row[0] for row in rows_of(table)]
    assert sorted((row["a.b"], row["c"]) for row in found) == [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 9),
        (4, 9),
    ]


# What is refused, before anything is written.


def test_merges_that_do_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=3)
    source = spark.range(3).selectExpr("id", "'x' AS name")

    def said(error: type[Exception], on: Any, change: Any) -> str:
        return leaves_as_it_was(table, lambda: change(table.merge(source, on)).execute(), error)

    def delete(merge: Any) -> Any:
        return merge.when_matched_delete()

    assert "add a clause" in said(InvalidOptionError, ["id"], lambda merge: merge)
    assert "`nope`" in said(InvalidFilterError, ["nope"], delete)
    assert "a list of column names" in said(InvalidOptionError, [], delete)
    assert "DETERMINISTIC" in said(InvalidFilterError, "rand() > 0.5", delete).upper()
    assert "AMBIGUOUS" in said(InvalidFilterError, "id = id", delete)
    assert "has no column part" in said(
        InvalidDataError, ["id"], lambda merge: merge.when_not_matched_insert_all()
    )
    assert "not deterministic" in said(
        InvalidFilterError, ["id"], lambda merge: merge.when_matched_delete("rand() > 0.5")
    )
    assert "of type string" in said(
        InvalidDataError, ["id"], lambda merge: merge.when_matched_update({"id": "source.name"})
    )
    assert "never applies" in said(InvalidOptionError, ["id"], lambda merge: delete(delete(merge)))
    named_twice = table.merge(source, ["id"], source_alias="t", target_alias="T")
    with pytest.raises(InvalidOptionError, match="different aliases"):
        delete(named_twice).execute()


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        (lambda m: m.when_not_matched_by_source_update({"name": "source.name"}), "of the source"),
        (lambda m: m.when_not_matched_by_source_delete("source.id = 1"), "of the source"),
        (lambda m: m.when_not_matched_insert({"id": "target.id"}), "of the table"),
        (lambda m: m.when_not_matched_insert_all("target.part IS NULL"), "of the table"),
    ],
)
def test_clause_that_names_a_row_it_has_none_of(
    spark: SparkSession, tmp_path: Path, clause: Callable[[Any], Any], said: str
) -> None:
    table = people(tmp_path, count=3)
    merge = clause(table.merge(changes(spark, (2, 2, "m")), ["id"]))
    assert said in leaves_as_it_was(table, merge.execute, InvalidFilterError)


def test_option_of_a_write_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=3)
    with pytest.raises(InvalidOptionError, match=r"table\.merge does not take option 'create'"):
        table.merge(changes(spark, (2, 2, "m")), ["id"], options={"create": "true"})


def test_source_that_is_no_frame_is_refused(tmp_path: Path) -> None:
    table = people(tmp_path, count=3)
    with pytest.raises(InvalidOptionError, match="cannot be merged: expected a Spark DataFrame"):
        table.merge(arrow([person(1)]), ["id"])  # type: ignore[arg-type]
