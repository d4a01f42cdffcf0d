"""Changes of rows that Spark's own Parquet reader finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions as f
from spark_changes import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    WAYS,
    expected,
    ids_of,
    people,
    person,
    rows_of,
)

from icebergds import Table, load_catalog, load_table, register
from icebergds.operations.read.options import parse_read_options
from icebergds.spark.scan import read_dataframe
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING, NestedField

pytestmark = pytest.mark.spark

MODES = pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])


@pytest.fixture(autouse=True)
def _native_scans(spark: SparkSession) -> Iterator[None]:
    register(spark, reader=False)
    yield
    spark.conf.unset("spark.icebergpy.native-scans")
    spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


def rows_to_change(spark: SparkSession, table: Table, condition: str | None = None) -> DataFrame:
    """Where the rows are that a statement looks at, as it reads them."""
    columns = [("id",), ("_file",), ("_pos",)]
    options = parse_read_options({}, filter=condition, columns=columns)
    return read_dataframe(spark, table._state, replace(options, for_changes=True))


def numbers(directory: Path, mode: str, **properties: str) -> Table:
    """Ids below 10,000 in one file of many row groups and pages, and their texts."""
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "s", STRING)))
    given = {
        "write.parquet.row-group-size-bytes": "8192",
        "write.parquet.page-size-bytes": "1024",
        "write.delete.mode": mode,
        "write.update.mode": mode,
        **properties,
    }
    catalog = load_catalog("lake", warehouse=str(directory))
    table = load_table(catalog.create_table("db.t", schema, properties=given).location())
    ids = pa.array(range(10_000), pa.int64())
    table.append(pa.table({"id": ids, "s": ids.cast("string")}))
    return table


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_delete_update_and_merge(
    spark: SparkSession, tmp_path: Path, version: int, mode: str
) -> None:
    table = people(tmp_path, version, mode)
    assert rows_to_change(spark, table).inputFiles()
    assert table.delete("id + 0 = 4").deleted == 1
    assert table.update({"name": "upper(name)"}, "id + 0 IN (0, 7)").updated == 2
    source = spark.createDataFrame(
        [(2, 2, "m2"), (50, 50, "m50")], "id long, part int, name string"
    )
    merge = table.merge(source, ["id"]).when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute().updated == 1
    kept = [person(i) for i in (1, 3, 5, 6, 8, 9, 10, 11)]
    changed = [(0, 0, "N0"), (7, 1, "N7"), (2, 2, "m2"), (50, 50, "m50")]
    assert rows_of(table) == expected([*kept, *changed])


@MODES
def test_positions_where_row_groups_and_pages_are_skipped(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    table = numbers(tmp_path, mode)
    # Spark pushes these to the file; we plan with none of them.
    wanted = (f.col("id") >= 7_003) & (f.col("id") < 7_010) & (f.length("s") == 4)
    assert table.delete(wanted).deleted == 7
    assert table.update({"s": "'x'"}, f.col("s").isin("123", "9999")).updated == 2
    assert ids_of(table) == [i for i in range(10_000) if not 7_003 <= i < 7_010]
    assert ids_of(table, filter="s = 'x'") == [123, 9_999]


@MODES
@pytest.mark.parametrize("name", ["a b", "50%", "%41", "a+b=c", "@,~"])
def test_paths_that_spark_writes_otherwise(
    spark: SparkSession, tmp_path: Path, mode: str, name: str
) -> None:
    table = people(tmp_path / name, 2, mode, partition_by="name")
    assert table.delete("id + 0 IN (3, 8)").deleted == 2
    assert ids_of(table) == [0, 1, 2, 4, 5, 6, 7, 9, 10, 11]


def test_files_with_deletes_are_found_by_us(spark: SparkSession, tmp_path: Path) -> None:
    """One file is read by Spark's reader, the other by ours: each names it in its own way."""
    table = people(tmp_path, 3, partition_by="")
    for deleted in ("id + 0 = 1", "id + 0 IN (2, 9)", "id + 0 IN (0, 10)"):
        table.delete(deleted)
    assert ids_of(table) == [3, 4, 5, 6, 7, 8, 11]


def test_filters_prune_files_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path)
    assert len(rows_to_change(spark, table, "id > 6 AND part = 1").inputFiles()) == 1
    assert table.delete("id > 7 AND part = 1").deleted == 1
    assert ids_of(table) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11]


@MODES
@pytest.mark.parametrize("transform", ["bucket(3, id)", "truncate(10, id)", "id"])
def test_merges_by_the_column_of_a_partition(
    spark: SparkSession, tmp_path: Path, mode: str, transform: str
) -> None:
    """Files of the partitions that the source is in have other rows, too."""
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    properties = {"write.merge.mode": mode}
    table = catalog.create_table("db.t", schema, partition_spec=transform, properties=properties)
    table.append(pa.table({"id": range(30), "s": ["old"] * 30}, schema=schema))
    source = spark.createDataFrame([(1, "new"), (40, "new")], "id long, s string")
    merge = table.merge(source, "target.id = source.id")
    counts = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (counts.updated, counts.inserted) == (1, 1)
    found = table.scan().to_arrow()
    rows = dict(zip(found["id"].to_pylist(), found["s"].to_pylist(), strict=True))
    assert rows == {i: "new" if i in (1, 40) else "old" for i in (*range(30), 40)}
