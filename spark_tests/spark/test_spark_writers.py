"""What `df.write.format("icebergpy")` does in a registered session."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds import Catalog, Table, load_catalog, load_table, register, unregister
from icebergds.errors import (
    AlreadyExistsError,
    InvalidDataError,
    InvalidOptionError,
    NoSuchSnapshotError,
    NoSuchTableError,
    ValidationError,
)
from icebergds.spark.verbs import WRITER, is_ours

pytestmark = pytest.mark.spark

_NOON = datetime(2024, 5, 1, 12)


@pytest.fixture
def harbour(front: SparkSession, tmp_path: Path) -> Catalog:
    """The catalog `harbour` of the session, with the namespace `db`."""
    front.conf.set("spark.icebergpy.catalog.harbour.warehouse", str(tmp_path / "harbour"))
    register(front)
    catalog = load_catalog("harbour", warehouse=str(tmp_path / "harbour"))
    catalog.create_namespace("db")
    return catalog


def numbers(spark: SparkSession, *ids: int) -> DataFrame:
    return spark.createDataFrame([(i, f"s{i}") for i in ids], "id bigint, s string")


def rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist())


def ids(table: Table) -> list[int]:
    return [row[0] for row in rows(table)]


def test_the_default_mode_creates_a_table(front: SparkSession, tmp_path: Path) -> None:
    writer = numbers(front, 1, 2).write.format("icebergpy").partitionBy("bucket(4, id)", "s")
    writer.sortBy("id desc").option("table-property.Owner", "me").save(str(tmp_path / "t"))
    table = load_table(str(tmp_path / "t"))
    assert rows(table) == [(1, "s1"), (2, "s2")]
    assert [field.name for field in table.spec().fields] == ["id_bucket", "s"]
    assert [str(field.direction) for field in table.sort_order().fields] == ["desc"]
    assert table.properties["Owner"] == "me"
    assert len(table.snapshots()) == 1


def test_the_default_mode_refuses_a_table_that_exists(front: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        writer = numbers(front, 1).write.format("icebergpy")
        if (tmp_path / "t").exists():
            with pytest.raises(AlreadyExistsError, match="errorifexists"):
                writer.save(str(tmp_path / "t"))
        else:
            writer.save(str(tmp_path / "t"))
    assert ids(load_table(str(tmp_path / "t"))) == [1]


def test_ignore_creates_a_table_once(front: SparkSession, tmp_path: Path) -> None:
    for number in (1, 2):
        numbers(front, number).write.format("icebergpy").mode("ignore").save(str(tmp_path / "t"))
    assert ids(load_table(str(tmp_path / "t"))) == [1]


def test_the_default_mode_refuses_a_directory_of_other_files(
    front: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    numbers(front, 1).write.partitionBy("id").parquet(path)
    with pytest.raises(AlreadyExistsError, match=r"id=1/.*parquet.*option\('create', 'true'\)"):
        numbers(front, 2).write.format("icebergpy").save(path)
    assert not (tmp_path / "t" / "metadata").exists()


def test_ignore_writes_nothing_to_a_directory_of_other_files(
    front: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    numbers(front, 1).write.parquet(path)
    numbers(front, 2).write.format("icebergpy").mode("ignore").save(path)
    assert not (tmp_path / "t" / "metadata").exists()


def test_a_directory_of_other_files_becomes_a_table_if_asked_for(
    front: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    numbers(front, 1).write.parquet(path)
    writer = numbers(front, 2).write.format("icebergpy").mode("append")
    writer.option("create", "true").save(path)
    assert ids(load_table(path)) == [2]


def test_the_default_mode_creates_a_table_in_a_directory_of_hidden_files(
    front: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "t" / "_temporary").mkdir(parents=True)
    (tmp_path / "t" / "_temporary" / "part").touch()
    (tmp_path / "t" / ".DS_Store").touch()
    numbers(front, 1).write.format("icebergpy").save(str(tmp_path / "t"))
    assert ids(load_table(str(tmp_path / "t"))) == [1]


def test_appends_and_overwrites_need_a_table_unless_it_is_to_be_created(
    front: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    for mode in ("append", "overwrite"):
        with pytest.raises(NoSuchTableError, match="option\\('create', 'true'\\)"):
            numbers(front, 1).write.format("icebergpy").mode(mode).save(path)
    numbers(front, 1).write.format("icebergpy").mode("append").option("create", True).save(path)
    numbers(front, 2).write.save(path, format="icebergpy", mode="append")
    assert ids(load_table(path)) == [1, 2]
    numbers(front, 3).write.mode("overwrite").format("icebergpy").save(path)
    assert ids(load_table(path)) == [3]


def test_rows_are_shuffled_and_sorted_as_the_table_asks(
    front: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    df = front.range(1000).selectExpr("id", "id % 5 as part").repartition(8)
    df.write.format("icebergpy").partitionBy("part").sortBy("id desc").save(path)
    found = front.read.format("icebergpy").load(path)
    assert len(found.inputFiles()) == 5
    for name in found.inputFiles():
        numbers_of_file = front.read.parquet(name).toArrow()["id"].to_pylist()
        assert numbers_of_file == sorted(numbers_of_file, reverse=True)


def test_overwrites_take_a_filter_or_the_partitions_of_the_rows(
    front: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    numbers(front, 1, 2, 3).write.format("icebergpy").partitionBy("s").save(path)
    overwrite = numbers(front, 4).write.format("icebergpy").mode("overwrite")
    overwrite.option("overwrite-filter", "id = 1").save(path)
    assert ids(load_table(path)) == [2, 3, 4]
    again = front.sql("select 20L id, 's2' s").write.format("icebergpy").mode("overwrite")
    again.option("overwrite-mode", "dynamic").save(path)
    assert ids(load_table(path)) == [3, 4, 20]


def test_a_definition_that_the_table_does_not_have_is_refused(
    front: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    numbers(front, 1).write.format("icebergpy").partitionBy("s").save(path)
    append = numbers(front, 2).write.format("icebergpy").mode("append")
    with pytest.raises(InvalidOptionError, match="partitioned by"):
        append.partitionBy("id").save(path)
    append.partitionBy("s").save(path)
    with pytest.raises(InvalidOptionError, match="another sort order"):
        append.sortBy("id").save(path)
    with pytest.raises(InvalidOptionError, match="give one"):
        append.option("partition-by", "id").save(path)
    assert ids(load_table(path)) == [1, 2]


def test_buckets_of_one_column_are_a_partitioning(front: SparkSession, tmp_path: Path) -> None:
    writer = numbers(front, 1).write.format("icebergpy")
    writer.bucketBy(8, "id").save(str(tmp_path / "t"))
    (field,) = load_table(str(tmp_path / "t")).spec().fields
    assert str(field.transform) == "bucket[8]"
    with pytest.raises(InvalidOptionError, match="single column"):
        writer.bucketBy(8, "id", "s").save(str(tmp_path / "u"))
    with pytest.raises(InvalidOptionError, match="clusterBy"):
        numbers(front, 1).write.format("icebergpy").clusterBy("id").save(str(tmp_path / "u"))


def test_tables_of_catalogs_are_saved_by_name(front: SparkSession, harbour: Catalog) -> None:
    write = numbers(front, 1).write.format("icebergpy")
    write.partitionBy("days(at)").sortBy("id")
    with pytest.raises(InvalidOptionError, match="at"):
        write.saveAsTable("harbour.db.t")
    with_time = numbers(front, 1).withColumn("at", f.lit(_NOON))
    with_time.write.format("icebergpy").partitionBy("days(at)").saveAsTable("harbour.db.t")
    table = harbour.load_table("db.t")
    assert [field.name for field in table.spec().fields] == ["at_day"]
    with_time.write.saveAsTable("harbour.db.t", format="icebergpy", mode="append")
    assert ids(table) == [1, 1]
    with_time.write.format("icebergpy").mode("ignore").saveAsTable("harbour.db.t")
    with pytest.raises(AlreadyExistsError):
        with_time.write.format("icebergpy").saveAsTable("harbour.db.t")
    assert ids(table) == [1, 1]
    numbers(front, 5).write.format("icebergpy").mode("append").saveAsTable("harbour.db.new")
    assert ids(harbour.load_table("db.new")) == [5]
    with pytest.raises(NoSuchTableError, match="no configured catalog"):
        numbers(front, 5).write.format("icebergpy").saveAsTable("nowhere.db.new")
    with pytest.raises(NoSuchTableError, match=r"^table harbour\.db\.nope does not exist"):
        numbers(front, 5).write.format("icebergpy").mode("append").save("harbour.db.nope")


def test_save_takes_the_name_of_a_table_with_its_catalog_as_an_option(
    front: SparkSession, harbour: Catalog
) -> None:
    write = numbers(front, 1).write.format("icebergpy").option("catalog", "harbour")
    write.save("db.t")
    write.mode("append").saveAsTable("db.t")
    assert ids(harbour.load_table("db.t")) == [1, 1]


def test_names_that_begin_with_a_catalog_of_the_session_are_no_paths(
    front: SparkSession, harbour: Catalog
) -> None:
    numbers(front, 1).write.format("icebergpy").save("harbour.db.t")
    numbers(front, 2).write.format("icebergpy").mode("append").save("harbour.db.t")
    table = harbour.load_table("db.t")
    assert ids(table) == [1, 2]
    assert front.read.format("icebergpy").load("harbour.db.t").count() == 2
    assert not Path("harbour.db.t").exists()


_OF_TABLES: list[Callable[[Table, DataFrame], object]] = [
    lambda table, rows: table.append(rows),
    lambda table, rows: table.overwrite(rows),
    lambda table, rows: table.overwrite(rows, f.col("id") > 0),
    lambda table, rows: table.upsert(rows, ["id"]),
    lambda table, rows: table.merge(rows, "id").when_matched_delete().execute(),
    lambda table, _: table.update({"s": "'x'"}, "id = 1"),
    lambda table, _: table.delete("id = 1"),
]


def test_settings_of_audits_are_not_passed_over(front: SparkSession, harbour: Catalog) -> None:
    write = numbers(front, 1).write.format("icebergpy")
    write.option("table-property.write.wap.enabled", "true").saveAsTable("harbour.db.t")
    front.conf.set("spark.wap.branch", "audit")
    append = numbers(front, 2).write.format("icebergpy").mode("append")
    with pytest.raises(InvalidOptionError, match=r"option 'wap\.branch' = 'audit'"):
        append.saveAsTable("harbour.db.t")
    for change in _OF_TABLES:
        with pytest.raises(InvalidOptionError, match=r"option 'wap\.branch' = 'audit'"):
            change(harbour.load_table("db.t"), numbers(front, 2))
    harbour.load_table("db.t").append(numbers(front, 3), branch="main")
    append.option("wap.branch", "audit").saveAsTable("harbour.db.t")
    table = harbour.load_table("db.t")
    assert ids(table) == [1, 3]
    assert sorted(table.refs()) == ["audit", "main"]


_TO_BRANCH: list[Callable[[DataFrame, str], object]] = [
    lambda rows, name: rows.writeTo(name).using("iceberg").append(),
    lambda rows, name: rows.write.format("icebergpy").mode("append").save(name),
    lambda rows, name: rows.write.format("icebergpy").mode("append").saveAsTable(name),
    lambda rows, name: rows.write.format("icebergpy").insertInto(name),
]


@pytest.mark.parametrize("write", _TO_BRANCH)
def test_a_name_that_ends_with_a_branch_is_written_and_read(
    front: SparkSession, harbour: Catalog, write: Callable[[DataFrame, str], object]
) -> None:
    table = harbour.create_table("db.t", "id bigint, s string")
    table.append(numbers(front, 1))
    table.manage_snapshots().create_branch("b").create_tag("g").commit()
    write(numbers(front, 2), "harbour.db.t.branch_b")
    assert ids(table) == [1]
    read = front.read.format("icebergpy")
    first = table.snapshots()[0]
    for name, count in {
        "branch_b": 2,
        "tag_g": 1,
        f"snapshot_id_{first.snapshot_id}": 1,
        f"at_timestamp_{first.timestamp_ms}": 1,
    }.items():
        assert read.load(f"harbour.db.t.{name}").count() == count
        assert read.table(f"harbour.db.t.{name}").count() == count
    for name, count in {"branch_b": 2, "tag_g": 1, "branch_b#files": 2}.items():
        files = name if "#" in name else f"{name}.files"
        assert read.load(f"harbour.db.t.{files}").count() == count
        assert read.table(f"harbour.db.t.{files}").select("file_path").count() == count
    files = read.option("metadata-table", "files").load("harbour.db.t.branch_b")
    assert files.count() == 2
    read = front.read.format("icebergpy")
    with pytest.raises(NoSuchSnapshotError, match="nope"):
        read.load("harbour.db.t.branch_nope.files")
    with pytest.raises(InvalidOptionError, match="only tables and their branches can be written"):
        numbers(front, 3).writeTo("harbour.db.t.tag_g").append()
    with pytest.raises(InvalidOptionError, match=r"'tag' and the name db\.t\.branch_b"):
        read.option("tag", "g").load("harbour.db.t.branch_b")


def test_overwriting_a_table_by_name_replaces_it_and_keeps_its_history(
    front: SparkSession, harbour: Catalog
) -> None:
    numbers(front, 1, 2).write.format("icebergpy").partitionBy("s").saveAsTable("harbour.db.t")
    table = harbour.load_table("db.t")
    before, schema = table.current_snapshot(), table.schema()
    assert before is not None
    new = front.range(3).selectExpr("cast(id as string) s", "id", "id * 2 as twice")
    new.write.format("icebergpy").mode("overwrite").partitionBy("bucket(2, id)").option(
        "table-property.x", "y"
    ).saveAsTable("harbour.db.t")
    table.refresh()
    assert rows(table) == [("0", 0, 0), ("1", 1, 2), ("2", 2, 4)]
    assert [field.name for field in table.spec().fields] == ["id_bucket"]
    kept = {field.name: field.field_id for field in table.schema().fields}
    assert kept == {"s": schema.find_id("s"), "id": schema.find_id("id"), "twice": 3}
    assert table.properties["x"] == "y"
    old = table.scan(snapshot_id=before.snapshot_id).to_arrow()
    assert sorted(old["id"].to_pylist()) == [1, 2]
    assert old.column_names == ["id", "s"]
    assert table.current_snapshot().parent_snapshot_id is None


def test_a_column_of_another_type_is_a_new_one_after_a_replacement(
    front: SparkSession, harbour: Catalog
) -> None:
    numbers(front, 1).write.format("icebergpy").saveAsTable("harbour.db.t")
    before = harbour.load_table("db.t").current_snapshot()
    assert before is not None
    text = front.sql("select 'a' id, 2 s")
    text.write.format("icebergpy").mode("overwrite").saveAsTable("harbour.db.t")
    table = harbour.load_table("db.t")
    assert [field.field_id for field in table.schema().fields] == [3, 4]
    assert rows(table) == [("a", 2)]
    assert table.scan(snapshot_id=before.snapshot_id).to_arrow()["id"].to_pylist() == [1]


def test_a_table_may_be_replaced_by_rows_of_itself(front: SparkSession, harbour: Catalog) -> None:
    numbers(front, 1, 2).write.format("icebergpy").saveAsTable("harbour.db.t")
    df = front.read.format("icebergpy").table("harbour.db.t").where("id = 2")
    df.selectExpr("id + 1 as id").write.format("icebergpy").mode("overwrite").saveAsTable(
        "harbour.db.t"
    )
    assert rows(harbour.load_table("db.t")) == [(3,)]


def test_rows_are_inserted_by_position(front: SparkSession, harbour: Catalog) -> None:
    numbers(front, 1, 2).write.format("icebergpy").partitionBy("s").saveAsTable("harbour.db.t")
    table = harbour.load_table("db.t")
    other = front.sql("select 7 as a, 's1' as b")
    other.write.format("icebergpy").insertInto("harbour.db.t")
    assert ids(table) == [1, 2, 7]
    front.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    other.write.format("icebergpy").insertInto("harbour.db.t", overwrite=True)
    assert ids(table) == [2, 7]
    front.conf.unset("spark.sql.sources.partitionOverwriteMode")
    other.write.format("icebergpy").mode("overwrite").insertInto("harbour.db.t")
    assert ids(table) == [7]
    with pytest.raises(InvalidDataError, match="1 columns, the table 2"):
        other.select("a").write.format("icebergpy").insertInto("harbour.db.t")
    with pytest.raises(NoSuchTableError, match=r"harbour\.db\.none"):
        other.write.format("icebergpy").insertInto("harbour.db.none")


def test_options_say_that_rows_are_changed_by_key(front: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    numbers(front, 1, 2).write.format("icebergpy").save(path)
    upsert = front.sql("select 2L id, 'new' s").write.format("icebergpy")
    upsert.options(**{"write-operation": "upsert", "upsert-keys": "id"})
    for mode in ("overwrite", "errorifexists"):
        with pytest.raises((InvalidOptionError, AlreadyExistsError)):
            upsert.mode(mode).save(path)
    upsert.mode("append").save(path)
    assert rows(load_table(path)) == [(1, "s1"), (2, "new")]
    with pytest.raises(InvalidOptionError, match="no rows to change"):
        upsert.mode("ignore").save(str(tmp_path / "other"))


def test_rows_of_an_older_load_do_not_replace_newer_rows(
    front: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    numbers(front, 1).write.format("icebergpy").save(path)
    old = front.read.format("icebergpy").load(path)
    numbers(front, 2).write.format("icebergpy").mode("append").save(path)
    with pytest.raises(ValidationError):
        old.write.format("icebergpy").mode("overwrite").save(path)
    assert ids(load_table(path)) == [1, 2]


def test_rows_of_an_older_load_do_not_replace_a_newer_table(
    front: SparkSession, harbour: Catalog
) -> None:
    numbers(front, 1).write.format("icebergpy").saveAsTable("harbour.db.t")
    old = front.read.format("icebergpy").table("harbour.db.t")
    numbers(front, 2).write.format("icebergpy").mode("append").saveAsTable("harbour.db.t")
    replace = old.write.format("icebergpy").mode("overwrite")
    with pytest.raises(ValidationError):
        replace.saveAsTable("harbour.db.t")
    assert ids(harbour.load_table("db.t")) == [1, 2]
    replace.option("isolation-level", "none").saveAsTable("harbour.db.t")
    assert ids(harbour.load_table("db.t")) == [1]


def test_other_formats_have_sparks_writer(front: SparkSession, tmp_path: Path) -> None:
    writer = front.range(1).write.format("icebergpy")
    assert is_ours(writer, WRITER)
    assert not is_ours(writer.format("parquet"), WRITER)
    front.range(1).write.format("icebergpy").save(str(tmp_path / "p"), format="parquet")
    assert front.read.parquet(str(tmp_path / "p")).count() == 1
    front.range(1).write.save(path=str(tmp_path / "q"), format="parquet")
    assert front.read.parquet(str(tmp_path / "q")).count() == 1
    front.range(1).write.save(path=str(tmp_path / "i"), format="icebergpy")
    assert ids(load_table(str(tmp_path / "i"))) == [0]
    front.range(1).write.format("icebergpy").saveAsTable(name="plain_table", format="parquet")
    assert front.table("plain_table").count() == 1
    front.sql("drop table plain_table")


def test_sessions_that_are_not_registered_notice_nothing(
    spark: SparkSession, front: SparkSession, tmp_path: Path
) -> None:
    other = spark.newSession()
    unregister(other)
    assert not is_ours(other.range(1).write.format("icebergpy"), WRITER)
    left = spark.newSession()
    register(left, writer=False)
    assert not is_ours(left.range(1).write.format("icebergpy"), WRITER)
    with pytest.raises(InvalidOptionError, match="session catalog"):
        left.range(1).write.format("icebergpy").saveAsTable("t")


@pytest.mark.parametrize(
    "change",
    [
        lambda writer: writer.mode("append").options(nope="1"),
        lambda writer: writer.mode("append").option("overwrite-filter", "id = 1"),
        lambda writer: writer.mode("overwrite").option("overwrite-filter", "nope = 1"),
        lambda writer: writer.mode("append").option("merge-schema", "maybe"),
    ],
)
def test_options_are_checked_before_anything_is_written(
    front: SparkSession, tmp_path: Path, change: Callable[[Any], Any]
) -> None:
    path = str(tmp_path / "t")
    numbers(front, 1).write.format("icebergpy").save(path)
    with pytest.raises(InvalidOptionError):
        change(numbers(front, 2).write.format("icebergpy")).save(path)
    assert ids(load_table(path)) == [1]
