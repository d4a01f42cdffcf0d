"""Schemas as text have the grammar of Spark SQL."""

from __future__ import annotations

import pytest

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.schema_text import parse_schema
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
    TIMESTAMPTZ,
    UNKNOWN,
    VARIANT,
    DecimalType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)


def _type(text: str) -> IcebergType:
    (field,) = parse_schema(f"a {text}").fields
    return field.field_type


def test_columns_have_names_types_nullability_and_comments() -> None:
    text = "id bigint NOT NULL COMMENT 'the key', name string, price decimal(12,2) comment \"€\""
    assert parse_schema(text).fields == (
        NestedField(1, "id", LONG, True, "the key"),
        NestedField(2, "name", STRING),
        NestedField(3, "price", DecimalType(12, 2), doc="€"),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("boolean", BOOLEAN),
        ("TINYINT", INT),
        ("byte", INT),
        ("smallint", INT),
        ("short", INT),
        ("int", INT),
        ("Integer", INT),
        ("bigint", LONG),
        ("long", LONG),
        ("float", FLOAT),
        ("real", FLOAT),
        ("double", DOUBLE),
        ("date", DATE),
        ("time", TIME),
        ("time(6)", TIME),
        ("geometry(4326)", GeometryType()),
        ("GEOMETRY ( 3857 )", GeometryType("EPSG:3857")),
        ("geometry(0)", GeometryType("SRID:0")),
        ("geography(4326)", GeographyType()),
        ("timestamp", TIMESTAMPTZ),
        ("timestamp_ltz", TIMESTAMPTZ),
        ("timestamp_ntz", TIMESTAMP),
        ("string", STRING),
        ("string collate UTF8_LCASE", STRING),
        ("string collate system.builtin.`UTF8_BINARY`", STRING),
        ("char(5)", STRING),
        ("character(5)", STRING),
        ("varchar ( 5 )", STRING),
        ("binary", BINARY),
        ("void", UNKNOWN),
        ("variant", VARIANT),
        ("decimal", DecimalType(10, 0)),
        ("dec(5)", DecimalType(5, 0)),
        ("numeric(38, 38)", DecimalType(38, 38)),
    ],
)
def test_types_are_those_of_the_columns_of_a_data_frame(text: str, expected: IcebergType) -> None:
    assert _type(text) == expected


def test_ids_of_a_level_come_before_those_of_nested_fields() -> None:
    text = "a struct<b: int NOT NULL COMMENT 'inner', c array<map<string, date>>>, d int"
    entries = MapType(6, STRING, 7, DATE)
    inner = (NestedField(3, "b", INT, True, "inner"), NestedField(4, "c", ListType(5, entries)))
    assert parse_schema(text).fields == (
        NestedField(1, "a", StructType(inner)),
        NestedField(2, "d", INT),
    )


@pytest.mark.parametrize(
    "text", ["a: int, b: string", "struct<a:int,b:string>", "a int, b: string"]
)
def test_colons_between_names_and_types_do_not_matter(text: str) -> None:
    assert parse_schema(text) == parse_schema("a int, b string")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("`unit price`", "unit price"),
        ("`a``b.c`", "a`b.c"),
        ("`1`", "1"),
        ("2020_sales", "2020_sales"),
        ("Date", "Date"),
        ("struct", "struct"),
        ("comment", "comment"),
    ],
)
def test_names_are_taken_as_they_are_written(written: str, name: str) -> None:
    assert [field.name for field in parse_schema(f"{written} int, x int").fields] == [name, "x"]


@pytest.mark.parametrize(
    ("written", "comment"),
    [
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\nb\\'", "a\nb\\"),
        (r"r'a\nb'", r"a\nb"),
        (r"'\u00e9'", "é"),
        ("'a, b int -- c'", "a, b int -- c"),
        ("''", ""),
    ],
)
def test_comments_are_unescaped_as_in_spark(written: str, comment: str) -> None:
    assert parse_schema(f"a int comment {written}, b int").fields[0].doc == comment


def test_comments_between_columns_are_skipped() -> None:
    text = """
        id bigint, -- the key
        name /* of the
                customer */ string
    """
    assert parse_schema(text) == parse_schema("id bigint, name string")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at its end: expected the name of a column"),
        ("a", "at its end: expected the type of column 'a'"),
        ("a int,", "at its end: expected the name of a column"),
        ("a int b int", "at 'b int': expected a comma"),
        ("a bigin", "column 'a' has the type bigin: did you mean bigint?"),
        ("a frobnitz", "column 'a' has the type frobnitz: expected one of boolean, tinyint"),
        ("a.b int", "at '.b int': expected the type of column 'a'; names other than ASCII"),
        ("unit-price int", "at '-price int': .* are in backticks"),
        ("é int", "at 'é int': .* are in backticks"),
        ("1 int", "at '1 int': .* a name that is a number is in backticks"),
        ("a int NOT", "at its end: expected 'null' after NOT"),
        ("a string collate", "at its end: expected the name of a collation"),
        ("a string collate a.", "at its end: expected the name of a collation"),
        ("a int comment 5", "at '5': expected the text of the comment"),
        ("a int comment 'x", "at .*: expected the text of the comment"),
        (r"a int comment '\ud800'", "is not a valid character"),
        ("a int DEFAULT 5", "column 'a' has the clause DEFAULT, which is not supported"),
        ("a int generated always as (b)", "column 'a' has the clause GENERATED"),
        ("s struct<a: int primary key>", "column 's.a' has the clause PRIMARY"),
        ("a interval day to second", "column 'a' has the type interval: Iceberg does not have"),
        ("s struct<a: array<uuid>>", "column 's.a' has the type uuid: a schema as text"),
        ("a geometry(4269)", r"column 'a' has the type geometry\(4269\): expected the number"),
        ("a geography(3857)", r"column 'a' has the type geography\(3857\): expected the number"),
        ("a geometry(any)", r"the type geometry\(any\): expected .* such as geometry\(4326\)"),
        ("a geometry", "column 'a' has the type geometry: expected the number"),
        ("a geometry(4326", r"at its end: expected '\)' after the parameter of geometry"),
        ("a char", r"column 'a' has the type char: expected its length, such as char\(10\)"),
        ("a int(5)", r"column 'a' has the type int\(5\): it does not take these parameters"),
        ("a time(9)", r"column 'a' has the type time\(9\): it does not take"),
        ("a decimal(39)", r"column 'a' is of type decimal\(39, 0\); expected at most 38"),
        (f"a decimal({'9' * 5000})", "expected a number as parameter of decimal"),
        ("a decimal(3, 4)", r"column 'a' is of type decimal\(3, 4\)"),
        ("a decimal(3,)", r"at '\)': expected a number as parameter of decimal"),
        ("a array", "at its end: expected '<' after array in column 'a'"),
        ("a array<int not null>", "at 'not null>': expected '>' at the end of the array"),
        ("a map<int>", "at '>': expected ',' after the type of the keys"),
        ("a struct<a: int", "at its end: expected '>'"),
        ("a " + "array<" * 200 + "int" + ">" * 200, "nested more than 100 deep"),
    ],
)
def test_what_cannot_be_parsed_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        parse_schema(text)
