"""Schemas as text mean what Spark's own parser reads in them."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from effort import examples
from hypothesis import given, strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import GeographyType, GeometryType, StructType
from spark_reads import session_conf

from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.operations.options.schema_text import parse_schema
from icebergds.spark.dataframe_schema import iceberg_schema

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_SCALARS = st.sampled_from(
    [
        *("boolean", "tinyint", "byte", "SMALLINT", "short", "int", "integer", "bigint", "Long"),
        *("float", "real", "double", "decimal", "decimal(12, 2)", "dec(5)", "numeric (38,38)"),
        *("date", "timestamp", "timestamp_ltz", "timestamp_ntz", "void", "variant", "binary"),
        *("string", "string collate UTF8_LCASE", "char(5)", "varchar( 7 )", "character(1)"),
    ]
)
_NAMES = st.one_of(
    st.sampled_from(["id", "Name", "_x", "2020_sales", "date", "struct", "comment", "array"]),
    st.text("ab. `'\"é", min_size=1, max_size=4).map(lambda name: f"`{name.replace('`', '``')}`"),
)
_LITERALS = st.one_of(
    st.text("ab\\n'\"%_0,é😀", max_size=6).map(
        lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    ),
    st.sampled_from(
        [
            *("''", "'it''s'", '"it""s"', '"it\'s"', "r'a\\n'", 'R"\\"', r"'\u00e9\101\%\_\Z\0\q'"),
            r"'\U0001F600'",
        ]
    ),
)
_SPACES = st.sampled_from([" ", "  ", "\n", " /* b int, */ ", " -- c int,\n"])


@st.composite
def _fields(draw: st.DrawFn, types: st.SearchStrategy[str]) -> str:
    names = draw(st.lists(_NAMES, min_size=1, max_size=3, unique_by=str.lower))
    return ",".join(draw(_field(name, types)) for name in names)


@st.composite
def _field(draw: st.DrawFn, name: str, types: st.SearchStrategy[str]) -> str:
    between = draw(st.one_of(_SPACES, st.just(": ")))
    required = draw(st.sampled_from(["", " NOT NULL", " not  null"]))
    comment = draw(st.one_of(st.just(""), _LITERALS.map(lambda literal: f" comment {literal}")))
    return f"{name}{between}{draw(types)}{required}{comment}"


_TYPES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        inner.map(lambda element: f"array<{element}>"),
        st.tuples(inner, inner).map(lambda pair: f"Map<{pair[0]}, {pair[1]} >"),
        _fields(inner).map(lambda fields: f"struct<{fields}>"),
    ),
    max_leaves=4,
)


@examples(400)
@given(_fields(_TYPES))
def test_a_schema_means_what_it_means_in_spark(spark: SparkSession, text: str) -> None:
    assert parse_schema(text) == iceberg_schema(StructType.fromDDL(text))


def test_times_mean_what_they_mean_in_spark(spark: SparkSession) -> None:
    with session_conf(spark, "spark.sql.timeType.enabled", "true"):
        text = "a time, b time(3)"
        assert parse_schema(text) == iceberg_schema(StructType.fromDDL(text))


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a int,",
        "a int b int",
        "a frobnitz",
        "a.b int",
        "unit-price int",
        "é int",
        "1 int",
        "1d int",
        "a int NOT",
        "a int comment 5",
        "a char",
        "a int(5)",
        "a decimal(39)",
        "a decimal(3, 4)",
        "a array",
        "a array<int not null>",
        "a map<int>",
        "a struct<a: int",
        "a uuid",
    ],
)
def test_what_spark_refuses_is_refused(spark: SparkSession, text: str) -> None:
    with pytest.raises(PySparkException):
        StructType.fromDDL(text)
    with pytest.raises(InvalidOptionError):
        parse_schema(text)


def test_shapes_of_spark_are_those_of_iceberg_or_refused_with_what_to_write() -> None:
    shapes = StructType().add("g", GeometryType(4326))
    if version("pyspark").startswith("4.1."):
        with pytest.raises(InvalidDataError, match=r"'g' .* geometry\(4326\), .* st_asbinary"):
            iceberg_schema(shapes)
    else:
        text = "g geometry(4326), m geometry(3857), n geometry(0), h geography(4326)"
        shapes.add("m", GeometryType(3857)).add("n", GeometryType(0)).add("h", GeographyType(4326))
        assert iceberg_schema(shapes) == parse_schema(text)
    mixed = StructType().add("g", GeometryType("ANY"))
    with pytest.raises(InvalidDataError, match=r"geometry\(any\), .* of its own.*st_setsrid"):
        iceberg_schema(mixed)
