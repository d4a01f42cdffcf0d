"""Reads that ask for TIME and for timestamps, in the place of whole numbers."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from built.tables import TableBuilder
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import col
from spark_reads import ids, load, message_of, session_conf
from spark_writes import create, refused, save
from sql_sessions import lake_session, rows

from icebergds import load_table
from icebergds.errors import InvalidOptionError
from icebergds.spec.manifest import FileFormat
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import BucketTransform, IdentityTransform
from icebergds.spec.types import (
    LONG,
    STRING,
    TIME,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    ListType,
    MapType,
    NestedField,
    StructType,
)

pytestmark = pytest.mark.spark

TIMES, MICROS = {"time-as": "time"}, {"timestamp-ns-as": "microseconds"}
NOON = 12 * 3600 * 10**6
TIME_TYPE = "spark.sql.timeType.enabled"

OF_TIMES = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "t", TIME),
        NestedField(3, "s", StructType((NestedField(4, "t", TIME),))),
        NestedField(5, "l", ListType(6, TIME)),
        NestedField(7, "m", MapType(8, STRING, 9, TIME)),
    )
)


def times(tmp_path: Path, file_format: FileFormat = FileFormat.PARQUET) -> Path:
    """Each row is a file of its own."""
    spec = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "t"),))
    builder = TableBuilder(tmp_path / "t", OF_TIMES, spec=spec)
    values = [None, 0, NOON, NOON + 1, 2 * NOON - 1]
    builder.commit(
        *(
            builder.data_file(
                [(at, value, (value,), [value, None], [("k", value)])],
                partition=(value,),
                file_format=file_format,
            )
            for at, value in enumerate(values)
        )
    )
    return builder.location


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO])
def test_times_are_read_as_time_if_asked_for(
    spark: SparkSession, tmp_path: Path, file_format: FileFormat
) -> None:
    path = times(tmp_path, file_format)
    plain = load(spark, path)
    assert plain.schema["t"].dataType.simpleString() == "bigint"
    assert {row.id: row.t for row in plain.collect()}[4] == 2 * NOON - 1
    df = load(spark, path, **TIMES)
    assert df.schema["m"].dataType.simpleString() == "map<string,time(6)>"
    found = {row.id: row for row in df.collect()}
    last = dt.time(23, 59, 59, 999_999)
    assert found[4] == Row(id=4, t=last, s=Row(t=last), l=[last, None], m={"k": last})
    assert found[0] == Row(id=0, t=None, s=Row(t=None), l=[None, None], m={"k": None})
    given = spark.read.format("icebergpy").options(**TIMES).schema("id bigint, t time(6)")
    assert dict(given.load(str(path)).collect())[2] == dt.time(12)


@pytest.mark.parametrize("way", ["source", "pushdown", "registered"])
def test_conditions_on_times_find_their_rows(
    spark: SparkSession, front: SparkSession, tmp_path: Path, way: str
) -> None:
    session = front if way == "registered" else spark
    path = times(tmp_path)
    pushed = str(way == "pushdown").lower()

    def found(condition: Any) -> list[int]:
        # A load of its own: Spark pushes the filters of a query to the next one, too.
        return ids(load(session, path, pushdown=pushed, **TIMES).where(condition))

    with (
        session_conf(spark, TIME_TYPE, "true"),
        session_conf(session, TIME_TYPE, "true"),
        session_conf(session, "spark.sql.python.filterPushdown.enabled", pushed),
    ):
        assert found("t > TIME'12:00:00'") == [3, 4]
        assert found(col("t") <= dt.time(12)) == [1, 2]
        assert found("t IN (TIME'12:00:00', TIME'05:00:00')") == [2]
        assert found("t = '12:00:00.000001'") == [3]
        assert found("hour(t) = 23 OR t IS NULL") == [0, 4]
        assert found("t IS NULL OR t = TIME'00:00:00'") == [0, 1]
        assert found("s.t < TIME'12:00:00' AND m['k'] = TIME'00:00:00'") == [1]
        df = load(session, path, filter="t >= TIME'12:00:00.000001'", **TIMES)
        assert ids(df) == [3, 4]
        assert df.groupBy("t").count().count() == 2
        assert df.selectExpr("max(t)").collect() == [(dt.time(23, 59, 59, 999_999),)]


def test_times_of_spark_are_written(spark: SparkSession, tmp_path: Path) -> None:
    path = times(tmp_path)
    spec = PartitionSpec(0, (PartitionField((2,), 1000, BucketTransform(4), "t_bucket"),))
    copy = TableBuilder(tmp_path / "copy", OF_TIMES, spec=spec)
    copy.commit()
    save(load(spark, path, **TIMES), copy.location)
    save(load(spark, path).where("id > 2"), copy.location)
    assert load_table(copy.location).schema().fields[1].field_type == TIME
    found = [row.t for row in load(spark, copy.location).where("id = 3 OR id = 0").collect()]
    assert sorted(found, key=str) == [NOON + 1, NOON + 1, None]
    made = create(load(spark, path, **TIMES).select("t"), tmp_path / "made")
    assert load_table(made).schema().fields[0].field_type == TIME
    # Which buckets the rows are in is what both writes agree on.
    scan = load_table(copy.location).scan(filter="t = TIME'12:00:00.000001'")
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [3, 3]


def test_streams_carry_times(spark: SparkSession, tmp_path: Path) -> None:
    path = times(tmp_path)
    source = spark.readStream.format("icebergpy").options(**TIMES).load(str(path))
    copy = create(spark.createDataFrame([], source.schema), tmp_path / "copy")
    with session_conf(spark, TIME_TYPE, "true"):
        query = (
            source.writeStream.format("icebergpy")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(copy))
        )
        query.awaitTermination()
    assert sorted(load(spark, copy).collect()) == sorted(load(spark, path).collect())


def test_spark_refuses_time_in_most_queries(spark: SparkSession, tmp_path: Path) -> None:
    """Once it does not, TIME can be what times are read as, without an option."""
    df = load(spark, times(tmp_path), **TIMES)
    assert spark.conf.get(TIME_TYPE) == "false"
    assert "TIME is not supported" in message_of(df.count)
    assert load(spark, tmp_path / "t").count() == 5


# Nanoseconds

OF_NANOS = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "ts", TIMESTAMP_NS),
        NestedField(3, "tz", TIMESTAMPTZ_NS),
        NestedField(4, "s", StructType((NestedField(5, "l", ListType(6, TIMESTAMP_NS)),))),
    )
)
AFTER = dt.datetime(2026, 1, 2, 3, 4, 5, 678_901)
NANOS = 1_767_323_045_678_901_234


def nanos(tmp_path: Path) -> Path:
    builder = TableBuilder(tmp_path / "t", OF_NANOS, format_version=3)
    rows = [(1, NANOS, NANOS, ([NANOS],)), (2, -1, -1, ([None],)), (3, None, None, None)]
    builder.commit(*(builder.data_file([row]) for row in rows))
    return builder.location


@pytest.mark.parametrize("is_registered", [False, True])
def test_nanoseconds_are_rounded_down_if_asked_for(
    spark: SparkSession, front: SparkSession, tmp_path: Path, is_registered: bool
) -> None:
    session = front if is_registered else spark
    path = nanos(tmp_path)
    plain = {row.id: row for row in load(session, path).collect()}
    assert (plain[1].ts, plain[1].s.l, plain[2].tz) == (NANOS, [NANOS], -1)
    df = load(session, path, **MICROS)
    assert df.schema.simpleString() == (
        "struct<id:bigint,ts:timestamp_ntz,tz:timestamp,s:struct<l:array<timestamp_ntz>>>"
    )
    found = {row.id: row for row in df.collect()}
    assert (found[1].ts, found[1].s.l) == (AFTER, [AFTER])
    assert found[2].ts == dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    assert found[3].ts is None
    # The rounded values meet the conditions, not those that are stored.
    assert ids(df.where("ts = timestamp_ntz'2026-01-02 03:04:05.678901'")) == [1]
    assert ids(df.where("ts <= timestamp_ntz'2026-01-02 03:04:05.678901'")) == [1, 2]
    assert ids(df.where(df.ts > AFTER)) == []
    assert df.selectExpr("max(ts)").collect() == [(AFTER,)]


def test_queries_of_views_see_rounded_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_session(spark, tmp_path)
    nanos(tmp_path)
    load(lake, tmp_path / "t", **MICROS).createOrReplaceTempView("rounded")
    where = "ts <= timestamp_ntz'2026-01-02 03:04:05.678901'"
    assert rows(lake, f"SELECT count(*), max(ts) FROM rounded WHERE {where}") == [(2, AFTER)]
    lake.sql(
        f"CREATE TEMPORARY VIEW named USING icebergpy OPTIONS (path '{tmp_path / 't'}', "
        "'timestamp-ns-as' 'microseconds')"
    )
    assert rows(lake, f"SELECT id FROM named WHERE {where} ORDER BY id") == [(1,), (2,)]


def test_rounded_timestamps_are_written_as_what_they_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = nanos(tmp_path)
    save(load(spark, path, **MICROS).where("id = 1").drop("s"), path)
    stored = load_table(path).scan(filter="id = 1").to_arrow()["ts"].cast("int64").to_pylist()
    assert sorted(stored) == [NANOS // 1000 * 1000, NANOS]
    assert "cannot store" in refused(spark.sql("SELECT 'x' AS ts"), path)


def test_other_values_of_the_options_are_refused(tmp_path: Path) -> None:
    table = load_table(str(nanos(tmp_path)))
    for option in ("time-as", "timestamp-ns-as"):
        with pytest.raises(InvalidOptionError, match=option):
            table.scan(options={option: "string"}).to_arrow()


def test_pyspark_has_no_timestamps_of_nanoseconds(spark: SparkSession) -> None:
    """Once it has, they are what columns of nanoseconds can be read as."""
    with session_conf(spark, "spark.sql.timestampNanosTypes.enabled", "true"):
        query = "SELECT CAST(null AS timestamp_ntz(9)) AS t"
        with pytest.raises(PySparkException, match=r"(?i)PARSE|timestamp_ntz\(9\)"):
            _ = spark.sql(query).schema
