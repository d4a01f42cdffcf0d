"""Conditions of queries on one load, scanned more than once; and the opt-in that prunes by them.

Spark keeps a filter that it pushed into a Python data source for every later scan of that load.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from built.tables import TableBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from spark_reads import ids, ids_of_each, load, message_of, planned

from icebergds.spark.pushdown import PushdownReader
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    NestedField,
    StructType,
)

pytestmark = pytest.mark.spark

# Spark is known to have repaired it where it can push limits into Python data sources.
_SPARK_IS_REPAIRED = hasattr(DataSourceReader, "pushLimit")

_SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, True),
        NestedField(2, "name", STRING),
        NestedField(3, "d", DOUBLE),
        NestedField(4, "day", DATE),
        NestedField(5, "u", UUID),
        NestedField(6, "dec", DecimalType(38, 10)),
        NestedField(7, "at", TIMESTAMPTZ),
        NestedField(8, "local", TIMESTAMP),
        NestedField(9, "bin", BINARY),
        NestedField(10, "flag", BOOLEAN),
        NestedField(11, "st", StructType((NestedField(12, "x.y", LONG),))),
    )
)
_LONG_DECIMAL = Decimal("12345678901234567890.1234567890")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ids 0 to 9: even ones in one file, odd ones in another; 8 has no values, 9 has NaN.

    `dec` differs in its last digits only; times are hours after 1970.
    """
    builder = TableBuilder(tmp_path_factory.mktemp("filters") / "t", _SCHEMA)
    hour = 3_600_000_000

    def row(i: int, name: str, d: float, day: int) -> tuple[Any, ...]:
        with localcontext(prec=38):
            dec = _LONG_DECIMAL + Decimal(i).scaleb(-10)
        u = bytes([i * 17]) * 16
        return (i, name, d, day, u, dec, i * hour, i * hour, bytes([i]), i % 2 == 0, (i,))

    rows = [row(i, f"n{i}", i / 2, 20_000 + i) for i in range(8)]
    rows += [(8, *[None] * 10), row(9, "n", math.nan, 30_000)]
    builder.commit(builder.data_file(rows[::2]), builder.data_file(rows[1::2]))
    return builder.location


class Leak(NamedTuple):
    """A query that scans one load more than once, and the ids it finds."""

    query: Callable[[DataFrame], DataFrame]
    expected: list[int]


def _sql(text: str) -> Callable[[DataFrame], DataFrame]:
    def query(df: DataFrame) -> DataFrame:
        df.createOrReplaceTempView("one_load")
        return df.sparkSession.sql(text)

    return query


def _filtered_then_whole(df: DataFrame) -> DataFrame:
    assert ids(df.where("id = 1")) == [1]
    return df


def _filtered_then_filtered(df: DataFrame) -> DataFrame:
    assert ids(df.where("name = 'n3'")) == [3]
    return df.where("id < 2")


LEAKS = {
    "filter, then all rows": Leak(_filtered_then_whole, list(range(10))),
    "filter, then another": Leak(_filtered_then_filtered, [0, 1]),
    "union of two filters": Leak(
        lambda df: df.where("id = 1").union(df.where("id = 2")), [1, 2]
    ),
    "self-join of two filters": Leak(
        lambda df: (
            df.where("id = 1").alias("x").crossJoin(df.where("id = 7").alias("y"))
            .selectExpr("x.id * 10 + y.id AS id")
        ),
        [17],
    ),
    "view twice in one query": Leak(
        _sql(
            "SELECT x.id * 10 + y.id AS id FROM one_load x, one_load y "
            "WHERE x.id = 1 AND y.id = 3"
        ),
        [13],
    ),
    "view in a subquery": Leak(
        _sql("SELECT id FROM one_load WHERE id > (SELECT max(id) FROM one_load WHERE id < 8)"),
        [8, 9],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LEAKS)
def test_a_filter_stays_in_its_scan(
    spark: SparkSession, table: Path, pushdown_conf: str, case: str
) -> None:
    leak = LEAKS[case]
    assert ids(leak.query(load(spark, table))) == leak.expected


def test_a_filter_stays_in_its_query_of_a_temporary_view(
    spark: SparkSession, table: Path, pushdown_conf: str
) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING icebergpy OPTIONS (path '{table}')")
    assert ids(spark.sql("SELECT id FROM v WHERE id = 4")) == [4]
    assert ids(spark.sql("SELECT id FROM v")) == list(range(10))


@pytest.mark.xfail(
    not _SPARK_IS_REPAIRED,
    reason="this Spark keeps a pushed filter for later scans of the load",
    strict=True,
)
def test_pushed_filters_stay_in_their_scan(
    spark: SparkSession, table: Path, pushdown_enabled: None
) -> None:
    """When this passes on a released Spark, `pushdown` can become the default there."""
    df = load(spark, table, pushdown="true")
    assert ids(df.where("id = 1")) == [1]
    assert ids(df) == list(range(10))


# What Spark makes of literals and conditions before it pushes them.
CONDITIONS = {
    "id IN (1, 8, 77)": [1, 8],
    "name NOT IN ('n1', NULL)": [],
    "name LIKE 'n%' AND id < 2": [0, 1],
    "NOT (name <=> 'n4') AND id > 3": [5, 6, 7, 8, 9],
    "id = 1 OR name = 'n2'": [1, 2],
    "d = double('NaN')": [9],
    "NOT d < 3.0D": [6, 7, 9],
    "day = date'2024-10-04'": [0],
    # Spark compares uuids as text.
    "u = '33333333-3333-3333-3333-33333333333A'": [],
    "u > '3'": [3, 4, 5, 6, 7, 9],
    # Literals of more than 28 digits are handed over rounded.
    "dec = 12345678901234567890.1234567893": [3],
    "dec > 12345678901234567890.1234567893": [4, 5, 6, 7, 9],
    "at >= timestamp'1970-01-01 08:00:00+01:00'": [7, 9],
    "local < timestamp_ntz'1970-01-01 02:00:00'": [0, 1],
    "cast(at AS date) = date'1970-01-02'": [],
    "bin > X'06'": [7, 9],
    "NOT flag": [1, 3, 5, 7, 9],
    "st.`x.y` = 4": [4],
}


def test_pushed_conditions_find_the_rows_that_spark_finds(
    spark: SparkSession, table: Path, pushdown_enabled: None
) -> None:
    frames = {c: load(spark, table, pushdown="true").where(c) for c in CONDITIONS}
    assert ids_of_each(frames) == CONDITIONS


_EVERY_ID = list(range(10))
_VALUED = [0, 1, 2, 3, 4, 5, 6, 7, 9]
PUSHED: list[tuple[list[Filter], list[int]]] = [
    ([EqualTo(("id",), 3)], [3]),
    ([Not(EqualTo(("id",), 3)), LessThanOrEqual(("id",), 4)], [0, 1, 2, 4]),
    ([GreaterThan(("id",), 6)], [7, 8, 9]),
    ([In(("name",), ["n1", None])], [1]),
    ([Not(In(("name",), ["n1", None]))], []),
    ([Not(In(("id",), [1, 2, 3, 4, 5, 6, 7]))], [0, 8, 9]),
    ([IsNull(("name",))], [8]),
    ([Not(IsNull(("name",)))], _VALUED),
    ([IsNotNull(("st",)), GreaterThanOrEqual(("id",), 8)], [9]),
    ([EqualNullSafe(("name",), "n4")], [4]),
    ([Not(EqualNullSafe(("name",), "n4"))], [0, 1, 2, 3, 5, 6, 7, 8, 9]),
    ([StringStartsWith(("name",), "n5")], [5]),
    ([Not(StringStartsWith(("name",), "n"))], []),
    ([EqualTo(("d",), math.nan)], [9]),
    ([GreaterThan(("d",), 3.0)], [7, 9]),
    ([LessThan(("d",), -0.0)], []),
    ([EqualTo(("d",), -0.0)], [0]),
    ([EqualTo(("day",), dt.date(2024, 10, 4))], [0]),
    ([LessThan(("at",), dt.datetime(1970, 1, 1, 2, tzinfo=dt.UTC))], [0, 1]),
    ([LessThan(("local",), dt.datetime(1970, 1, 1, 2))], [0, 1]),
    ([EqualTo(("bin",), b"\x02")], [2]),
    ([EqualTo(("flag",), True)], [0, 2, 4, 6]),
    ([EqualTo(("st", "x.y"), 4)], [4]),
    # What cannot be used selects everything: Spark evaluates its filters again.
    ([StringEndsWith(("name",), "5")], _EVERY_ID),
    ([Not(StringContains(("name",), "5"))], _EVERY_ID),
    ([EqualTo(("u",), "33333333-3333-3333-3333-33333333333A")], _EVERY_ID),
    ([GreaterThan(("dec",), Decimal("12345678901234567890.12345679"))], _EVERY_ID),
    ([EqualTo(("_pos",), 1)], _EVERY_ID),
]


@pytest.mark.parametrize(("filters", "expected"), PUSHED, ids=lambda value: str(value))
def test_a_reader_takes_what_it_can_of_pushed_filters(
    table: Path, filters: list[Filter], expected: list[int]
) -> None:
    reader = planned({"path": str(table), "pushdown": "true"})
    assert isinstance(reader, PushdownReader)
    assert list(reader.pushFilters(filters)) == filters
    batches = [batch for task_group in reader.partitions() for batch in reader.read(task_group)]
    assert sorted(i for batch in batches for i in batch.column("id").to_pylist()) == expected


def test_pushdown_needs_the_setting_of_spark(spark: SparkSession, table: Path) -> None:
    message = message_of(lambda: load(spark, table, pushdown="true").collect())
    assert "spark.sql.python.filterPushdown.enabled" in message


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ids 0 to 9 in partitions `part` 0 and 1 by parity; the file of the odd ones is gone."""
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "part", LONG)))
    spec = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "part"),))
    builder = TableBuilder(tmp_path_factory.mktemp("broken") / "t", schema, spec=spec)
    files = [
        builder.data_file([(i, part) for i in range(10) if i % 2 == part], partition=(part,))
        for part in (0, 1)
    ]
    builder.commit(*files, with_summaries=True)
    Path(files[1].file_path).unlink()
    return builder.location


def test_pushed_filters_open_no_file_that_cannot_match(
    spark: SparkSession, broken: Path, pushdown_enabled: None
) -> None:
    frames = {
        "by partition": load(spark, broken, pushdown="true").where("part = 0 AND id > 4"),
        "by statistics": load(spark, broken, pushdown="true").where("id < 1"),
    }
    assert ids_of_each(frames) == {"by partition": [6, 8], "by statistics": [0]}


def test_filters_of_the_load_open_no_file_that_cannot_match(
    spark: SparkSession, broken: Path
) -> None:
    frames = {
        "by partition": load(spark, broken, filter="part = 0 and id > 4"),
        "by statistics": load(spark, broken, filter="id < 1"),
    }
    assert ids_of_each(frames) == {"by partition": [6, 8], "by statistics": [0]}


def test_without_pushdown_every_file_is_opened(
    spark: SparkSession, broken: Path, pushdown_enabled: None
) -> None:
    message = message_of(lambda: load(spark, broken).where("part = 0").collect())
    assert "MissingFileError" in message


def test_pushed_filters_and_the_filter_of_the_load_both_hold(
    spark: SparkSession, table: Path, pushdown_enabled: None
) -> None:
    df = load(spark, table, pushdown="true", filter="id > 3", columns="id")
    assert ids(df.where("id < 6")) == [4, 5]
