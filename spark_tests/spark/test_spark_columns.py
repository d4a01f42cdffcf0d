"""Columns chosen by `columns` or a schema given to the load, and the checks Spark leaves to us."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.tables import TableBuilder
from pyspark.sql import SparkSession, types as spark_types
from spark_reads import load, message_of, planned

from icebergds.errors import InvalidOptionError
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def _address(first_id: int, number_required: bool = False) -> StructType:
    return StructType(
        (
            NestedField(first_id, "city", STRING),
            NestedField(first_id + 1, "zip", INT),
            NestedField(first_id + 2, "no", INT, number_required),
        )
    )


_SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, True),
        NestedField(2, "name", STRING),
        NestedField(3, "address", _address(10, number_required=True), True),
        NestedField(4, "past", ListType(20, _address(21))),
        NestedField(5, "by_key", MapType(30, STRING, 31, _address(32))),
        NestedField(6, "price", DecimalType(9, 2)),
        NestedField(7, "at", TIMESTAMPTZ),
        NestedField(8, "u", UUID),
        NestedField(9, "t", TIME),
    )
)
_HERE = ("Bonn", 53111, 7)
_ROWS = [
    (1, "a", _HERE, [_HERE, None], [("k", _HERE)], None, 0, bytes(16), 1),
    (2, None, (None, None, 8), None, None, None, None, None, None),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builder = TableBuilder(tmp_path_factory.mktemp("columns") / "t", _SCHEMA)
    builder.commit(builder.data_file(_ROWS))
    return builder.location


def test_columns_select_and_order(spark: SparkSession, table: Path) -> None:
    df = load(spark, table, columns="name, id")
    assert df.columns == ["name", "id"]
    assert sorted(df.collect(), key=lambda row: row.id) == [("a", 1), (None, 2)]


def test_columns_select_fields_inside_structs_lists_and_maps(
    spark: SparkSession, table: Path
) -> None:
    names = "address.no, address.city, past.element.zip, by_key.value.city"
    df = load(spark, table, columns=names, filter="id = 1")
    assert df.schema.simpleString() == (
        "struct<address:struct<city:string,no:int>,past:array<struct<zip:int>>,"
        "by_key:map<string,struct<city:string>>>"
    )
    assert df.collect() == [(("Bonn", 7), [(53111,), None], {"k": ("Bonn",)})]


def test_a_schema_selects_orders_and_renames_the_case(spark: SparkSession, table: Path) -> None:
    df = spark.read.schema("NAME string, ID bigint").format("icebergpy").load(str(table))
    assert df.columns == ["NAME", "ID"]
    assert sorted(df.collect(), key=lambda row: row.ID) == [("a", 1), (None, 2)]


def test_a_schema_selects_and_orders_fields_inside_structs_lists_and_maps(
    spark: SparkSession, table: Path
) -> None:
    schema = (
        "past array<struct<zip: int, city: string>>, by_key map<string, struct<no: int>>, "
        "address struct<no: int NOT NULL, city: string> NOT NULL"
    )
    df = spark.read.schema(schema).format("icebergpy").option("filter", "id = 1").load(str(table))
    assert df.collect() == [([(53111, "Bonn"), None], {"k": (7,)}, (7, "Bonn"))]


def test_a_schema_may_name_metadata_columns(spark: SparkSession, table: Path) -> None:
    schema = "_pos bigint, id bigint, _deleted boolean, _partition struct<>"
    df = spark.read.schema(schema).format("icebergpy").load(str(table))
    assert sorted(df.collect()) == [(0, 1, False, ()), (1, 2, False, ())]


def test_a_required_column_may_be_read_as_nullable(table: Path) -> None:
    reader = planned({"path": str(table)}, "id bigint, address struct<no: int>")
    batches = list(reader.read(reader.partitions()[0]))
    assert batches[0].schema.field("id").nullable
    assert batches[0].schema.field("address").type.field("no").nullable


REFUSED_SCHEMAS = {
    "unknown column": ("id bigint, nmae string", "no column 'nmae'; did you mean 'name'?"),
    "unknown nested field": ("address struct<town: string>", "address: no column 'town'"),
    "unknown field in a list": ("past array<struct<zipp: int>>", "did you mean 'zip'?"),
    "narrower type": (
        "id int",
        "id is int in the given schema, but the column is long, which is read",
    ),
    "wider type": ("id bigint, address struct<zip: bigint>", "address: zip is bigint"),
    "other decimal": ("price decimal(10,2)", "is read as decimal(9,2)"),
    "other timestamp": ("at timestamp_ntz", "is read as timestamp"),
    "type without mapping": ("u binary", "the column is uuid, which is read as string"),
    "struct for a list": ("past struct<zip: int>", "the column is list"),
    "other key type": ("by_key map<int, struct<no: int>>", "by_key.key is int"),
    "not null": ("id bigint, name string NOT NULL", "name is NOT NULL in the given schema"),
    "not null inside a struct": ("address struct<city: string NOT NULL>", "city is NOT NULL"),
    "the same column twice": ("id bigint, ID bigint", "'id' and 'ID' name the same column"),
    "no field of a struct": ("address struct<>", "address: no column is named"),
}


@pytest.mark.parametrize("case", REFUSED_SCHEMAS)
def test_a_schema_that_does_not_fit_is_refused(table: Path, case: str) -> None:
    schema, detail = REFUSED_SCHEMAS[case]
    with pytest.raises(InvalidOptionError) as caught:
        planned({"path": str(table)}, schema)
    assert detail in str(caught.value)
    assert str(table) in str(caught.value)


def test_null_elements_and_values_need_nullable_types(table: Path) -> None:
    st = spark_types
    zip_code = st.StructType([st.StructField("zip", st.IntegerType())])
    for name, data_type in {
        "past": st.ArrayType(zip_code, containsNull=False),
        "by_key": st.MapType(st.StringType(), zip_code, valueContainsNull=False),
    }.items():
        with pytest.raises(InvalidOptionError, match=r"(element|value) is NOT NULL"):
            planned({"path": str(table)}, st.StructType([st.StructField(name, data_type)]))


def test_a_time_is_not_read_as_the_time_type_of_spark(table: Path) -> None:
    schema = spark_types.StructType([spark_types.StructField("t", spark_types.TimeType(6))])
    with pytest.raises(InvalidOptionError, match="is read as bigint"):
        planned({"path": str(table)}, schema)


def test_a_schema_without_columns_is_refused(table: Path) -> None:
    with pytest.raises(InvalidOptionError, match="no column is named"):
        planned({"path": str(table)}, spark_types.StructType([]))


def test_a_schema_and_columns_contradict_each_other(table: Path) -> None:
    with pytest.raises(InvalidOptionError, match="both choose columns"):
        planned({"path": str(table), "columns": "id"}, "id bigint")


@pytest.mark.parametrize(
    ("columns", "detail"),
    [
        ("id, nmae", "did you mean name"),
        ("address.town", "no column 'address.town'"),
        ("name.x", "no column 'name.x'"),
        ("", "no column is named"),
        ("id, , name", "columns 'id, , name'"),
        ("id, `name", "columns 'id, `name'"),
        ("_row_id", "no column '_row_id'"),
    ],
)
def test_columns_that_do_not_fit_are_refused(table: Path, columns: str, detail: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        planned({"path": str(table), "columns": columns})
    assert detail in str(caught.value)


def test_spark_shows_why_a_schema_is_refused(spark: SparkSession, table: Path) -> None:
    df = spark.read.schema("id int").format("icebergpy").load(str(table))
    message = message_of(df.collect)
    assert "icebergds.errors.InvalidOptionError" in message
    assert "the column is long, which is read as bigint" in message
