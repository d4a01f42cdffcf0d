"""Values of every type of Spark, written and read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from built.contents import files_besides_metadata, live_files
from built.tables import TableBuilder
from pyspark.sql import DataFrame, SparkSession
from spark_reads import load, message_of, session_conf
from spark_writes import create, planned_write, save

from icebergds import load_table
from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    TIME,
    TIMESTAMP_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    FixedType,
    IcebergType,
    NestedField,
)

pytestmark = pytest.mark.spark

VALUES = """
    true AS b, -1Y AS tiny, 300S AS small, -2147483648 AS i, 9223372036854775807L AS l,
    float('nan') AS f, -0.0D AS d, -1.25BD AS dec, cast(-0.5 AS decimal(38, 10)) AS wide,
    'größe' AS s, cast('ab' AS char(4)) AS c, cast('ab' AS varchar(4)) AS v, X'00FF' AS bin,
    date'0001-01-01' AS dt, timestamp'2026-07-01 12:00:00.123456' AS ts,
    timestamp_ntz'1969-12-31 23:59:59' AS ntz,
    named_struct('a', 1, 'b', array(named_struct('c', 'x'), null)) AS st,
    map('k', named_struct('z', 1), 'n', null) AS m, array(array(1, null), null) AS nested,
    cast(null AS struct<x: int>) AS null_struct
"""


def rows_of(df: DataFrame) -> list[str]:
    """Rows as text, in which NaN equals itself and -0.0 is not 0.0."""
    return sorted(map(str, df.collect()))


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_every_type_comes_back_as_it_was(
    spark: SparkSession, tmp_path: Path, file_format: str
) -> None:
    rows = spark.sql(f"SELECT {VALUES} FROM range(2)")
    with session_conf(spark, "spark.sql.session.timeZone", "America/New_York"):
        path = create(rows, tmp_path / "t", **{"write-format": file_format})
        written = load(spark, path)
        assert rows_of(written) == rows_of(rows)
    assert written.schema["tiny"].dataType.simpleString() == "int"
    assert all(file.endswith(file_format) for file in files_besides_metadata(path))


def test_instants_do_not_depend_on_the_session_s_zone(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT timestamp'2026-03-01 23:30:00 America/New_York' AS ts"
    with session_conf(spark, "spark.sql.session.timeZone", "America/New_York"):
        path = create(spark.sql(query), tmp_path / "t", **{"partition-by": "days(ts)"})
    # Days of partitions are those of UTC.
    (file,) = files_besides_metadata(path)
    assert "ts_day=2026-03-02" in file
    found = load_table(path).scan().to_arrow()["ts"].to_pylist()
    assert [value.isoformat() for value in found] == ["2026-03-02T04:30:00+00:00"]


def test_batches_of_large_strings_are_taken(spark: SparkSession, tmp_path: Path) -> None:
    with session_conf(spark, "spark.sql.execution.arrow.useLargeVarTypes", "true"):
        path = create(spark.sql("SELECT 'a' AS s, X'01' AS b, array('x') AS l"), tmp_path / "t")
    (row,) = load(spark, path).collect()
    assert (row.s, bytes(row.b), row.l) == ("a", b"\x01", ["x"])


def test_void_is_the_unknown_type(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql("SELECT 1 AS id, null AS n")
    path = create(rows, tmp_path / "t", **{"format-version": "3"})
    assert load_table(path).schema().fields[1].field_type == UNKNOWN
    assert [tuple(row) for row in load(spark, path).collect()] == [(1, None)]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_variants_are_written(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    query = """
        SELECT id, if(id = 1, null, parse_json('{"a": [1, "x"]}')) AS v,
               named_struct('w', parse_json('1.5')) AS s,
               array(parse_json('null'), null) AS l, map('k', parse_json('{}')) AS m
        FROM range(2)
    """
    rows = spark.sql(query)
    options = {"format-version": "3", "write-format": file_format}
    path = create(rows, tmp_path / "t", **options)
    save(rows, path)
    assert load_table(path).schema().fields[1].field_type == VARIANT
    columns = ["id", *(f"to_json({name}) AS {name}" for name in ("v", "s", "l", "m"))]
    read = [tuple(row) for row in load(spark, path).selectExpr(*columns).collect()]
    rest = ('{"w":1.5}', "[null,null]", '{"k":{}}')
    assert sorted(read) == sorted(2 * [(0, '{"a":[1,"x"]}', *rest), (1, None, *rest)])


def test_spark_s_own_reader_knows_variants(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql("SELECT parse_json(concat('{\"a\":', id, '}')) AS v FROM range(2)")
    path = create(rows, tmp_path / "t", **{"format-version": "3"})
    read = spark.read.parquet(*(file.file_path for file in live_files(path)))
    assert read.schema["v"].dataType.simpleString() == "variant"
    found = read.selectExpr("variant_get(v, '$.a', 'int')").collect()
    assert sorted(row[0] for row in found) == [0, 1]


def test_variants_need_format_version_3(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidMetadataError, match="'v' is of type variant, which format version 2"
    ):
        planned_write("v variant", tmp_path / "t", create="true")
    assert not (tmp_path / "t").exists()


def test_format_that_cannot_hold_a_column_is_refused_when_planned(tmp_path: Path) -> None:
    options = {"create": "true", "format-version": "3"}
    with pytest.raises(UnsupportedFeatureError, match="Parquet cannot store list<unknown>"):
        planned_write("v array<void>", tmp_path / "t", **options)


def test_times_are_written(spark: SparkSession, tmp_path: Path) -> None:
    with session_conf(spark, "spark.sql.timeType.enabled", "true"):
        path = create(spark.sql("SELECT time'12:13:14.123456' AS t"), tmp_path / "t")
    assert load_table(path).schema().fields[0].field_type == TIME
    assert load(spark, path).collect()[0].t == 43_994_123_456


@pytest.mark.parametrize(
    ("field_type", "value", "stored"),
    [
        (UUID, "'00010203-0405-0607-0809-0A0B0C0D0E0F'", "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (FixedType(2), "X'0102'", b"\x01\x02"),
        (TIME, "43994123456L", 43_994_123_456),
        (TIMESTAMP_NS, "1L", 1),
    ],
    ids=str,
)
def test_types_that_spark_lacks_take_what_it_reads_them_as(
    spark: SparkSession, tmp_path: Path, field_type: IcebergType, value: str, stored: Any
) -> None:
    schema = Schema((NestedField(1, "x", field_type),))
    TableBuilder(tmp_path / "t", schema, format_version=3).commit()
    save(spark.sql(f"SELECT {value} AS x"), tmp_path / "t")
    (row,) = load(spark, tmp_path / "t").collect()
    assert row.x == stored


def test_value_that_does_not_fit_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    TableBuilder(tmp_path / "t", Schema((NestedField(1, "x", UUID),))).commit()
    message = message_of(lambda: save(spark.sql("SELECT 'no' AS x"), tmp_path / "t"))
    assert "'no' is not a UUID" in message
    assert files_besides_metadata(tmp_path / "t") == set()
