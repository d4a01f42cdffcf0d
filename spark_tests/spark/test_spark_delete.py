"""DELETE through `Table.delete`, as docs/changing.md describes it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from built.contents import files_besides_metadata
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions as f
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
    people,
    person,
    rows_of,
    set_property,
)
from spark_reads import ids, load, session_conf

from icebergds import NestedField, Schema, load_catalog, load_table
from icebergds.errors import (
    InvalidFilterError,
    InvalidOptionError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.operations.write.row_counts import RowCounts
from icebergds.spec.types import LONG, TIMESTAMPTZ

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_rows_of_a_condition_are_gone(
    spark: SparkSession, tmp_path: Path, version: int, mode: str
) -> None:
    table = people(tmp_path, version, mode)
    assert table.delete("id % 2 = 0 AND id > 3") == RowCounts(deleted=4)
    assert rows_of(table) == expected([person(i) for i in (0, 1, 2, 3, 5, 7, 9, 11)])
    assert ids(load(spark, table.location())) == [0, 1, 2, 3, 5, 7, 9, 11]


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_deletes_follow_one_another(
    spark: SparkSession, tmp_path: Path, version: int, mode: str
) -> None:
    """A file has one vector, and rows that are gone are not deleted once more."""
    table = people(tmp_path, version, mode)
    deleted = [table.delete(f"id <= {i}").deleted for i in (1, 4, 7)]
    assert (deleted, ids_of(table)) == ([2, 3, 3], [8, 9, 10, 11])


def test_snapshots_show_the_rows_that_vectors_have_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path, 3)
    table.delete("id IN (1, 2)")
    table.delete("id = 4")
    table.update({"name": "'x'"}, "id = 5")
    table.delete("part = 1")
    shown = [line.split()[3:] for line in repr(table.snapshots()).splitlines()[4:]]
    assert shown == [
        ["delete", "2", "10"],
        ["delete", "1", "9"],
        ["overwrite", "1", "1", "9"],
        ["delete", "2", "7"],
    ]
    assert len(rows_of(table)) == 7


def test_merge_on_read_keeps_data_files(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, 3)
    before = files_besides_metadata(tmp_path)
    table.delete("id = 4")
    assert before < files_besides_metadata(tmp_path)
    assert (head(table).operation, head(table).summary["added-dvs"]) == ("delete", "1")


def test_copy_on_write_rewrites_touched_files_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, 2, COPY_ON_WRITE)
    table.delete("id IN (0, 5)")
    summary = head(table).summary
    assert (summary["deleted-data-files"], summary["added-data-files"]) == ("2", "2")
    assert (summary["deleted-records"], summary["added-records"]) == ("4", "2")


def test_copy_on_write_applies_earlier_deletes(spark: SparkSession, tmp_path: Path) -> None:
    """By position and by key: they would not reach the rows in their new file."""
    table = people(tmp_path, 2)
    table.delete("id = 1")
    table.delete_keys(spark.range(4, 5), "id")
    set_property(table, "write.delete.mode", COPY_ON_WRITE)
    assert table.delete("id = 7") == RowCounts(deleted=1)
    assert table.delete("id = 0") == RowCounts(deleted=1)
    assert ids_of(table) == [2, 3, 5, 6, 8, 9, 10, 11]


def test_whole_files_go_by_metadata_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, 2)
    assert table.delete("part = 1").deleted == 4
    assert "added-delete-files" not in head(table).summary
    assert ids_of(table) == [0, 2, 3, 5, 6, 8, 9, 11]


def test_times_are_in_the_zone_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "at", TIMESTAMPTZ)))
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    created = catalog.create_table("db.t", schema, partition_spec="days(at)")
    table = load_table(created.location())
    with session_conf(spark, "spark.sql.session.timeZone", "Asia/Tokyo"):
        hours = "timestamp'2026-03-01 00:00:00' + make_interval(0, 0, 0, 0, id * 3)"
        table.append(spark.range(24).selectExpr("id", f"{hours} AS at"))
        # 9 o'clock in Tokyo is midnight in UTC, where days begin.
        table.delete("at < '2026-03-01 09:00:00'")
        assert "added-data-files" not in head(table).summary
        table.delete("at >= timestamp'2026-03-03 00:00:00' AND id % 2 = 0")
    assert ids_of(table) == [*range(3, 16), 17, 19, 21, 23]


def test_another_zone_than_that_of_the_session_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Files would be chosen by the one, and their rows by the other."""
    table = people(tmp_path)
    with pytest.raises(InvalidOptionError, match=r"table\.delete .* time zone 'UTC'"):
        table.delete("id % 2 = 0", options={"time-zone": "Asia/Tokyo"})
    assert table.delete("id % 2 = 0", options={"time-zone": "UTC"}).deleted == 6


@pytest.mark.parametrize("days", ["", "day(local)"])
def test_local_times_that_the_zone_of_the_session_skips(
    spark: SparkSession, tmp_path: Path, days: str
) -> None:
    """To Spark a timestamp of half past two is half past three, where clocks are set forward."""
    rows = "1 AS id, timestamp_ntz'2024-03-10 02:30:00' AS local"
    rows = f"SELECT {rows} UNION SELECT 2, timestamp_ntz'2024-03-10 03:30:00'"
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    schema = pa.schema([("id", pa.int32()), ("local", pa.timestamp("us"))])
    table = catalog.create_table("db.t", schema, partition_spec=days)
    table.append(spark.sql(rows))
    with session_conf(spark, "spark.sql.session.timeZone", "America/New_York"):
        table.delete("local = timestamp'2024-03-10 02:30:00'")
    assert table.scan(columns="id").to_arrow()["id"].to_pylist() == [1]


def test_condition_may_be_a_column(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    assert table.delete((f.col("id") > 9) & f.col("name").endswith("1")).deleted == 1
    assert table.delete("substring(name, 2) = '7' OR id = 0").deleted == 2
    assert ids_of(table) == [1, 2, 3, 4, 5, 6, 8, 9, 10]


def test_condition_of_many_values_finds_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Spark shortens it where it shows it."""
    table = people(tmp_path)
    wanted = [f"n{i}" for i in range(500, 600)]
    assert table.delete(f.concat("name", f.lit("")).isin([*wanted, "n3"])).deleted == 1
    assert ids_of(table) == [i for i in range(12) if i != 3]


def test_numbers_are_compared_as_spark_rounds_them(spark: SparkSession, tmp_path: Path) -> None:
    """Two longs next to each other are one double."""
    table = people(tmp_path, count=0)
    table.append(arrow([(2**53, 0, "even"), (2**53 + 1, 1, "odd")]))
    assert spark.sql(f"SELECT {2**53 + 1}L = {2**53}D").first() == (True,)
    assert table.delete(f"id = {2**53}D").deleted == 2


def test_rows_of_an_unknown_answer_stay(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, 2, COPY_ON_WRITE, partition_by="")
    table.update({"name": "null"}, "id = 3")
    assert table.delete("upper(name) <> 'N4'").deleted == 10
    assert ids_of(table) == [3, 4]


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
def test_nothing_is_committed_where_nothing_matches(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    table = people(tmp_path, 2, mode)
    before = table.metadata_location, files_besides_metadata(tmp_path)
    assert table.delete("id + 0 = 99") == RowCounts()
    assert table.delete("part = 99") == RowCounts()
    assert (table.refresh().metadata_location, files_besides_metadata(tmp_path)) == before


def test_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    assert people(tmp_path, count=0).delete("id + 0 = 1") == RowCounts()


def test_branch_is_changed_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    table.delete("id = 1", branch="audit", options={"create-branch": "true"})
    table.delete("id = 2", branch="audit", snapshot_properties={"why": "asked"})
    table.delete("id = 3", options={"wap.branch": "audit"})
    assert ids_of(table) == list(range(12))
    assert ids_of(table, branch="audit") == [0, *range(4, 12)]
    snapshots = [s.summary.get("why") for s in table.refresh().snapshots()]
    assert snapshots.count("asked") == 1


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
def test_rows_keep_their_lineage(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    table = people(tmp_path, 3, mode)
    before = lineage_of(table)
    table.delete("id IN (0, 7)")
    assert lineage_of(table) == {i: known for i, known in before.items() if i not in (0, 7)}


def test_table_that_was_upgraded(spark: SparkSession, tmp_path: Path) -> None:
    """Its position deletes of version 2 go into vectors."""
    table = people(tmp_path, 1, MERGE_ON_READ)
    message = leaves_as_it_was(table, lambda: table.delete("id = 1"), UnsupportedFeatureError)
    assert "version 1" in message
    assert "upgrade(2)" in message
    assert table.upgrade(2).delete("id IN (1, 7)").deleted == 2
    assert table.upgrade(3).delete("id IN (4, 8)").deleted == 2
    assert ids_of(table) == [0, 2, 3, 5, 6, 9, 10, 11]


def test_orc_and_avro_tables(spark: SparkSession, tmp_path: Path) -> None:
    for file_format in ("orc", "avro"):
        for mode in (MERGE_ON_READ, COPY_ON_WRITE):
            directory = tmp_path / file_format / mode
            properties = {"write.format.default": file_format}
            table = people(directory, 2, mode, properties=properties)
            table.delete("id % 4 = 1")
            assert ids_of(table) == [0, 2, 3, 4, 6, 7, 8, 10, 11]


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_granularity_of_delete_files(spark: SparkSession, tmp_path: Path, granularity: str) -> None:
    table = people(tmp_path, 2, properties={"write.delete.granularity": granularity})
    table.delete("id % 6 = 1")
    table.delete("id % 6 = 4")
    assert ids_of(table) == [i for i in range(12) if i % 3 != 1]
    assert head(table).summary["total-delete-files"] == "2"


# What is refused, before anything is written.


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("nope = 1", "`nope`"),
        ("id", "BIGINT"),
        ("rand() > 0.5", "not deterministic"),
        ("max(id) > 5", "max"),
        ("hash(*) = 0", "list the columns"),
    ],
)
def test_condition_that_does_not_fit(
    spark: SparkSession, tmp_path: Path, condition: str, said: str
) -> None:
    table = people(tmp_path)
    assert said in leaves_as_it_was(table, lambda: table.delete(condition), InvalidFilterError)


def test_condition_that_is_none(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    for condition in ("id >", 5):
        message = leaves_as_it_was(
            table,
            lambda condition=condition: table.delete(condition),  # type: ignore[misc]
            InvalidOptionError,
        )
        assert repr(condition) in message


def test_options_and_properties_are_checked(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    set_property(table, "write.delete.mode", "sometimes")
    with pytest.raises(InvalidOptionError, match="expected one of copy-on-write, merge-on-read"):
        table.delete("id % 2 = 0")
    with pytest.raises(InvalidOptionError, match="isolation-level"):
        table.delete("id = 0", options={"isolation-levels": "none"})


def test_failure_leaves_no_files(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    condition = "id = 3 OR id > 6 AND raise_error('stop') IS NULL"
    message = leaves_as_it_was(table, lambda: table.delete(condition), PySparkException)
    assert "stop" in message


def test_another_table_of_the_same_name_is_spared(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    for file in Path(table.location(), "metadata").iterdir():
        file.unlink()
    other = people(tmp_path, count=4)
    with pytest.raises(ValidationError, match="dropped and re-created"):
        table.delete("id = 1")
    assert ids_of(other) == [0, 1, 2, 3]
