"""Conditions with literals that Spark reads in a way of its own give its rows, or its error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icebergds import register

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

# Each in a file of its own, so that a file may be chosen or deleted as a whole.
_ROWS = """
VALUES
  (1, 1L, 123456789012345678.01BD, timestamp'2020-01-01 00:00:00Z',
   timestamp_ntz'2021-03-14 02:30:00', date'2018-11-04', float('Infinity')),
  (10, 10L, 123456789012345678.02BD, timestamp'2020-01-01 00:00:00.000001Z',
   timestamp_ntz'2021-03-14 03:30:00', date'2018-11-05', float('3.4028235e38')),
  (12, 12L, 5, NULL, timestamp_ntz'2021-03-15 03:30:00', date'2018-11-06', -1)
AS rows(i, l, wide, ts, tn, day, f)
"""
_COLUMNS = "i int, l bigint, wide decimal(20, 2), ts timestamp, tn timestamp_ntz, day date, f float"
_NEW_YORK, _SAO_PAULO = "America/New_York", "America/Sao_Paulo"
_CONDITIONS = [
    ("i = CAST('1e1' AS INT)", "UTC"),
    ("i = CAST('1_0' AS DOUBLE)", "UTC"),
    ("i <> CAST('１２' AS INT)", "UTC"),
    ("i < CAST('12.0' AS INT)", "UTC"),
    ("l < '99999999999999999999'", "UTC"),
    ("day < '99999999-01-01'", "UTC"),
    ("wide = '123456789012345678.01'", "UTC"),
    ("wide <= '123456789012345678.01'", "UTC"),
    ("ts = CAST('2020-01-01 00:00:00z' AS TIMESTAMP)", "UTC"),
    ("ts >= '2020-01-01 00:00:00.0000019'", "UTC"),
    ("ts IN ('2020-01-01 00:00:00.0000009Z')", "UTC"),
    ("f = CAST(1e39 AS FLOAT)", "UTC"),
    ("f < CAST('-1e39' AS FLOAT) OR f > CAST(3.4e38 AS FLOAT)", "UTC"),
    ("tn >= timestamp'2021-03-14 03:00:00'", _NEW_YORK),
    ("tn < timestamp'2021-03-14 03:40:00'", _NEW_YORK),
    ("day = timestamp'2018-11-04 01:00:00'", _SAO_PAULO),
    ("day < timestamp'2018-11-04 01:00:00'", _SAO_PAULO),
]
_DELETED = [
    "i = CAST('1e1' AS INT)",
    "l < '99999999999999999999'",
    "f = CAST(1e39 AS FLOAT)",
]
Found = Counter[tuple[object, ...]] | str


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path))
    session.conf.set("spark.sql.session.timeZone", "UTC")
    register(session, sql=True)
    # Of a file: Spark reckons with constants itself.
    session.sql(f"SELECT * FROM {_ROWS}").write.parquet(str(tmp_path / "plain"))
    session.read.parquet(str(tmp_path / "plain")).createTempView("plain")
    _fill(session, "t")
    yield session
    session.catalog.dropTempView("plain")


@pytest.mark.parametrize("ansi", [True, False])
def test_rows_and_errors_are_those_of_spark(lake: SparkSession, ansi: bool) -> None:
    lake.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    for condition, zone in _CONDITIONS:
        lake.conf.set("spark.sql.session.timeZone", zone)
        expected = _found(lake, f"SELECT * FROM plain WHERE {condition}")
        assert _found(lake, f"SELECT * FROM lake.db.t WHERE {condition}") == expected, condition


@pytest.mark.parametrize("number", range(len(_DELETED)))
def test_rows_are_deleted_that_spark_selects(lake: SparkSession, number: int) -> None:
    condition, name = _DELETED[number], f"lake.db.d{number}"
    _fill(lake, f"d{number}")
    selected = _found(lake, f"SELECT * FROM plain WHERE {condition}")
    every = _found(lake, "SELECT * FROM plain")
    assert isinstance(every, Counter)
    gone = selected if isinstance(selected, Counter) else Counter()
    said = _found(lake, f"DELETE FROM {name} WHERE {condition}")
    deleted = Counter([(gone.total(),)])
    assert said == (selected if isinstance(selected, str) else deleted)
    assert _found(lake, f"SELECT * FROM {name}") == every - gone


def _fill(lake: SparkSession, name: str) -> None:
    lake.sql(f"CREATE TABLE lake.db.{name} ({_COLUMNS}) PARTITIONED BY (i)")
    lake.sql(f"INSERT INTO lake.db.{name} SELECT * FROM plain")


def _found(lake: SparkSession, query: str) -> Found:
    """The rows of a query, or the condition of its error."""
    try:
        return Counter(map(tuple, lake.sql(query).collect()))
    except PySparkException as error:
        return str(error.getCondition())
