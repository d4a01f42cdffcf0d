"""Conditions on dates and times give the rows of plain Spark, in zones with other days."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from effort import IS_NIGHTLY
from pyspark.sql import DataFrame, SparkSession

from icebergds import load_catalog, register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_ZONES = ["America/New_York", "UTC", "Asia/Kolkata", "America/Sao_Paulo"]
# Around a change of summer time in New York, at its midnight and that of UTC.
_FIRST = dt.datetime(2026, 3, 6, tzinfo=dt.UTC)
_CONDITIONS = [
    "date(ts) = DATE '2026-03-08'",
    "CAST(ts AS DATE) >= '2026-03-09'",
    "to_date(ntz) < DATE '2026-03-08'",
    "date(ts) BETWEEN DATE '2026-03-07' AND DATE '2026-03-08'",
    "DATE '2026-03-08' < date(ntz)",
    "d = DATE '2026-02-08' + INTERVAL 1 MONTH",
    "d > DATE '2026-03-08' - INTERVAL 1 DAY AND year(ts) = 2026",
    "ts >= TIMESTAMP '2026-03-08 12:00:00'",
    "ts < DATE '2026-03-08' + 1",
    "ntz >= TIMESTAMP_NTZ '2026-03-08 02:30:00' OR d IS NULL",
    "year(ts) > 2025 AND month(d) = 3",
    "NOT date(ts) = DATE '2026-03-08'",
    "date(ntz) NOT IN (DATE '2026-03-08', DATE '2026-03-09') OR year(d) <> 2026",
    "year(to_date(ts)) <= 2026.5 AND date(ts) <> '2026-03-07'",
    "ts > now() - INTERVAL 100 YEARS AND d <= current_date() + INTERVAL 100 YEARS",
    "d >= current_date() OR date(ts) <= DATE '2026-03-07'",
    "d IN (DATE '2026-03-07' + 1, DATE '2026-03-10')",
]


@pytest.fixture(params=_ZONES if IS_NIGHTLY else _ZONES[:1])
def lake(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path))
    session.conf.set("spark.sql.session.timeZone", request.param)
    register(session, sql=True)
    yield session
    session.catalog.dropTempView("plain")


def test_rows_are_those_of_a_plain_copy(lake: SparkSession, tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", "ts timestamp, ntz timestamp_ntz, d date", partition_spec="days(ts), d"
    )
    table.append(_rows())
    lake.table("lake.db.t").where("true").cache().createTempView("plain")
    for condition in _CONDITIONS:
        expected = _counted(lake.sql(f"SELECT * FROM plain WHERE {condition}"))
        assert _counted(lake.sql(f"SELECT * FROM lake.db.t WHERE {condition}")) == expected
        assert expected, condition


def _rows() -> pa.Table:
    moments = [_FIRST + dt.timedelta(hours=hours) for hours in range(0, 120, 5)]
    plain = [moment.replace(tzinfo=None) for moment in moments]
    return pa.table(
        {
            "ts": pa.array([*moments, None], pa.timestamp("us", "UTC")),
            "ntz": pa.array([*plain, None], pa.timestamp("us")),
            "d": pa.array([*(moment.date() for moment in moments), None], pa.date32()),
        }
    )


def _counted(df: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, df.collect()))
