"""Values of every type, as docs/types.md maps them to Spark's types."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.tables import TableBuilder
from pyspark.sql import DataFrame, Row, SparkSession, types as spark_types
from spark_reads import ids, load, planned

from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
)
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

pytestmark = pytest.mark.spark

_UUID = bytes(range(16))
_UUID_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"
_POINT = b"\x01\x01\x00\x00\x00" + bytes(16)
# The number 42 as an int8: an empty dictionary of names, and the value.
_VARIANT = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x2a"}
_MICROS = 1_000_000_000_123_456


class Case(NamedTuple):
    """A column: its type, a value in memory, and what Spark shows."""

    field_type: IcebergType
    spark_type: str
    stored: Any
    shown: Any


CASES = {
    "boolean": Case(BOOLEAN, "boolean", False, False),
    "int": Case(INT, "int", -(2**31), -(2**31)),
    "long": Case(LONG, "bigint", 2**63 - 1, 2**63 - 1),
    "float": Case(FLOAT, "float", 0.1, 0.10000000149011612),
    "double": Case(DOUBLE, "double", 0.1, 0.1),
    "infinity": Case(DOUBLE, "double", -math.inf, -math.inf),
    "decimal_9_2": Case(DecimalType(9, 2), "decimal(9,2)", Decimal("-1.50"), Decimal("-1.50")),
    "decimal_38_10": Case(
        DecimalType(38, 10),
        "decimal(38,10)",
        Decimal("1234567890123456789012345678.0123456789"),
        Decimal("1234567890123456789012345678.0123456789"),
    ),
    "date": Case(DATE, "date", -1, dt.date(1969, 12, 31)),
    "time": Case(TIME, "bigint", 86_399_999_999, 86_399_999_999),
    "timestamp": Case(
        TIMESTAMP, "timestamp_ntz", _MICROS, dt.datetime(2001, 9, 9, 1, 46, 40, 123_456)
    ),
    "timestamptz": Case(
        TIMESTAMPTZ, "timestamp", -1, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    ),
    "timestamp_ns": Case(TIMESTAMP_NS, "bigint", _MICROS * 1000 + 789, _MICROS * 1000 + 789),
    "timestamptz_ns": Case(TIMESTAMPTZ_NS, "bigint", -1, -1),
    "string": Case(STRING, "string", "häßlich 🧊", "häßlich 🧊"),
    "uuid": Case(UUID, "string", _UUID, _UUID_TEXT),
    "fixed": Case(FixedType(3), "binary", b"\x00\xffa", b"\x00\xffa"),
    "binary": Case(BINARY, "binary", b"", b""),
    "variant": Case(VARIANT, "variant", _VARIANT, 42),
    "unknown": Case(UNKNOWN, "void", None, None),
    # Those that Spark has as its own are in test_spark_shapes.py.
    "geometry": Case(GeometryType("EPSG:4269"), "binary", _POINT, _POINT),
    "geography": Case(GeographyType("OGC:CRS84", "karney"), "binary", _POINT, _POINT),
    "struct": Case(
        StructType(
            (
                NestedField(201, "x", INT),
                NestedField(
                    202,
                    "deep",
                    StructType((NestedField(203, "u", UUID), NestedField(204, "n", TIMESTAMP_NS))),
                ),
            )
        ),
        "struct<x:int,deep:struct<u:string,n:bigint>>",
        (7, (_UUID, 5)),
        Row(x=7, deep=Row(u=_UUID_TEXT, n=5)),
    ),
    "list": Case(ListType(205, UUID), "array<string>", [_UUID, None], [_UUID_TEXT, None]),
    "map": Case(
        MapType(206, STRING, 207, TIME),
        "map<string,bigint>",
        [("a", 1), ("b", None)],
        {"a": 1, "b": None},
    ),
    "map_of_lists": Case(
        MapType(
            208,
            INT,
            209,
            ListType(
                210,
                StructType((NestedField(211, "u", UUID), NestedField(212, "f", FixedType(1)))),
            ),
            True,
        ),
        "map<int,array<struct<u:string,f:binary>>>",
        [(1, [(_UUID, b"x"), None]), (2, [])],
        {1: [Row(u=_UUID_TEXT, f=b"x"), None], 2: []},
    ),
}

_FIELDS = tuple(
    NestedField(100 + index, name, case.field_type)
    for index, (name, case) in enumerate(CASES.items())
)


@pytest.fixture(scope="module")
def every_type(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """One row of values, one of nulls, and a file written before there were any columns but id."""
    old = Schema((NestedField(1, "id", LONG, True),))
    table = TableBuilder(tmp_path_factory.mktemp("types") / "t", old, format_version=3)
    table.commit(table.data_file([(3,)]))
    table.evolve(Schema((NestedField(1, "id", LONG, True), *_FIELDS), 1))
    values = tuple(case.stored for case in CASES.values())
    table.commit(table.data_file([(1, *values), (2, *(None for _ in values)), (4, *values)]))
    return load(spark, table.location)


@pytest.fixture(scope="module")
def rows(every_type: DataFrame) -> dict[int, Row]:
    return {row.id: row for row in every_type.collect()}


@pytest.mark.parametrize("name", CASES)
def test_type(every_type: DataFrame, name: str) -> None:
    assert every_type.schema[name].dataType.simpleString() == CASES[name].spark_type


@pytest.mark.parametrize("name", CASES)
def test_value(rows: dict[int, Row], name: str) -> None:
    for row in (rows[1], rows[4]):
        shown = row[name].toPython() if name == "variant" else row[name]
        assert shown == CASES[name].shown


@pytest.mark.parametrize("name", CASES)
def test_null(rows: dict[int, Row], name: str) -> None:
    assert rows[2][name] is None
    assert rows[3][name] is None


def test_conditions_of_queries_see_the_values_as_spark_has_them(
    every_type: DataFrame, pushdown_conf: str
) -> None:
    found = every_type.where(
        f"uuid = '{_UUID_TEXT}' AND timestamp_ns = {_MICROS * 1000 + 789} "
        "AND timestamp = timestamp_ntz'2001-09-09 01:46:40.123456' AND fixed = X'00FF61' "
        "AND variant_get(variant, '$', 'int') = 42 AND struct.deep.n = 5 "
        "AND size(map_of_lists[2]) = 0"
    )
    assert ids(found) == [1, 4]


def test_partition_values_are_shown_as_their_types_are(tmp_path: Path) -> None:
    transforms: list[tuple[str, Transform, Any, Any]] = [
        ("uuid", IdentityTransform(), _UUID, _UUID_TEXT),
        ("fixed", IdentityTransform(), b"\x00\xffa", b"\x00\xffa"),
        ("time", IdentityTransform(), 1, 1),
        ("timestamp_ns", IdentityTransform(), -1, -1),
        ("timestamptz_ns", DayTransform(), 0, dt.date(1970, 1, 1)),
        ("timestamptz", HourTransform(), 5, 5),
        ("decimal_9_2", TruncateTransform(50), Decimal("1.50"), Decimal("1.50")),
        ("string", BucketTransform(16), 3, 3),
        ("date", VoidTransform(), None, None),
    ]
    source_ids = {field.name: field.field_id for field in _FIELDS}
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField((source_ids[name],), 1000 + at, transform, f"p_{name}")
            for at, (name, transform, _, _) in enumerate(transforms)
        ),
    )
    table = TableBuilder(tmp_path / "t", Schema(_FIELDS), spec=spec, format_version=3)
    values = tuple(case.stored for case in CASES.values())
    stored = tuple(value for _, _, value, _ in transforms)
    table.commit(table.data_file([values], partition=stored))
    reader = planned({"path": str(table.location), "columns": "_partition"})
    (batch,) = reader.read(reader.partitions()[0])
    assert batch.column("_partition").to_pylist() == [
        {f"p_{name}": shown for name, _, _, shown in transforms}
    ]


def test_nan_is_read_as_nan(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "nan", Schema((NestedField(1, "d", DOUBLE),)))
    table.commit(table.data_file([(math.nan,), (1.0,), (None,)]))
    assert load(spark, table.location).where("isnan(d)").count() == 1


def test_required_fields_are_not_null_at_every_level(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((NestedField(3, "x", INT, True), NestedField(4, "y", STRING)))
    schema = Schema(
        (
            NestedField(1, "id", LONG, True, doc="who"),
            NestedField(2, "s", inner, True),
            NestedField(5, "l", ListType(6, INT, True), True),
            NestedField(7, "m", MapType(8, STRING, 9, LONG, True)),
        )
    )
    table = TableBuilder(tmp_path / "required", schema)
    table.commit(table.data_file([(1, (2, None), [3], [("a", 4)]), (2, (3, "y"), [], None)]))
    df = load(spark, table.location)
    st = spark_types
    mark = {"icebergpy.read": df.schema["id"].metadata["icebergpy.read"]}
    assert df.schema == st.StructType(
        [
            st.StructField("id", st.LongType(), False, {"comment": "who", **mark}),
            st.StructField(
                "s",
                st.StructType(
                    [
                        st.StructField("x", st.IntegerType(), False),
                        st.StructField("y", st.StringType()),
                    ]
                ),
                False,
            ),
            st.StructField("l", st.ArrayType(st.IntegerType(), False), False),
            st.StructField("m", st.MapType(st.StringType(), st.LongType(), False)),
        ]
    )
    assert sorted(df.collect()) == [(1, (2, None), [3], {"a": 4}), (2, (3, "y"), [], None)]


def test_a_null_struct_with_required_fields(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((NestedField(3, "x", INT, True),))
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "s", inner)))
    table = TableBuilder(tmp_path / "struct", schema)
    written = table.data_file([(1, (1,))])
    stored = pq.read_schema(written.file_path)
    structs = pa.StructArray.from_arrays(
        [pa.array([1, 0], pa.int32())],
        fields=list(stored.field("s").type),
        mask=pa.array([False, True]),
    )
    pq.write_table(pa.table([pa.array([1, 2]), structs], schema=stored), written.file_path)
    size = Path(written.file_path).stat().st_size
    table.commit(replace(written, record_count=2, file_size_in_bytes=size))
    found = load(spark, table.location).selectExpr("id", "s", "s.x", "s.x IS NULL")
    assert sorted(found.collect()) == [(1, (1,), 1, False), (2, None, None, True)]
