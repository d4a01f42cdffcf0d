"""Maintenance of tables by Spark tasks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from built.contents import data_files, live_files
from pyspark.sql import Row, SparkSession
from stored_bytes import files_with

from icebergds import Schema, Table, load_catalog
from icebergds.errors import CorruptFileError
from icebergds.spec.types import LONG, UUID, FixedType, NestedField

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

COLUMNS = ["id", "day", "_row_id", "_last_updated_sequence_number"]


def table_of(spark: SparkSession, warehouse: Path) -> Table:
    """500 rows in five appends, a tenth of them deleted."""
    lake = load_catalog("lake", warehouse=str(warehouse))
    lake.create_namespace("db")
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = lake.create_table(
        "db.t", "id bigint, day int", partition_spec="day", properties=properties
    )
    for start in range(0, 500, 100):
        table.append(spark.range(start, start + 100).selectExpr("id", "cast(id % 2 as int) as day"))
    table.delete("id % 10 = 4")
    return table


def rows_of(spark: SparkSession, table: Table) -> list[Row]:
    return table.scan(columns=COLUMNS).to_df(spark).orderBy("id").collect()


def test_files_are_rewritten_by_tasks_and_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(spark, tmp_path)
    before = rows_of(spark, table)
    done = table.rewrite_data_files(options={"rewrite-all": "true"})
    assert done.added_data_files_count == 2
    assert done.rewritten_data_files_count > 2
    assert rows_of(spark, table) == before


def test_sorted_files_do_not_overlap_and_have_the_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = table_of(spark, tmp_path)
    before = rows_of(spark, table)
    size = sum(file.file.file_size_in_bytes for file in table.scan().plan_files()) // 4
    options = {"rewrite-all": "true", "target-file-size-bytes": str(size)}
    table.rewrite_data_files("sort", sort_order="id desc", options=options)
    assert rows_of(spark, table) == before
    files = live_files(table.location())
    assert len(files) > 2
    for day in (0, 1):
        ranges = sorted(
            tuple(
                int.from_bytes(bounds[1], "little")
                for bounds in (file.lower_bounds, file.upper_bounds)
            )
            for file in files
            if file.partition == (day,)
        )
        assert all(low[1] < high[0] for low, high in pairwise(ranges))
    ids = pq.read_table(files[0].file_path)["id"].to_pylist()
    assert ids == sorted(ids, reverse=True)


def test_the_order_of_the_table_is_stamped_on_sorted_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = load_catalog("lake", warehouse=str(tmp_path))
    lake.create_namespace("db")
    types = {"id": LONG, "u": UUID, "f": FixedType(2)}
    fields = [NestedField(i, name, kind) for i, (name, kind) in enumerate(types.items(), 1)]
    table = lake.create_table("db.t", Schema(tuple(fields)), sort_order="id")
    rows = spark.sql(
        "SELECT id, '00000000-0000-0000-0000-00000000000' || (id % 10) AS u, X'0102' AS f "
        "FROM range(100)"
    )
    table.append(rows.orderBy("id", ascending=False))
    table.rewrite_data_files("sort", options={"rewrite-all": "true"})
    assert [file.sort_order_id for file in live_files(table.location())] == [1]
    assert table.scan().to_df(spark).exceptAll(rows).count() == 0


def test_a_sort_of_a_damaged_file_fails_and_leaves_no_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = load_catalog("lake", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", "id bigint, data string")
    for _ in range(2):
        table.append(spark.range(1000).selectExpr("id", "concat('data ', id) AS data").coalesce(1))
    # The sample of ids does not see it.
    path = Path(live_files(table.location())[1].file_path)
    chunk = pq.read_metadata(path).row_group(0).column(1)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    damaged = bytearray(path.read_bytes())
    damaged[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(damaged)
    before = data_files(table.location())
    with pytest.raises(CorruptFileError, match=path.name):
        table.rewrite_data_files("sort", sort_order="id", options={"rewrite-all": "true"})
    assert data_files(table.location()) == before


@pytest.mark.parametrize("strategy", ["zorder", "hilbert"])
def test_files_along_a_curve_are_narrow_in_each_column(
    spark: SparkSession, tmp_path: Path, strategy: str
) -> None:
    lake = load_catalog("lake", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", "x int, y string, z array<int>")
    rows = spark.range(4096).selectExpr(
        "cast(id % 64 AS int) AS x", "'prefix-' || lpad(id div 64, 5, '0') AS y", "array(1) AS z"
    )
    table.append(rows.repartition(4))
    size = sum(file.file.file_size_in_bytes for file in table.scan().plan_files()) // 8
    options = {"rewrite-all": "true", "target-file-size-bytes": str(size)}
    table.rewrite_data_files(strategy, sort_order="x, y", options=options)
    assert table.scan().to_df(spark).exceptAll(rows).count() == 0
    files = len(live_files(table.location()))
    assert files >= 4
    for condition in ("x = 5", "y = 'prefix-00050'"):
        assert len(table.scan(condition).plan_files()) <= files * 3 / 4


def test_columns_are_sketched_by_tasks(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(spark, tmp_path)
    table.set_properties({"read.split.open-file-cost": "67108864"})
    file = table.compute_table_stats()
    assert file is not None
    assert [blob.properties["ndv"] for blob in file.blob_metadata] == ["450", "2"]


@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read", "upsert", "update", "merge"])
def test_changed_rows_go_for_good(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    lake = load_catalog("lake", warehouse=str(tmp_path))
    lake.create_namespace("db")
    mode = "copy-on-write" if kind == "copy-on-write" else "merge-on-read"
    properties = {
        "format-version": "3",
        "write.parquet.compression-codec": "uncompressed",
        "write.delete.mode": mode,
        "write.update.mode": mode,
        "write.merge.mode": mode,
    }
    table = lake.create_table("db.t", "id bigint, name string", properties=properties)
    old, new = "(1, 'a'), (7, 'erase-me-1234')", "(7, 'b')"
    table.append(spark.sql(f"SELECT * FROM VALUES {old} AS t(id, name)").coalesce(1))
    changes = spark.sql(f"SELECT * FROM VALUES {new} AS t(id, name)")
    match kind:
        case "upsert":
            table.upsert(changes, ["id"])
        case "update":
            table.update({"name": "'b'"}, "id = 7")
        case "merge":
            merge = table.merge(changes, "target.id = source.id")
            merge.when_matched_update_all().execute()
        case _:
            table.delete("id = 7")
    before = table.scan().to_df(spark).orderBy("id").collect()
    found = table.find_stored_rows("name = 'erase-me-1234'", spark=spark)
    assert 1 in [file.rows for file in found.files]
    assert table.maintain(purge_deleted=True, spark=spark).is_purged
    assert table.find_stored_rows("name = 'erase-me-1234'", spark=spark).is_gone
    assert files_with(tmp_path, "erase-me-1234") == set()
    assert table.scan().to_df(spark).orderBy("id").collect() == before
