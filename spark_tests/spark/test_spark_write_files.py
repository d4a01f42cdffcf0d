"""How many files a write makes, of which format, sorted or not."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from built.contents import live_files
from fastavro import reader as avro_reader
from pyspark.sql import DataFrame, SparkSession
from spark_reads import ids, load
from spark_writes import (
    create,
    ids_in_files,
    planned_write,
    save,
)

from icebergds import load_table
from icebergds.errors import InvalidOptionError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

PARTITIONED = {"create": "true", "partition-by": "part"}
SORTED = {**PARTITIONED, "sort-by": "id"}


def scattered(spark: SparkSession) -> DataFrame:
    """40 ids, each of two tasks with rows of all four parts, in falling order."""
    return spark.range(0, 40, 1, 2).selectExpr("39 - id AS id", "cast(id % 4 AS int) AS part")


def files_per_part(path: Path) -> Counter[int]:
    return Counter(file.partition[0] for file in live_files(path))


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_format_and_codec_are_those_of_the_options(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    codec = {"parquet": "snappy", "orc": "zlib", "avro": "gzip"}[file_format]
    options = {"write-format": file_format, "compression-codec": codec}
    path = create(spark.range(100).coalesce(1), tmp_path / "t", **options)
    (file,) = live_files(path)
    assert file.file_path.endswith(f".{file_format}")
    if file_format == "parquet":
        column = pq.ParquetFile(file.file_path).metadata.row_group(0).column(0)
        assert column.compression == "SNAPPY"
    if file_format == "avro":
        with open(file.file_path, "rb") as opened:
            assert avro_reader(opened).metadata["avro.codec"] == "deflate"
    assert ids(load(spark, path)) == list(range(100))


def test_codec_that_a_format_lacks_is_refused_when_planned(tmp_path: Path) -> None:
    options = {"create": "true", "write-format": "avro", "compression-codec": "brotli"}
    with pytest.raises(InvalidOptionError, match="Avro files do not support"):
        planned_write("id long", tmp_path / "t", **options)


def test_target_size_ends_files(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(60_000).coalesce(1).selectExpr("id", "uuid() AS u")
    path = create(rows, tmp_path / "t", **{"target-file-size-bytes": "500000"})
    files = live_files(path)
    assert 3 <= len(files) <= 8
    assert sum(file.record_count for file in files) == 60_000
    assert load(spark, path).count() == 60_000


@pytest.mark.parametrize(
    ("mode", "most"),
    [("none", 8), ("hash", 4), ("range", 4)],
)
def test_shuffled_rows_of_a_partition_are_in_one_file(
    spark: SparkSession, tmp_path: Path, mode: str, most: int
) -> None:
    planned_write("id long, part int", tmp_path / "t", **PARTITIONED).commit([])
    table = load_table(tmp_path / "t")
    table.append(scattered(spark), options={"distribution-mode": mode})
    per_part = files_per_part(tmp_path / "t")
    assert sorted(per_part) == [0, 1, 2, 3]
    # By range, the two tasks may share the part that is in the middle.
    assert most <= per_part.total() <= most + (mode == "range")
    assert table.current_snapshot() is not None
    assert ids(load(spark, tmp_path / "t")) == list(range(40))


def test_table_s_own_mode_holds_where_the_write_says_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {**PARTITIONED, "table-property.write.distribution-mode": "none"}
    planned_write("id long, part int", tmp_path / "t", **options).commit([])
    load_table(tmp_path / "t").append(scattered(spark))
    assert files_per_part(tmp_path / "t").total() == 8


def test_partitioned_table_is_shuffled_by_default(spark: SparkSession, tmp_path: Path) -> None:
    planned_write("id long, part int", tmp_path / "t", **PARTITIONED).commit([])
    table = load_table(tmp_path / "t")
    # The columns in another case and order.
    table.append(scattered(spark).selectExpr("part AS Part", "id AS ID"))
    assert files_per_part(tmp_path / "t") == {0: 1, 1: 1, 2: 1, 3: 1}


def test_rows_without_the_partitioned_column_are_shuffled_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"create": "true", "partition-by": "part, bucket(2, id)", "sort-by": "part, id"}
    planned_write("id long, part int", tmp_path / "t", **options).commit([])
    load_table(tmp_path / "t").append(spark.range(40))
    assert {file.partition for file in live_files(tmp_path / "t")} == {(None, 0), (None, 1)}
    assert ids(load(spark, tmp_path / "t")) == list(range(40))


@pytest.mark.parametrize("how", ["df.write", "append", "append by hash"])
def test_sorted_table_has_sorted_files_that_say_so(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    path = tmp_path / "t"
    planned_write("id long, part int", path, **SORTED).commit([])
    if how == "df.write":
        save(scattered(spark), path)
    else:
        options = {"distribution-mode": "hash"} if how == "append by hash" else {}
        load_table(path).append(scattered(spark), options=options)
    assert all(stored == sorted(stored) for stored in ids_in_files(path))
    order_id = load_table(path).sort_order().order_id
    assert {file.sort_order_id for file in live_files(path)} == {order_id}


def test_rows_as_they_come_are_not_called_sorted(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    planned_write("id long, part int", path, **SORTED).commit([])
    save(scattered(spark), path, **{"use-table-distribution-and-ordering": "false"})
    assert {file.sort_order_id for file in live_files(path)} == {0}


def test_frames_overwrite_through_a_table(spark: SparkSession, tmp_path: Path) -> None:
    planned_write("id long, part int", tmp_path / "t", **PARTITIONED).commit([])
    table = load_table(tmp_path / "t")
    rows = scattered(spark)
    table.append(rows)
    table.dynamic_partition_overwrite(rows.where("part = 1 AND id < 10"))
    table.overwrite(rows.where("part = 2 AND id < 10"), overwrite_filter="part = 2")
    kept = [row.id for row in rows.where("part IN (0, 3) OR id < 10").collect()]
    assert ids(load(spark, tmp_path / "t")) == sorted(kept)
    table.overwrite(rows.where("id = 0"))
    assert ids(load(spark, tmp_path / "t")) == [0]


def test_table_s_mode_that_is_none_is_refused(tmp_path: Path) -> None:
    options = {**PARTITIONED, "table-property.write.distribution-mode": "sorted"}
    with pytest.raises(InvalidOptionError, match="expected one of none, hash, range"):
        planned_write("id long, part int", tmp_path / "t", **options)


def test_unshuffled_write_of_partitions_says_what_it_costs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    planned_write("id long, part int", tmp_path / "t", **PARTITIONED)
    (line,) = caplog.messages
    assert "is partitioned by part" in line
    assert "table" in line
    assert ".append(df)" in line


@pytest.mark.parametrize(
    "options",
    [
        {"create": "true"},
        {**PARTITIONED, "distribution-mode": "none"},
        {**PARTITIONED, "use-table-distribution-and-ordering": "false"},
        {**PARTITIONED, "table-property.write.distribution-mode": "none"},
        {"create": "true", "partition-by": "void(part)"},
    ],
    ids=["unpartitioned", "option", "own order", "table property", "dropped partitions"],
)
def test_write_that_wants_no_shuffle_is_quiet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: dict[str, str]
) -> None:
    with caplog.at_level(logging.WARNING):
        planned_write("id long, part int", tmp_path / "t", **options)
    assert caplog.messages == []
