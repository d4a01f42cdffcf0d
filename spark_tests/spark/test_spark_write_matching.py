"""Columns are matched by name; what does not fit is said before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.contents import files_besides_metadata
from built.tables import TableBuilder
from pyspark.sql import SparkSession
from spark_reads import load
from spark_writes import create, planned_write, refused, save

from icebergds import load_table
from icebergds.errors import InvalidDataError
from icebergds.spec.schema import Schema
from icebergds.spec.types import INT, LONG, STRING, ListType, NestedField, StructType

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

NESTED = Schema(
    (
        NestedField(1, "id", LONG, True),
        NestedField(2, "s", StructType((NestedField(4, "a", INT), NestedField(5, "b", STRING)))),
        NestedField(3, "l", ListType(6, StructType((NestedField(7, "x", INT),)), False)),
    )
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    TableBuilder(tmp_path / "t", NESTED).commit()
    return tmp_path / "t"


def test_order_and_case_of_columns_are_free(spark: SparkSession, table: Path) -> None:
    save(
        spark.sql(
            "SELECT array(named_struct('X', 3)) AS L, named_struct('B', 'b', 'A', 2) AS s, 1L AS Id"
        ),
        table,
    )
    (row,) = load(spark, table).collect()
    assert row.asDict(recursive=True) == {"id": 1, "s": {"a": 2, "b": "b"}, "l": [{"x": 3}]}


def test_missing_columns_are_null_in_structs_too(spark: SparkSession, table: Path) -> None:
    save(spark.sql("SELECT 1L AS id, named_struct('b', 'b') AS s"), table)
    (row,) = load(spark, table).collect()
    assert row.asDict(recursive=True) == {"id": 1, "s": {"a": None, "b": "b"}, "l": None}


def test_missing_columns_take_their_write_default(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(
        (
            NestedField(1, "id", LONG, True),
            NestedField(2, "n", INT, True, initial_default=1, write_default=7),
            NestedField(3, "name", STRING, initial_default="x", write_default="y"),
        )
    )
    TableBuilder(tmp_path / "t", schema, format_version=3).commit()
    save(spark.range(1), tmp_path / "t")
    assert [tuple(row) for row in load(spark, tmp_path / "t").collect()] == [(0, 7, "y")]


def test_narrower_types_grow_without_loss(spark: SparkSession, tmp_path: Path) -> None:
    wide = "a long, b double, c decimal(20, 4), d int"
    path = create(spark.createDataFrame([], wide), tmp_path / "t")
    save(spark.sql("SELECT 1 AS a, 1.5F AS b, 2.25BD AS c, 3Y AS d"), path)
    (row,) = load(spark, path).collect()
    assert (row.a, row.b, str(row.c), row.d) == (1, 1.5, "2.2500", 3)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("id long, extra int", "incoming column 'extra' is not a column"),
        ("id long, s struct<a: int, c: int>", "incoming column 's.c' is not a column"),
        ("ids long", "did you mean 'id'"),
        ("s struct<a: int>", "column 'id' of table .* is required"),
        ("id long, ID long", "given twice"),
        ("id string", "cannot store every value"),
        ("id boolean", "cannot store every value"),
        ("id long, s struct<a: string>", "column 's.a' .* cannot store every value"),
        ("id long, s int", "column 's' .* cannot store every value"),
        ("id long, l array<int>", "column 'l.element' .* cannot store every value"),
    ],
)
def test_rows_that_do_not_fit_are_refused_when_planned(
    table: Path, columns: str, reason: str
) -> None:
    with pytest.raises(InvalidDataError, match=reason):
        planned_write(columns, table)


def test_refusal_reaches_the_user_of_spark(spark: SparkSession, table: Path) -> None:
    message = refused(spark.range(1).withColumnRenamed("id", "ids"), table)
    assert "icebergds.errors.InvalidDataError" in message
    assert "merge-schema" in message


def test_null_in_a_required_column_leaves_no_file(spark: SparkSession, table: Path) -> None:
    rows = (
        spark.range(40_000)
        .coalesce(1)
        .selectExpr(
            "if(id = 39999, null, id) AS id", "named_struct('b', repeat(string(id), 100)) AS s"
        )
    )
    message = refused(rows, table, **{"target-file-size-bytes": "1000"})
    assert "column 'id' of table" in message
    assert "1 of the incoming values are null" in message
    assert files_besides_metadata(table) == set()


def test_merge_schema_adds_columns_and_widens_types(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.sql("SELECT 1 AS id, named_struct('a', 1) AS s"), tmp_path / "t")
    more = spark.sql(
        "SELECT 2L AS id, named_struct('a', 5L, 'b', 'x') AS s, map('k', array(1)) AS m, 1BD AS d"
    )
    save(more, path, **{"merge-schema": "true"})
    df = load(spark, path)
    assert df.schema.simpleString() == (
        "struct<id:bigint,s:struct<a:bigint,b:string>,m:map<string,array<int>>,d:decimal(1,0)>"
    )
    rows = {row.id: row.asDict(recursive=True) for row in df.collect()}
    assert rows[1]["s"] == {"a": 1, "b": None}
    assert rows[1]["m"] is None
    assert (rows[2]["s"], rows[2]["m"]) == ({"a": 5, "b": "x"}, {"k": [1]})


def test_merge_schema_needs_no_column_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    path = create(spark.sql("SELECT 1L AS id, 'a' AS name"), tmp_path / "t")
    save(spark.sql("SELECT true AS new"), path, mergeSchema="true")
    rows = sorted(map(tuple, load(spark, path).collect()), key=str)
    assert rows == [(1, "a", None), (None, None, True)]


def test_schema_that_cannot_be_merged_is_refused(spark: SparkSession, table: Path) -> None:
    before = load_table(table).metadata_location
    with pytest.raises(InvalidDataError, match="neither is widened"):
        planned_write("id string", table, **{"merge-schema": "true"})
    assert load_table(table).metadata_location == before
