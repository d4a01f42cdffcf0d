"""Patterns of SHOW statements, columns as SQL, and definitions of views as they are read."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.types import DataType

from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.operations.options.partition_text import parse_partition_by, parse_sort_by
from icebergds.operations.options.schema_text import parse_schema
from icebergds.spark.types import spark_schema
from icebergds.spec.types import IcebergType
from icebergds.statements.commands.descriptions.ddl import (
    column_line,
    default_text,
    partition_terms,
    sort_term,
    type_text,
)
from icebergds.statements.commands.descriptions.patterns import matches, read_pattern
from icebergds.statements.commands.views.new_view import read_definition
from icebergds.statements.text.cursor import Cursor
from icebergds.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)


def cursor(text: str) -> Cursor:
    tokens = sql_tokens(text)
    assert tokens is not None
    return Cursor(text, tokens)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (None, ["", "any"], []),
        ("t*", ["t", "T1"], ["at"]),
        ("a| b ", ["a", "B"], ["ab", ""]),
        ("t.", ["t1"], ["t", "t12"]),
        ("(", [], ["("]),
    ],
)
def test_patterns_are_those_of_spark(
    pattern: str | None, matching: list[str], others: list[str]
) -> None:
    assert all(matches(name, pattern) for name in matching)
    assert not any(matches(name, pattern) for name in others)


def test_pattern_stands_with_and_without_like() -> None:
    assert read_pattern(cursor("LIKE 'a*'")) == "a*"
    assert read_pattern(cursor("'it''s'")) == "it's"
    assert read_pattern(cursor("")) is None
    with pytest.raises(InvalidStatementError, match="a pattern"):
        read_pattern(cursor("LIKE a"))


@pytest.mark.parametrize(
    "text",
    [
        "BIGINT",
        "DECIMAL(10,2)",
        "ARRAY<MAP<STRING, TIMESTAMP_NTZ>>",
        "STRUCT<a: INT NOT NULL, `b c`: STRING COMMENT 'it\\'s'>",
    ],
)
def test_types_are_written_as_they_are_read(text: str) -> None:
    def type_of(column: str) -> DataType:
        return spark_schema(parse_schema(column)).fields[0].dataType

    assert type_text(type_of(f"x {text}")) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (IntegerType(), 5, "5"),
        (BooleanType(), True, "true"),
        (FloatType(), 0.5, "CAST('0.5' AS FLOAT)"),
        (DoubleType(), 0.5, "0.5D"),
        (DecimalType(5, 2), Decimal("1.50"), "1.50BD"),
        (StringType(), "it's\\", "'it\\'s\\\\'"),
        (BinaryType(), b"\x1f", "X'1F'"),
        (DateType(), 1, "DATE '1970-01-02'"),
        (TimestampType(), 1, "TIMESTAMP_NTZ '1970-01-01T00:00:00.000001'"),
        (TimestamptzType(), 0, "TIMESTAMP '1970-01-01T00:00:00+00:00'"),
    ],
)
def test_defaults_are_literals_of_spark(kind: IcebergType, value: Any, text: str) -> None:
    field = NestedField(1, "x", kind, initial_default=value, write_default=value)
    assert default_text(field) == text


def test_columns_partitions_and_sort_keys_are_written_as_sql() -> None:
    schema = parse_schema("`a b` bigint NOT NULL COMMENT 'c', s struct<t:timestamp>, n string")
    assert column_line(schema.fields[0]) == "`a b` BIGINT NOT NULL COMMENT 'c'"
    spec = parse_partition_by("bucket(4, `a b`), days(s.t), truncate(3, n), n", schema)
    assert partition_terms(schema, spec.fields) == [
        "bucket(4, `a b`)",
        "days(s.t)",
        "truncate(3, n)",
        "n",
    ]
    order = parse_sort_by("s.t desc nulls first, n", schema)
    assert [sort_term(schema, key) for key in order.fields] == [
        "s.t DESC NULLS FIRST",
        "n ASC NULLS FIRST",
    ]


def test_definition_of_a_view_is_read_to_its_query() -> None:
    read = read_definition(
        cursor(
            "(a COMMENT 'x', `b c`) TBLPROPERTIES ('p' = '1') COMMENT 'c' WITH SCHEMA EVOLUTION "
            "AS SELECT 1 AS x -- end"
        )
    )
    assert list(read.columns) == [("a", "x"), ("b c", None)]
    assert (read.comment, read.properties) == ("c", {"p": "1"})
    assert read.query.written == "SELECT 1 AS x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", "AS and a query"),
        ("AS", "a query"),
        ("() AS SELECT 1", "the name of a column"),
        ("(a int) AS SELECT 1", "the end"),
        ("PARTITIONED ON (a) AS SELECT 1", "AS and a query"),
        ("WITH SCHEMA CHANGE AS SELECT 1", "BINDING"),
    ],
)
def test_malformed_definition_of_a_view_says_what_is_expected(text: str, expected: str) -> None:
    with pytest.raises(InvalidStatementError, match=expected):
        read_definition(cursor(text))
