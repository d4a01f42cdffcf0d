"""UPDATE through `Table.update`, as docs/changing.md describes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions as f
from spark_changes import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    WAYS,
    expected,
    head,
    ids_of,
    leaves_as_it_was,
    lineage_of,
    people,
    person,
    rows_of,
)
from spark_reads import session_conf

from icebergds import Schema, Table, load_catalog, load_table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.filesystem.commits import location_operations
from icebergds.catalog.loaded_table import load_for_write
from icebergds.errors import (
    InvalidDataError,
    InvalidFilterError,
    InvalidOptionError,
)
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.row_counts import RowCounts
from icebergds.spark.row_level.target import make_target
from icebergds.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from icebergds.spec.updates.table_updates import AddSchema, SetCurrentSchema

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_columns_get_new_values(
    spark: SparkSession, tmp_path: Path, version: int, mode: str
) -> None:
    table = people(tmp_path, version, mode)
    counts = table.update({"name": "concat(name, '!')", "part": "part + 10"}, "id >= 10")
    assert counts == RowCounts(updated=2)
    others = [person(i) for i in range(10)]
    assert rows_of(table) == expected([*others, (10, 11, "n10!"), (11, 12, "n11!")])
    assert head(table).operation == "overwrite"


def test_all_rows_without_a_condition(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=4)
    assert table.update({"name": f.upper("name")}) == RowCounts(updated=4)
    assert [row[2] for row in rows_of(table)] == ["N0", "N1", "N2", "N3"]


def test_values_are_those_of_the_row_before(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=3)
    table.update({"id": "part + 5", "PART": f.col("id").cast("int")}, f.col("id") == 2)
    assert rows_of(table)[2] == (7, 2, "n2")


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
def test_rows_keep_their_ids(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """And `_last_updated_sequence_number` moves, for the updated rows alone."""
    table = people(tmp_path, 3, mode)
    before = lineage_of(table)
    table.update({"name": "'x'"}, "id IN (1, 8)")
    third = head(table).sequence_number
    assert lineage_of(table) == {
        i: (row_id, third if i in (1, 8) else changed) for i, (row_id, changed) in before.items()
    }
    table.update({"name": "'y'"}, "id = 1")
    assert lineage_of(table)[1] == (before[1][0], third + 1)
    assert lineage_of(table)[8] == (before[8][0], third)


def test_nothing_is_committed_where_nothing_matches(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    before = table.metadata_location
    assert table.update({"id": "1"}, "id = 77") == RowCounts()
    assert table.refresh().metadata_location == before


def test_fields_of_structs(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((NestedField(11, "a", INT), NestedField(12, "b.c", STRING)))
    table = of_type(tmp_path, inner)
    table.append(
        spark.sql("SELECT 1L id, named_struct('a', 1, 'b.c', 'x') v UNION ALL SELECT 2, NULL")
    )
    table.update({"v.a": "v.a + 1", "v.`b.c`": "'y'"})
    assert rows_of(table) == [(1, {"a": 2, "b.c": "y"}), (2, {"a": None, "b.c": "y"})]
    whole = leaves_as_it_was(
        table, lambda: table.update({"v": "NULL", "v.a": "1"}), InvalidDataError
    )
    assert "both as a whole and by field" in whole


@pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE])
def test_columns_that_stay_keep_every_value(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """Also those of types that Spark does not have."""
    fields = [UUID, TIME, TIMESTAMP_NS, DecimalType(20, 3), DATE]
    columns = [NestedField(at, f"c{at}", kind) for at, kind in enumerate(fields, 2)]
    nested = MapType(21, STRING, 22, ListType(23, LONG, False), False)
    schema = Schema((NestedField(1, "id", LONG), *columns, NestedField(20, "m", nested)))
    table = of_schema(tmp_path, schema, mode)
    table.append(
        spark.sql(
            "SELECT id, '0123abcd-0000-4000-8000-00000000000' || id AS c2, id + 5 AS c3,"
            " id * 1000000007 AS c4, CAST(id AS DECIMAL(20, 3)) AS c5, DATE'2026-01-31' AS c6,"
            " map('k', array(id, NULL)) AS m FROM range(3)"
        ).coalesce(1)
    )
    before = rows_of(table)
    table.update({"c6": "DATE'1970-01-01'"}, "id = 1")
    assert rows_of(table) == [
        before[0],
        (*before[1][:5], date(1970, 1, 1), before[1][6]),
        before[2],
    ]


# Values and the types of their columns.


@pytest.mark.parametrize(
    ("value", "stored"),
    [("1.005D", Decimal("1.01")), ("7", Decimal("7.00")), ("NULL", None), ("v + 1", Decimal(2))],
)
def test_numbers_are_stored_as_numbers(
    spark: SparkSession, tmp_path: Path, value: str, stored: Any
) -> None:
    table = of_type(tmp_path, DecimalType(5, 2))
    table.append(spark.sql("SELECT 1L id, CAST(1 AS DECIMAL(5, 2)) v"))
    table.update({"v": value})
    assert rows_of(table) == [(1, stored)]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_number_that_is_too_large_is_an_error(
    spark: SparkSession, tmp_path: Path, ansi: str
) -> None:
    """Whatever the session says of overflows."""
    table = of_type(tmp_path, INT)
    table.append(spark.sql("SELECT 1L id, 1 v"))
    with session_conf(spark, "spark.sql.ansi.enabled", ansi):
        message = leaves_as_it_was(
            table, lambda: table.update({"v": "3000000000 * id"}), PySparkException
        )
    assert "does not hold the value 3000000000" in message


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"nmae": "'x'"}, "did you mean name"),
        ({"id": "'x'"}, "of type string"),
        ({"id": "nope"}, "`nope`"),
        ({"id": "1", "ID": "2"}, "set twice"),
        ({"part": "current_date()"}, "of type date"),
        ({"part": "max(id)"}, "part"),
    ],
)
def test_values_that_do_not_fit(
    spark: SparkSession, tmp_path: Path, values: dict[str, str], said: str
) -> None:
    table = people(tmp_path, count=2)
    assert said in leaves_as_it_was(table, lambda: table.update(values), InvalidDataError)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LONG, 2**40),
        (DecimalType(38, 0), 10**30),
        (DOUBLE, 1.5),
        (BOOLEAN, True),
        (DecimalType(9, 3), Decimal("1.250")),
        (DATE, date(2026, 3, 1)),
        (TIMESTAMP, datetime(2026, 3, 1, 12, 0, 0, 5)),
        (TIMESTAMPTZ, datetime(2026, 3, 1, 12, tzinfo=UTC)),
    ],
    ids=str,
)
def test_values_may_be_those_of_python(
    spark: SparkSession, tmp_path: Path, kind: Any, value: Any
) -> None:
    table = of_type(tmp_path, kind)
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    with session_conf(spark, "spark.sql.session.timeZone", "Asia/Tokyo"):
        assert table.update({"v": value}, spark=spark) == RowCounts(updated=1)
    assert rows_of(table) == [(1, value)]


def test_a_time_without_zone_is_one_of_the_sessions_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = of_type(tmp_path, TIMESTAMPTZ)
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    with session_conf(spark, "spark.sql.session.timeZone", "Asia/Tokyo"):
        # Another test's session may be the active one.
        table.update({"v": datetime(2026, 3, 1, 12)}, spark=spark)
    assert rows_of(table) == [(1, datetime(2026, 3, 1, 3, tzinfo=UTC))]


def test_numbers_of_python_are_checked_against_their_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = people(tmp_path, count=1)
    with pytest.raises(PySparkException, match=r"part .* does not hold the value 3000000000"):
        table.update({"part": 3_000_000_000})


def test_arguments_that_are_none(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path, count=2)
    for values in ({}, {"id": None}, {"id": [5]}, {5: "id"}, "id = 5"):
        with pytest.raises(InvalidOptionError):
            table.update(values)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="a null is the text 'null'"):
        table.update({"id": None})  # type: ignore[dict-item]
    with pytest.raises(InvalidFilterError, match="not deterministic"):
        table.update({"id": "1"}, "uuid() = name")


def test_required_column_is_never_null(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG, required=True), NestedField(2, "v", INT)))
    table = of_schema(tmp_path, schema)
    table.append(spark.sql("SELECT 1L id, CAST(NULL AS INT) v"))
    message = leaves_as_it_was(table, lambda: table.update({"id": "v"}), InvalidDataError)
    assert "is required" in message
    assert ids_of(table) == [1]


def of_type(directory: Path, kind: Any) -> Table:
    return of_schema(directory, Schema((NestedField(1, "id", LONG), NestedField(2, "v", kind))))


def of_schema(directory: Path, schema: Schema, mode: str = MERGE_ON_READ) -> Table:
    properties = {"write.update.mode": mode, "format-version": "3"}
    catalog = load_catalog("lake", warehouse=str(directory))
    return load_table(catalog.create_table("db.t", schema, properties=properties).location())


def test_field_of_a_null_struct_makes_a_struct(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((NestedField(3, "a", INT), NestedField(4, "b", STRING)))
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "s", inner)))
    table = of_schema(tmp_path, schema)
    table.append(spark.sql("SELECT 1L id, CAST(NULL AS struct<a: int, b: string>) s"))
    assert table.update({"s.a": "7"}) == RowCounts(updated=1)
    assert [tuple(r.s) for r in table.scan().to_df(spark).collect()] == [(7, None)]
    merge = table.merge(spark.sql("SELECT 2L id, 'new' name"), ["id"])
    merge.when_not_matched_insert({"id": "source.id", "s.b": "source.name"}).execute()
    found = {r.id: tuple(r.s) for r in table.scan().to_df(spark).collect()}
    assert found == {1: (7, None), 2: (None, "new")}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_numbers_inside_of_others_never_overflow(
    spark: SparkSession, tmp_path: Path, ansi: str
) -> None:
    table = of_type(tmp_path, ListType(3, INT))
    table.append(spark.sql("SELECT 1L id, array(1) v"))
    with session_conf(spark, "spark.sql.ansi.enabled", ansi):
        with pytest.raises(InvalidDataError, match="cast the value"):
            table.update({"v": "array(3000000000)"})
        table.update({"v": "array(CAST(5 AS smallint))"})
    assert table.scan().to_df(spark).first().v == [5]


def test_star_inside_of_text_is_no_star(spark: SparkSession, tmp_path: Path) -> None:
    table = of_type(tmp_path, STRING)
    table.append(spark.sql("SELECT 1L id, 'a.*b' v"))
    assert table.update({"v": "'x'"}, "v rlike '^a.*b$' and v != \"(*\"") == RowCounts(updated=1)


def test_columns_that_swap_their_names_meanwhile_keep_their_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = Schema(tuple(NestedField(i, name, INT) for i, name in enumerate(("p", "v"), 1)))
    table = of_schema(tmp_path, schema)
    table.append(spark.sql("SELECT 1 p, 7 v"))
    swapped = Schema((replace(schema.fields[0], name="v"), replace(schema.fields[1], name="p")), 1)
    loaded = load_for_write(TableAddress(table.location()))
    target = make_target(spark, loaded, "update", WriteOptions.of(loaded.address))
    rows = target.rows(None, None)
    changes = rows.frame.select("_file", "_pos", f.lit(True).alias("_write"), "p", "v")
    operations = location_operations(table.io, table.location(), "db.t")
    operations.commit(operations.refresh(), [], [AddSchema(swapped), SetCurrentSchema(-1)])
    target.save(changes, rows)
    (row,) = table.refresh().scan().to_df(spark).collect()
    assert row.asDict() == {"v": 1, "p": 7}
