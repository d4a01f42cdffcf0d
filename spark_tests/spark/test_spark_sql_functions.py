"""The functions in the namespace `system` of a catalog are Iceberg's transforms."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icebergds
from icebergds import load_catalog, register
from icebergds.errors import InvalidStatementError, NoSuchNamespaceError
from icebergds.formats.arrow.types import to_array
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
    apply,
)
from icebergds.spec.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
)
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.functions import find_calls
from icebergds.statements.text.cursor import cursor_of

pytestmark = pytest.mark.spark

_PRICE, _LARGE = DecimalType(9, 2), DecimalType(38, 10)
_DAY = 86_400_000_000
_MICROS = [0, 1, -1, _DAY, _DAY - 1, -_DAY, -_DAY - 1, 1_583_020_799_999_999, -(2**52), None]
_VALUES: dict[str, tuple[IcebergType, list[Any]]] = {
    "i": (INT, [0, 1, -1, 34, 2**31 - 1, -(2**31), None]),
    "l": (LONG, [0, 9, -11, 2**40, 2**63 - 1, -(2**63), None]),
    "price": (
        _PRICE,
        [Decimal(text) for text in ("0.00", "-0.05", "14.20", "-9999999.99")] + [None],
    ),
    "large": (_LARGE, [Decimal(n).scaleb(-10) for n in (0, -1, 10**36 + 7, -(10**37))] + [None]),
    "s": (STRING, ["", "iceberg", "測試raul試測", "\U0001f9ca\U0001f9ca", None]),
    "raw": (BINARY, [b"", b"\x00\x01\x02\x03\xff", None]),
    "day": (DATE, [0, 1, -1, 18_262, -719_162, 2_932_896, None]),
    "at": (TIMESTAMPTZ, _MICROS),
    "local": (TIMESTAMP, _MICROS),
}
_TRANSFORMS: list[tuple[str, Transform, str]] = [
    ("bucket(16, {})", BucketTransform(16), "i l price large s raw day at local"),
    ("truncate(3, {})", TruncateTransform(3), "i l price large s raw"),
    ("years({})", YearTransform(), "day at local"),
    ("months({})", MonthTransform(), "day at local"),
    ("days({})", DayTransform(), "day at local"),
    ("hours({})", HourTransform(), "at local"),
]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path))
    # Transforms are of UTC.
    session.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    register(session, sql=True)
    yield session
    register(session)


@pytest.fixture
def table(lake: SparkSession, tmp_path: Path) -> str:
    """A table with the instants of `_VALUES`."""
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    created = catalog.create_table("db.t", "id bigint, at timestamp")
    ats = to_array(TIMESTAMPTZ, _MICROS)
    created.append(pa.table({"id": pa.array(range(len(_MICROS)), pa.int64()), "at": ats}))
    return "lake.db.t"


def test_results_are_those_of_the_transforms(lake: SparkSession) -> None:
    expected, found = {}, {}
    for column, (source_type, values) in _VALUES.items():
        arrow = pa.table({column: to_array(source_type, values)})
        # Without its type, Spark reads a local time as an instant.
        schema = "local timestamp_ntz" if column == "local" else None
        lake.createDataFrame(arrow, schema).createOrReplaceTempView("v")
        calls = [(text, transform) for text, transform, of in _TRANSFORMS if column in of.split()]
        listed = ", ".join(f"lake.system.{text.format(column)}" for text, _ in calls)
        rows = lake.sql(f"SELECT {listed} FROM v").toArrow()
        for at, (text, transform) in enumerate(calls):
            name = text.format(column)
            result = rows.column(at).combine_chunks()
            if pa.types.is_date(result.type):
                result = result.cast(pa.int32())
            found[name] = result.to_pylist()
            expected[name] = [
                _wrapped(source_type, apply(transform, source_type, v)) for v in values
            ]
    assert found == expected
    lake.catalog.dropTempView("v")


def test_results_have_the_types_of_java(lake: SparkSession) -> None:
    for call, expected in {
        "bucket(4, 'a')": "int",
        "truncate(4, 1Y)": "tinyint",
        "truncate(4, 1S)": "smallint",
        "truncate(4, 1)": "int",
        "truncate(4, 1L)": "bigint",
        "truncate(4, 1.25)": "decimal(3,2)",
        "truncate(4, 'a')": "string",
        "truncate(4, X'01')": "binary",
        "years(DATE '2026-01-01')": "int",
        "months(DATE '2026-01-01')": "int",
        "days(TIMESTAMP '2026-01-01 12:00:00')": "date",
        "hours(TIMESTAMP '2026-01-01 12:00:00')": "int",
        "iceberg_version()": "string",
    }.items():
        [field] = lake.sql(f"SELECT lake.system.{call}").schema.fields
        assert (field.name, field.dataType.simpleString()) == (f"lake.system.{call}", expected)


def test_truncation_wraps_around_as_in_java(lake: SparkSession) -> None:
    [row] = lake.sql(
        "SELECT lake.system.truncate(10, -128Y), lake.system.truncate(10, -32768S), "
        "lake.system.truncate(300, 7Y), lake.system.truncate(300, -7S)"
    ).collect()
    assert list(row) == [126, 32766, 0, -300]


def test_calls_stand_anywhere_in_a_query(lake: SparkSession, table: str) -> None:
    found = lake.sql(
        f"SELECT lake.system.days(t.at) AS day, count(*) AS n FROM {table} "
        "WHERE lake.system.hours(lake.db.t.at) >= 24 AND lake.system.bucket(?, id) >= 0 "
        "GROUP BY lake.system.days(t.at) HAVING lake.system.months(max(at)) >= 0 ORDER BY day",
        args=[16],
    )
    assert found.collect() == [(date(1970, 1, 2), 1), (date(2020, 2, 29), 1)]


def test_calls_are_nested_and_in_sub_queries(lake: SparkSession, table: str) -> None:
    query = (
        f"SELECT id FROM {table} t WHERE lake.system.truncate(2, lake.system.bucket(8, id)) = 0 "
        f"AND EXISTS (SELECT 1 FROM {table} u WHERE u.id <> t.id AND "
        "lake.system.days(lake.system.days(u.at)) = lake.system.days(t.at))"
    )
    buckets = [apply(BucketTransform(8), LONG, at) // 2 * 2 for at in range(len(_MICROS))]
    days = [apply(DayTransform(), TIMESTAMPTZ, at) for at in _MICROS]
    expected = [
        (at,)
        for at, day in enumerate(days)
        if buckets[at] == 0 and day is not None and days.count(day) > 1
    ]
    assert sorted(lake.sql(query).collect()) == expected


def test_conditions_and_values_of_changes_have_calls(lake: SparkSession, table: str) -> None:
    lake.sql(f"DELETE FROM {table} WHERE lake.system.days(at) < DATE '1970-01-01'")
    lake.sql(f"UPDATE {table} SET id = lake.system.truncate(10, id) + 100 WHERE id >= 7")
    lake.sql(
        f"MERGE INTO {table} t USING (SELECT 3L AS id) s ON lake.system.truncate(1, t.id) = s.id "
        "WHEN MATCHED AND lake.system.hours(t.at) = 24 THEN UPDATE SET id = "
        "lake.system.truncate(10, t.id + s.id + 10) WHEN NOT MATCHED THEN INSERT (id) VALUES (7)"
    )
    found = lake.sql(f"SELECT id FROM {table} ORDER BY id").collect()
    assert [row.id for row in found] == [0, 1, 4, 10, 100, 100]


@pytest.fixture
def bucketed(lake: SparkSession, table: str) -> str:
    """A table of the ids 0 to 39 in four buckets, and a view of it."""
    lake.sql("CREATE TABLE lake.db.b (id BIGINT, n INT) PARTITIONED BY (bucket(4, id))")
    lake.sql("INSERT INTO lake.db.b SELECT id, CAST(id % 3 AS INT) FROM range(40)")
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT id AS key, n FROM lake.db.b")
    return "lake.db.b"


def _in_bucket(count: int, *buckets: int) -> list[int]:
    return [at for at in range(40) if apply(BucketTransform(count), LONG, at) in buckets]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT id FROM lake.db.b WHERE lake.system.bucket(4, id) IN (1, 3)", 2),
        ("SELECT id FROM lake.db.b t WHERE n >= 0 AND lake.system.bucket(4, t.id) IN (1, 3)", 2),
        ("SELECT key FROM v WHERE lake.system.bucket(4, key) IN (1, 3)", 2),
        ("SELECT id FROM lake.db.b WHERE lake.system.bucket(4, id) IN (1, 3) OR n = 7", 4),
    ],
)
def test_conditions_on_buckets_choose_files(
    lake: SparkSession, bucketed: str, query: str, kept: int
) -> None:
    assert sorted(row[0] for row in lake.sql(query).collect()) == _in_bucket(4, 1, 3)
    [(text,)] = lake.sql(f"EXPLAIN {query}").collect()
    assert f"files      {kept} of 4 kept" in text


def test_functions_are_compiled_where_their_conditions_choose_no_file(
    lake: SparkSession, bucketed: str
) -> None:
    """Spark would log that it failed to, and go on without."""
    lake.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    try:
        query = f"SELECT id FROM {bucketed} WHERE n > 1000 AND lake.system.truncate(2, n) = 5"
        assert lake.sql(query).collect() == []
    finally:
        lake.conf.unset("spark.sql.codegen.factoryMode")


def test_other_buckets_than_those_of_partitions_choose_rows(
    lake: SparkSession, bucketed: str
) -> None:
    found = lake.sql(f"SELECT id FROM {bucketed} WHERE lake.system.bucket(8, id) = 5").collect()
    assert sorted(row.id for row in found) == _in_bucket(8, 5)


@pytest.mark.parametrize("in_spark", ["spark_catalog.system", "other"])
def test_functions_of_spark_with_the_names_of_transforms_choose_no_files(
    lake: SparkSession, bucketed: str, in_spark: str
) -> None:
    lake.sql(f"CREATE DATABASE {in_spark}")
    lake.sql(f"CREATE FUNCTION {in_spark}.bucket(n INT, x BIGINT) RETURNS INT RETURN 1")
    try:
        query = f"SELECT count(*) FROM {bucketed} WHERE {in_spark}.bucket(4, id) = 1"
        assert lake.sql(query).collect() == [(40,)]
    finally:
        lake.sql(f"DROP FUNCTION {in_spark}.bucket")
        lake.sql(f"DROP DATABASE {in_spark}")


def test_rows_of_buckets_are_deleted(lake: SparkSession, bucketed: str) -> None:
    lake.sql(f"DELETE FROM {bucketed} WHERE lake.system.bucket(4, id) = 2")
    found = lake.sql(f"SELECT id FROM {bucketed}").collect()
    assert sorted(row.id for row in found) == _in_bucket(4, 0, 1, 3)


def test_names_resolve_as_functions_of_the_current_catalog(lake: SparkSession, table: str) -> None:
    lake.conf.set("spark.icebergpy.default-catalog", "lake")
    text = "SELECT system.Years(at), lake.months(at), days(at), SYSTEM.iceberg_version() FROM db.t"
    [row] = lake.sql(f"{text} WHERE id = 0").collect()
    assert list(row) == [0, 0, date(1970, 1, 1), icebergds.__version__]
    lake.conf.unset("spark.icebergpy.default-catalog")


def test_functions_of_the_session_come_before_names_without_a_namespace(
    lake: SparkSession,
) -> None:
    lake.conf.set("spark.icebergpy.default-catalog", "lake")
    lake.sql("CREATE TEMPORARY FUNCTION days(x DATE) RETURNS STRING RETURN 'own'")
    [row] = lake.sql("SELECT days(DATE '2026-01-01'), system.days(DATE '2026-01-01')").collect()
    assert list(row) == ["own", date(2026, 1, 1)]
    lake.sql("DROP TEMPORARY FUNCTION days")
    lake.conf.unset("spark.icebergpy.default-catalog")


def test_columns_with_another_name_keep_it(lake: SparkSession, table: str) -> None:
    found = lake.sql(
        f"SELECT DISTINCT lake.system.days(at), lake.system.years(at) year, "
        f"(lake.system.years(at) + 1) AS next FROM {table}"
    )
    assert found.columns == ["lake.system.days(at)", "year", "next"]


def test_columns_without_a_name_have_that_of_their_text(lake: SparkSession, table: str) -> None:
    columns = [
        "date_add(lake.system.days(at), 1)",
        "lake.system.years(at) + 1 <=> lake.system.years(at)",
        "concat('x', -lake.system.years(at)) || 'y'",
    ]
    found = lake.sql(f"SELECT {', '.join(columns)}, lake.system.years(at) y FROM {table}")
    assert found.columns == [*columns, "y"]
    [name] = lake.sql(f"SELECT (SELECT max(lake.system.years(at)) FROM {table})").columns
    assert name == "scalarsubquery()"


def test_wrong_calls_are_refused(lake: SparkSession) -> None:
    for call, problem in {
        "dayz(x)": "did you mean days",
        "nothing(x)": "there are bucket, truncate",
        "years((SELECT DATE '2026-01-01'))": "a sub-query cannot be an argument of years",
        "days()": r"has 0 arguments, expected days\(value\)",
        "bucket(x)": r"has 1 arguments, expected bucket\(numBuckets, value\)",
        "bucket(0, x)": "numBuckets = 0, expected a number above 0",
        "truncate(-1, x)": "width = -1, expected a number above 0",
    }.items():
        with pytest.raises(InvalidStatementError, match=problem):
            lake.sql(f"SELECT lake.system.{call} FROM VALUES (1) AS v(x)")


def test_catalogs_and_namespaces_that_are_nearly_right_are_named(lake: SparkSession) -> None:
    for call, problem in {
        "lake.sytem.years(x)": "did you mean lake.system.years",
        "laek.system.years(x)": "there is no catalog laek; did you mean lake",
    }.items():
        with pytest.raises(InvalidStatementError, match=problem):
            lake.sql(f"SELECT {call} FROM VALUES (DATE '2026-01-01') AS v(x)")


def test_functions_are_listed_and_described(lake: SparkSession) -> None:
    load_catalog("lake").create_namespace_if_not_exists("db")
    names = ["bucket", "days", "hours", "iceberg_version", "months", "truncate", "years"]
    listed = lake.sql("SHOW USER FUNCTIONS IN lake.system")
    assert listed.columns == ["function"]
    assert [f"lake.system.{name}" for name in names] == [
        name for (name,) in listed.collect() if "." in name
    ]
    assert [
        name for (name,) in lake.sql("SHOW FUNCTIONS FROM lake LIKE 'abs|bucket'").collect()
    ] == [
        "abs",
        "lake.bucket",
    ]
    assert lake.sql("SHOW SYSTEM FUNCTIONS IN lake.system 'bucket'").collect() == []
    assert not [name for (name,) in lake.sql("SHOW FUNCTIONS IN lake.db").collect() if "." in name]
    with pytest.raises(NoSuchNamespaceError, match="nope"):
        lake.sql("SHOW FUNCTIONS IN lake.nope")
    described = lake.sql("DESCRIBE FUNCTION lake.system.bucket").collect()
    assert [line for (line,) in described] == [
        "Function: lake.system.bucket",
        "Usage: bucket(numBuckets, value) - The number of the value's bucket, from 0.",
    ]
    with pytest.raises(InvalidStatementError, match="did you mean bucket"):
        lake.sql("DESC FUNCTION lake.system.buckt")
    assert lake.sql("DESC FUNCTION abs").first()[0] == "Function: abs"


def test_wrong_types_are_refused(lake: SparkSession) -> None:
    for call, problem in {
        "days('2026-01-01')": "days cannot process string: expected a date or timestamp",
        "days(1)": "cannot cast",
        "hours(DATE '2026-01-01')": "hours cannot process date: expected a timestamp",
        "truncate(2, true)": "truncate cannot process boolean",
        "truncate(2L, 1)": "as the width, not bigint",
        "bucket(2, 1.5D)": "bucket: expected a date, tinyint",
        "bucket(1 - 1, 1)": "number of buckets above 0, not 0",
        "bucket(2L, 1)": "as the number of buckets, not a int64",
    }.items():
        with pytest.raises(PySparkException, match=problem):
            lake.sql(f"SELECT lake.system.{call}").collect()


def test_calls_are_found_with_their_arguments(lake: SparkSession) -> None:
    text = (
        "lake.system.Days( ts ) = DATE '2026-01-01' AND x.days(y) AND lake.bucket(16, a + f(b)) > 1"
    )
    calls = find_calls(NameScope(lake), cursor_of(text))
    assert [(call.function, [each.written for each in call.arguments]) for call in calls] == [
        ("days", ["ts"]),
        ("bucket", ["16", "a + f(b)"]),
    ]
    assert [text[call.name.start : call.end] for call in calls] == [
        "lake.system.Days( ts )",
        "lake.bucket(16, a + f(b))",
    ]


def _wrapped(source_type: IcebergType, value: Any) -> Any:
    """Truncated integers just below the least one wrap around, as in Java."""
    bits = {INT: 32, LONG: 64}.get(source_type)
    if bits is None or value is None or value >= -(2 ** (bits - 1)):
        return value
    return value + 2**bits
