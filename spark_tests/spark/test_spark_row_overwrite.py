"""`Table.overwrite` with a filter that takes only some rows of files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions as f
from spark_changes import (
    COPY_ON_WRITE,
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

from icebergds import load_table
from icebergds.errors import (
    InvalidDataError,
    InvalidFilterError,
    InvalidOptionError,
    ValidationError,
)

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

NEW = "id long, part int, name string"


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_rows_of_the_filter_go_and_the_new_ones_come(
    spark: SparkSession, tmp_path: Path, version: int, mode: str
) -> None:
    table = people(tmp_path, version, mode)
    before = len(table.snapshots())
    df = spark.createDataFrame([(100, 1, "x"), (101, 7, None)], NEW)
    table.overwrite(df, "id > 3 AND id <> 8")
    kept = [person(i) for i in (0, 1, 2, 3, 8)]
    assert rows_of(table) == expected([*kept, (100, 1, "x"), (101, 7, None)])
    assert (len(table.snapshots()) - before, head(table).operation) == (1, "overwrite")


def test_filter_that_only_spark_understands(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    table.overwrite(spark.createDataFrame([(100, 1, "x")], NEW), "substring(name, 2) = '7'")
    assert ids_of(table) == [i for i in range(12) if i != 7] + [100]


def test_filter_may_be_a_column(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    new = spark.createDataFrame([(100, 1, "x")], NEW)
    table.overwrite(new, (f.col("id") > 2) & f.col("name").endswith("7"))
    assert ids_of(table) == [i for i in range(12) if i != 7] + [100]
    table.overwrite(new, f.col("part") == 1)
    assert ids_of(table) == [0, 2, 3, 5, 6, 8, 9, 11, 100]
    with pytest.raises(InvalidOptionError, match="needs the rows as a Spark DataFrame"):
        table.overwrite(arrow([person(1)]), f.col("id") == 1)
    with pytest.raises(InvalidOptionError, match="expected SQL text or a Column"):
        table.overwrite(new, 5)  # type: ignore[arg-type]


def test_option_of_another_write_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    new = spark.createDataFrame([(100, 1, "x")], NEW)
    with pytest.raises(InvalidOptionError, match="does not take option 'write-operation'"):
        table.overwrite(
            new, f.col("id") > 2, options={"write-operation": "upsert", "upsert-keys": "id"}
        )
    assert ids_of(table) == list(range(12))


def test_filter_of_a_table_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=0)
    table.overwrite(spark.createDataFrame([(100, 1, "x")], NEW), f.col("id") == 1)
    assert ids_of(table) == [100]


def test_new_rows_lack_columns_and_order_them_as_they_like(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path, 3, partition_by="")
    table.overwrite(spark.range(50, 52).select(f.lit("n").alias("name"), "id"), "id < 3")
    assert rows_of(table, filter="id >= 50") == [(50, None, "n"), (51, None, "n")]
    assert ids_of(table) == [*range(3, 12), 50, 51]


def test_filter_of_whole_files_needs_no_delete_files(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    table.overwrite(spark.createDataFrame([(100, 1, "x")], NEW), "part = 1")
    assert "added-delete-files" not in head(table).summary
    assert ids_of(table) == [0, 2, 3, 5, 6, 8, 9, 11, 100]


def test_no_new_rows_delete_those_of_the_filter(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    table.overwrite(spark.createDataFrame([], NEW), "id < 2")
    assert ids_of(table) == list(range(2, 12))


def test_filter_of_no_row_appends(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, mode=COPY_ON_WRITE)
    table.overwrite(spark.createDataFrame([(100, 1, "x")], NEW), "id + 0 = 99")
    assert ids_of(table) == [*range(12), 100]


def test_rows_that_stay_keep_their_ids(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, 3, COPY_ON_WRITE, partition_by="")
    before = lineage_of(table)
    table.overwrite(spark.createDataFrame([(100, 1, "x")], NEW), "id = 4")
    after = lineage_of(table)
    assert {i: after[i] for i in before if i != 4} == {i: before[i] for i in before if i != 4}
    assert after[100][0] not in {row_id for row_id, _ in before.values()}


def test_rows_that_others_added_meanwhile_are_a_conflict(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path)
    df = meanwhile_appended(spark.createDataFrame([(100, 1, "x")], NEW), table, (4, 1, "late"))
    with pytest.raises(ValidationError, match="added"):
        table.overwrite(df, "id > 3 AND id < 9")
    assert ids_of(table) == sorted([*range(12), 4])


@pytest.mark.parametrize("condition", ["part = 1", "id < 5 AND part = 1", "id + 0 = 4"])
def test_rows_that_others_added_since_the_table_was_loaded_are_a_conflict(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    """Whether the condition takes whole files, some rows of them, or only Spark can tell."""
    table = people(tmp_path)
    load_table(table.location()).append(arrow([(4, 1, "late")]))
    new = spark.createDataFrame([(100, 1, "x")], NEW)
    with pytest.raises(ValidationError, match="added"):
        table.overwrite(new, condition)
    assert ids_of(table.refresh()) == sorted([*range(12), 4])
    table.overwrite(new, condition)
    assert 100 in ids_of(table)


def test_repeated_overwrite_does_not_conflict_with_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As after a commit whose answer was lost."""
    table = people(tmp_path)
    new, once = spark.createDataFrame([(4, 1, "x")], NEW), {"txn-app-id": "job", "txn-version": "1"}
    load_table(table.location()).overwrite(new, "id + 0 = 4", options=once)
    table.overwrite(new, "id + 0 = 4", options=once)
    assert ids_of(table) == list(range(12))


def test_commits_to_other_rows_do_not_disturb(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    load_table(table.location()).append(arrow([(50, 2, "late")]))
    table.overwrite(spark.createDataFrame([(100, 1, "x")], NEW), "id < 5 AND part = 1")
    assert ids_of(table) == [0, 2, 3, *range(5, 12), 50, 100]


@pytest.mark.parametrize(
    ("df", "condition", "error", "message"),
    [
        ("id long, nme string", "id = 1", InvalidDataError, "nme"),
        ("id long, _file string", "id = 1", InvalidDataError, "no column _file"),
        ("id long, _row_id long", "id = 1", InvalidDataError, "no column _row_id"),
        ("id long, ID long", "id = 1", InvalidDataError, "two columns with the same name"),
        ("id string", "id = 1", InvalidDataError, "'id'"),
        (NEW, "idd = 1", InvalidFilterError, "idd"),
        (NEW, "rand() < 0.5", InvalidFilterError, "deterministic"),
    ],
)
def test_what_does_not_fit_is_refused(
    spark: SparkSession,
    tmp_path: Path,
    df: str,
    condition: str,
    error: type[Exception],
    message: str,
) -> None:
    table = people(tmp_path)
    empty = spark.createDataFrame([], df)
    assert message in leaves_as_it_was(table, lambda: table.overwrite(empty, condition), error)


def test_rows_of_arrow_replace_parts_of_files_too(tmp_path: Path) -> None:
    table = people(tmp_path)
    table.overwrite(arrow([person(50)]), "id > 3")
    assert ids_of(table) == [0, 1, 2, 3, 50]


def test_rows_of_arrow_replace_whole_files(tmp_path: Path) -> None:
    table = people(tmp_path)
    table.overwrite(pa.table({"id": pa.array([50])}), "part = 2")
    assert ids_of(table) == [0, 1, 3, 4, 6, 7, 9, 10, 50]
