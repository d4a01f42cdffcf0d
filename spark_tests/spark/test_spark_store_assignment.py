"""Writes convert values as Spark's own INSERT does, or refuse them by column and value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from built.contents import live_files
from built.tables import TableBuilder
from effort import some
from pyspark.sql import DataFrame, SparkSession
from spark_reads import load, message_of, session_conf
from spark_writes import create, planned_write, refused, save

from icebergds import Table, load_table
from icebergds.errors import InvalidDataError
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)

pytestmark = pytest.mark.spark

ZONE = "America/Sao_Paulo"
TIMES = [
    "timestamp_ntz'2018-11-03 23:59:59.999999'",
    # Clocks were set forward at midnight, and back at midnight.
    "timestamp_ntz'2018-11-04 00:30:00'",
    "timestamp_ntz'2018-02-17 23:30:00'",
    "timestamp_ntz'0001-01-03 00:00:00'",
    "timestamp_ntz'1969-12-31 23:59:59.5'",
    "timestamp_ntz'2099-07-01 12:00:00'",
]
INSTANTS = [
    "timestamp'2018-11-04 02:59:59.999999Z'",
    "timestamp'2018-11-04 03:00:00Z'",
    "timestamp'2018-02-18 02:30:00Z'",
    "timestamp'1900-01-01 00:00:00Z'",
    "timestamp'1969-12-31 23:59:59.5Z'",
    "timestamp'2099-07-01 02:00:00.12Z'",
]
DATES = ["date'2018-11-04'", "date'2018-02-18'", "date'0001-01-03'", "date'9999-12-30'"]
DOUBLES = ["1.9D", "-1.9D", "2147483647.9D", "-2147483648.9D", "-0.0D", "1e-300D"]
DECIMALS = ["1.005", "-1.005", "9999999999.994", "0.000", "-0.004"]
WIDE = ["0.1", "123456789012345678.12345678901234567890", "-99999.99999999999999999999"]
# Fewer than 17 digits: those of other doubles are not the shortest in all versions of Java.
SHORT = ["1.005D", "-1.005D", "1234567.125D", "1e-5D", "0.1D", "-2.5D", "9.995D"]

# Values of one type, and the column that they are written to.
PAIRS: list[tuple[list[str], str, str, IcebergType]] = [
    (["-2147483648L", "2147483647L", "0L"], "bigint", "int", INT),
    (DOUBLES, "double", "int", INT),
    ([*DOUBLES, "-9223372036854775808D", "9.007199254740993e15D"], "double", "bigint", LONG),
    (["1.9F", "-1.9F", "2147483520F"], "float", "int", INT),
    (["1.9F", "9223371487098961920F"], "float", "bigint", LONG),
    (DECIMALS[:2], "decimal(13,3)", "int", INT),
    (WIDE, "decimal(38,20)", "bigint", LONG),
    (["16777217L", "9223372036854775807L", "-1L"], "bigint", "float", FLOAT),
    (["9007199254740993L", "9223372036854775807L"], "bigint", "double", DOUBLE),
    (["0.1D", "1e300D", "double('NaN')", "-1e-300D", "16777217D"], "double", "float", FLOAT),
    (WIDE, "decimal(38,20)", "double", DOUBLE),
    (WIDE, "decimal(38,20)", "float", FLOAT),
    (["5", "-2147483648"], "int", "decimal(12,2)", DecimalType(12, 2)),
    (["9223372036854775807L"], "bigint", "decimal(38,19)", DecimalType(38, 19)),
    (SHORT, "double", "decimal(12,2)", DecimalType(12, 2)),
    (SHORT, "double", "decimal(38,20)", DecimalType(38, 20)),
    (["1.1F", "-2.5F", "0.005F"], "float", "decimal(12,2)", DecimalType(12, 2)),
    (["1.1F", "0.005F"], "float", "decimal(12,10)", DecimalType(12, 10)),
    (DECIMALS, "decimal(13,3)", "decimal(12,2)", DecimalType(12, 2)),
    (WIDE, "decimal(38,20)", "decimal(38,2)", DecimalType(38, 2)),
    (["true", "false"], "boolean", "string", STRING),
    (["-5L"], "bigint", "string", STRING),
    (["0.00000001", "-1.5", "0"], "decimal(20,10)", "string", STRING),
    (DATES, "date", "string", STRING),
    (INSTANTS, "timestamp", "string", STRING),
    (TIMES, "timestamp_ntz", "string", STRING),
    (["X'C3A9'", "X''"], "binary", "string", STRING),
    (INSTANTS, "timestamp", "date", DATE),
    (TIMES, "timestamp_ntz", "date", DATE),
    (INSTANTS, "timestamp", "timestamp_ntz", TIMESTAMP),
    (DATES, "date", "timestamp_ntz", TIMESTAMP),
    (TIMES, "timestamp_ntz", "timestamp", TIMESTAMPTZ),
    (DATES, "date", "timestamp", TIMESTAMPTZ),
]
# As text, floating point numbers are written by Spark alone.
BY_SPARK: list[tuple[list[str], str, str, IcebergType]] = [
    (["1.5F", "1e10F"], "float", "string", STRING),
    (["1.5D", "1e10D", "double('NaN')", "-0.0D"], "double", "string", STRING),
]
OUT_OF_RANGE: list[tuple[str, str, IcebergType, str]] = [
    ("2147483648L", "int", INT, "2147483648"),
    ("2147483648D", "int", INT, "2147483648.0"),
    ("double('NaN')", "bigint", LONG, "nan"),
    ("float('Infinity')", "int", INT, "inf"),
    ("cast(9223372036854775808 AS decimal(20,0))", "bigint", LONG, "9223372036854775808"),
    ("cast(99.995 AS decimal(13,3))", "decimal(4,2)", DecimalType(4, 2), "99.995"),
    ("99.995D", "decimal(4,2)", DecimalType(4, 2), "99.995"),
    ("100", "decimal(4,2)", DecimalType(4, 2), "100"),
]  # fmt: skip
NOT_ALLOWED = [
    ("'1'", "int"),
    ("true", "int"),
    ("1", "boolean"),
    ("'2026-01-01'", "date"),
    ("1L", "timestamp"),
    ("date'2026-01-01'", "int"),
    ("array(1)", "string"),
]
ICEBERG: dict[str, IcebergType] = {
    "int": INT,
    "boolean": BOOLEAN,
    "date": DATE,
    "timestamp": TIMESTAMPTZ,
    "string": STRING,
}


@pytest.fixture
def zoned(spark: SparkSession) -> Iterator[SparkSession]:
    with session_conf(spark, "spark.sql.session.timeZone", ZONE):
        yield spark


def rows_of(spark: SparkSession, pairs: list[tuple[list[str], str, str, IcebergType]]) -> DataFrame:
    """A column for each pair, named by its place; null after its last value."""
    count = max(len(values) for values, *_ in pairs) + 1
    selects = []
    for row in range(count):
        parts = [f"{row} AS k"]
        for at, (values, source, _, _) in enumerate(pairs):
            value = values[row] if row < len(values) else "null"
            parts.append(f"cast({value} AS {source}) AS c{at}")
        selects.append("SELECT " + ", ".join(parts))
    return spark.sql(" UNION ALL ".join(selects))


def table_for(tmp_path: Path, pairs: list[tuple[list[str], str, str, IcebergType]]) -> Path:
    columns = [NestedField(at + 2, f"c{at}", wanted) for at, (*_, wanted) in enumerate(pairs)]
    TableBuilder(tmp_path / "t", Schema((NestedField(1, "k", INT), *columns))).commit()
    return tmp_path / "t"


def inserted(spark: SparkSession, rows: DataFrame, types: list[str], location: Path) -> list[str]:
    """The rows of a Parquet table that Spark has inserted them into."""
    columns = ", ".join(f"c{at} {wanted}" for at, wanted in enumerate(types))
    rows.createOrReplaceTempView("rows_to_insert")
    spark.sql(f"CREATE TABLE by_spark (k int, {columns}) USING parquet LOCATION '{location}'")
    try:
        spark.sql("INSERT INTO by_spark SELECT * FROM rows_to_insert")
        return shown(spark.table("by_spark"))
    finally:
        spark.sql("DROP TABLE by_spark")


def shown(df: DataFrame) -> list[str]:
    """Rows as text, in which NaN equals itself and -0.0 is not 0.0; times as Spark shows them."""
    names = {"timestamp", "timestamp_ntz", "date"}
    columns = [
        f"cast({field.name} AS string)" if field.dataType.simpleString() in names else field.name
        for field in df.schema
    ]
    return [str(tuple(row)) for row in df.orderBy("k").selectExpr(*columns).collect()]


def test_saves_convert_as_spark_inserts(zoned: SparkSession, tmp_path: Path) -> None:
    rows, path = rows_of(zoned, PAIRS), table_for(tmp_path, PAIRS)
    expected = inserted(zoned, rows, [wanted for _, _, wanted, _ in PAIRS], tmp_path / "spark")
    save(rows, path, **{"time-zone": ZONE})
    assert shown(load(zoned, path)) == expected


def test_timestamps_bring_the_zone_of_the_session(zoned: SparkSession, tmp_path: Path) -> None:
    pairs = [pair for pair in PAIRS if pair[1] == "timestamp"]
    rows, path = rows_of(zoned, pairs), table_for(tmp_path, pairs)
    expected = inserted(zoned, rows, [wanted for _, _, wanted, _ in pairs], tmp_path / "spark")
    save(rows, path)
    assert shown(load(zoned, path)) == expected


@pytest.mark.parametrize("verb", ["append", "upsert", "overwrite"])
def test_tables_convert_as_spark_inserts(zoned: SparkSession, tmp_path: Path, verb: str) -> None:
    pairs = [*PAIRS, *BY_SPARK]
    rows, path = rows_of(zoned, pairs), table_for(tmp_path, pairs)
    expected = inserted(zoned, rows, [wanted for _, _, wanted, _ in pairs], tmp_path / "spark")
    table = load_table(path)
    if verb == "append":
        table.append(rows)
    elif verb == "upsert":
        table.upsert(rows, "k")
    else:
        # Of one row of a file with two.
        table.append(zoned.sql("SELECT explode(array(0, 100)) AS k"))
        table.overwrite(rows, "k < 100")
    assert shown(load(zoned, path, filter="k < 100")) == expected


def test_merges_convert_as_spark_inserts(zoned: SparkSession, tmp_path: Path) -> None:
    pairs = [*PAIRS, *BY_SPARK]
    rows, path = rows_of(zoned, pairs), table_for(tmp_path, pairs)
    expected = inserted(zoned, rows, [wanted for _, _, wanted, _ in pairs], tmp_path / "spark")
    load_table(path).merge(rows, ["k"]).when_not_matched_insert_all().execute()
    assert shown(load(zoned, path)) == expected


def test_sessions_that_are_not_ansi_convert_the_same(zoned: SparkSession, tmp_path: Path) -> None:
    pairs = [PAIRS[0], PAIRS[1], PAIRS[18], PAIRS[22], PAIRS[27], BY_SPARK[1]]
    rows, path = rows_of(zoned, pairs), table_for(tmp_path, pairs)
    expected = inserted(zoned, rows, [wanted for _, _, wanted, _ in pairs], tmp_path / "spark")
    with session_conf(zoned, "spark.sql.ansi.enabled", "false"):
        load_table(path).append(rows)
    assert shown(load(zoned, path)) == expected


@pytest.mark.parametrize(("value", "wanted", "field_type", "named"), some(OUT_OF_RANGE, 4))
def test_what_spark_refuses_is_refused_by_column_and_value(
    spark: SparkSession,
    tmp_path: Path,
    value: str,
    wanted: str,
    field_type: IcebergType,
    named: str,
) -> None:
    rows = spark.sql(f"SELECT 1 AS k, {value} AS c0")
    message_of(lambda: inserted(spark, rows, [wanted], tmp_path / "spark"))
    path = table_for(tmp_path, [([], "", "", field_type)])
    assert re.search(f"column 'c0' of table .*cannot store the value {named} ", refused(rows, path))
    before = load_table(path).metadata_location
    with pytest.raises(InvalidDataError, match=f"column 'c0' .*cannot store the value {named} "):
        load_table(path).append(rows)
    assert load_table(path).metadata_location == before


@pytest.mark.parametrize(("value", "wanted"), some(NOT_ALLOWED, 3))
def test_pairs_that_spark_does_not_allow_are_refused(
    spark: SparkSession, tmp_path: Path, value: str, wanted: str
) -> None:
    rows = spark.sql(f"SELECT 1 AS k, {value} AS c0")
    message_of(lambda: inserted(spark, rows, [wanted], tmp_path / "spark"))
    path = table_for(tmp_path, [([], "", "", ICEBERG[wanted])])
    with pytest.raises(InvalidDataError, match="column 'c0' of table"):
        load_table(path).append(rows)


def test_stricter_than_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Spark stores the greatest long for 2^63, and null for what is not a number."""
    path = table_for(tmp_path, [([], "", "", LONG), ([], "", "", DecimalType(4, 2))])
    for values in ("9223372036854775808D AS c0", "double('NaN') AS c1"):
        assert "cannot store the value" in refused(spark.sql(f"SELECT 1 AS k, {values}"), path)


@pytest.mark.parametrize("columns", ["c0 date", "c0 timestamp_ntz"])
def test_local_times_need_the_zone_in_a_save(tmp_path: Path, columns: str) -> None:
    path = table_for(tmp_path, [([], "", "", TIMESTAMPTZ)])
    with pytest.raises(InvalidDataError, match=r"column 'c0' .*time-zone"):
        planned_write(columns, path)


def test_floating_point_numbers_are_not_text_in_a_save(tmp_path: Path) -> None:
    path = table_for(tmp_path, [([], "", "", STRING)])
    with pytest.raises(InvalidDataError, match=r"column 'c0' .*cast the incoming column"):
        planned_write("c0 double", path)


def test_nested_values_are_converted(spark: SparkSession, tmp_path: Path) -> None:
    point = StructType((NestedField(3, "x", INT), NestedField(4, "t", STRING)))
    schema = Schema((NestedField(1, "l", ListType(2, point)),))
    TableBuilder(tmp_path / "t", schema).commit()
    rows = spark.sql("SELECT array(named_struct('T', 1e10D, 'x', 5L), null) AS l")
    load_table(tmp_path / "t").append(rows)
    (row,) = load(spark, tmp_path / "t").collect()
    assert row.asDict(recursive=True) == {"l": [{"x": 5, "t": "1.0E10"}, None]}


def partitioned(spark: SparkSession, tmp_path: Path, columns: str, by: str) -> Table:
    return load_table(
        create(spark.createDataFrame([], columns), tmp_path / "t", **{"partition-by": by})
    )


@pytest.mark.parametrize(
    ("columns", "by", "value"),
    [
        ("id long, p date", "p", "timestamp'2026-01-01 00:00:00' + make_interval(0,0,0,0,0,id)"),
        ("id long, p decimal(4,1)", "p", "cast(5 + id / 10000 AS decimal(10,5))"),
        ("id long, p int", "truncate(p, 10)", "5 + id / 10000D"),
    ],
)
def test_rows_of_a_partition_come_to_one_task(
    spark: SparkSession, tmp_path: Path, columns: str, by: str, value: str
) -> None:
    table = partitioned(spark, tmp_path, columns, by)
    # Otherwise Spark combines the few rows of all shuffled partitions.
    with session_conf(spark, "spark.sql.adaptive.enabled", "false"):
        table.append(spark.range(0, 20, 1, 4).selectExpr("id", f"{value} AS p"))
    assert [file.record_count for file in live_files(Path(table.location()))] == [20]


def test_keys_of_another_type_meet_and_are_not_rounded(spark: SparkSession, tmp_path: Path) -> None:
    table = partitioned(spark, tmp_path, "id decimal(4,1), name string", "truncate(id, 1)")
    rows: Any = [("1.10", "a"), ("2.00", "b")]
    source = spark.createDataFrame(rows, "id string, name string")
    wider = source.selectExpr("cast(id AS decimal(10,5)) AS id", "name")
    assert table.upsert(wider, "id").inserted == 2
    assert table.upsert(wider, "id").updated == 2
    assert sorted(map(str, table.scan().to_arrow()["id"].to_pylist())) == ["1.1", "2.0"]
    with pytest.raises(InvalidDataError, match=r"'id' .* keys are not rounded.* value 1\.11000 "):
        table.upsert(wider.selectExpr("id + 0.01BD AS id", "name").where("name = 'a'"), "id")
    table.delete_keys(wider.selectExpr("cast(id AS decimal(20,3)) AS id").where("id = 2"), "id")
    assert list(map(str, table.scan().to_arrow()["id"].to_pylist())) == ["1.1"]


def test_streams_convert_too(spark: SparkSession, tmp_path: Path) -> None:
    source, path = tmp_path / "source", tmp_path / "t"
    create(spark.sql("SELECT 5L AS k, 1.005BD AS c0"), source)
    table_for(tmp_path, [([], "", "", DecimalType(4, 2))])
    feed = spark.readStream.format("icebergpy").load(str(source))
    query = (
        feed.writeStream.format("icebergpy")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(path))
    )
    query.awaitTermination()
    assert [(row.k, str(row.c0)) for row in load(spark, path).collect()] == [(5, "1.01")]
