"""ORC files that Spark itself wrote, as data files of a table."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest
from built.schemas import optional
from built.tables import TableBuilder
from effort import some
from pyspark.sql import DataFrame, SparkSession
from spark_reads import load, session_conf

from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import DATE, INT, TIMESTAMP, ListType, MapType, StructType

pytestmark = pytest.mark.spark

SCHEMA = Schema(
    (
        optional(1, "id", INT),
        optional(2, "t", TIMESTAMP),
        optional(3, "l", ListType(4, TIMESTAMP)),
        optional(5, "m", MapType(6, INT, 7, StructType((optional(8, "x", TIMESTAMP),)))),
        optional(9, "d", DATE),
    )
)
FIRST, LAST = -62_135_500_000_000_000, 253_402_200_000_000_000
# From 1582-10-04 to 1582-10-16: the calendar of ORC's writers lacks days, which they move.
NO_DAYS = -12_220_243_200_000_000, -12_219_206_400_000_000


def micros_in_runs(chance: random.Random) -> list[int | None]:
    """Times of all centuries, in runs that Spark stores in each of the run-length encodings."""

    def anywhere() -> int | None:
        moment = chance.randrange(FIRST, LAST)
        if NO_DAYS[0] <= moment < NO_DAYS[1]:
            moment = NO_DAYS[1]
        # No writer of ORC can store fractions of the last second before 1970.
        return chance.choice([moment, moment // 1_000_000 * 1_000_000, 0, None])

    return [
        *[anywhere() for _ in range(2000)],
        *[LAST + 999_999] * 700,
        *[FIRST] * 4,
        *[None] * 300,
        *[FIRST + step * 70_000_000_000_000 for step in range(1000)],
        *[LAST if chance.random() < 0.02 else chance.randrange(10**8) for _ in range(600)],
    ]


@pytest.mark.parametrize(
    ("version", "codec"),
    some(list(product(["0.11", "0.12"], ["none", "zlib", "snappy", "lz4", "zstd"])), 4),
)
def test_timestamps_are_those_that_spark_wrote(
    spark: SparkSession, tmp_path: Path, rng: random.Random, codec: str, version: str
) -> None:
    zone = spark.sparkContext._jvm.java.util.TimeZone.getDefault().getID()
    with session_conf(spark, "spark.sql.session.timeZone", zone):
        written = times(spark, micros_in_runs(rng))
        options = {"compression": codec, "orc.write.format": version, "orc.stripe.size": "50000"}
        written.write.options(**options).orc(str(tmp_path / "orc"))
        # Spark reads its files back by itself.
        expected = on_the_clock(spark.read.orc(str(tmp_path / "orc")))
        assert expected == on_the_clock(written)
        table = TableBuilder(tmp_path / "t", SCHEMA)
        table.commit(*map(data_file, sorted((tmp_path / "orc").glob("*.orc"))))
        assert load(spark, str(table.location)).orderBy("id").collect() == expected


def times(spark: SparkSession, micros: list[int | None]) -> DataFrame:
    raw = spark.createDataFrame(list(enumerate(micros)), "id int, n bigint").coalesce(1)
    return raw.selectExpr(
        "id",
        "timestamp_micros(n) AS t",
        "array(timestamp_micros(n), null, timestamp_micros(-id * 1000000000000L)) AS l",
        "if(id % 3 = 0, null, map(id, named_struct('x', timestamp_micros(n)))) AS m",
        "cast(timestamp_micros(n) AS date) AS d",
    )


def on_the_clock(rows: DataFrame) -> list[object]:
    """The rows with the local times that the session's clock shows."""
    types = "array<timestamp_ntz>", "map<int, struct<x: timestamp_ntz>>"
    casts = "cast(t AS timestamp_ntz)", f"cast(l AS {types[0]})", f"cast(m AS {types[1]})"
    found = rows.selectExpr("id", *(f"{cast} AS {cast[5]}" for cast in casts), "d")
    return list(found.orderBy("id").collect())


def data_file(path: Path) -> DataFile:
    return DataFile(
        content=FileContent.DATA,
        file_path=str(path),
        file_format=FileFormat.ORC,
        spec_id=0,
        partition=(),
        record_count=4604,
        file_size_in_bytes=path.stat().st_size,
    )
