"""Columns that statements define, and the definitions of new tables, as they are read."""

from __future__ import annotations

import pytest

from icebergds.errors import InvalidOptionError, InvalidStatementError, UnsupportedFeatureError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.commands.definitions.columns import (
    ColumnDefinition,
    Place,
    read_columns,
)
from icebergds.statements.commands.definitions.new_table import TableDefinition, read_definition
from icebergds.statements.text.cursor import Cursor


def _cursor(text: str) -> Cursor:
    tokens = sql_tokens(text)
    assert tokens is not None
    return Cursor(text, tokens)


def _columns(text: str) -> list[ColumnDefinition]:
    return read_columns(_cursor(text))


def _definition(text: str) -> TableDefinition:
    return read_definition(_cursor(text))


@pytest.mark.parametrize(
    "written",
    [
        "bigint",
        "decimal(9, 2)",
        "map<string, array<struct<x: int COMMENT 'a, b', y: decimal(9,2)>>>",
        "array<array<int>>",
        "struct<>",
        "string COLLATE UTF8_LCASE",
        "interval day to second",
    ],
)
def test_a_type_is_kept_as_it_is_written(written: str) -> None:
    first, second = _columns(f"a {written} NOT NULL, b {written}")
    assert first.type_text == second.type_text == written


def test_clauses_of_a_column_come_in_any_order() -> None:
    assert _columns(
        "a.`b c` int COMMENT 'it''s' DEFAULT f(1, 'x') + 2 NOT NULL AFTER d, e int"
    ) == [
        ColumnDefinition(("a", "b c"), "int", True, "it's", "f(1, 'x') + 2", Place("d")),
        ColumnDefinition(("e",), "int"),
    ]


@pytest.mark.parametrize("default", ["NULL", "NOT true", "(1 IS NOT NULL)", "array(1, 2)", "-1"])
def test_a_default_is_kept_as_it_is_written(default: str) -> None:
    (column,) = _columns(f"a int DEFAULT {default} NOT NULL FIRST")
    assert (column.default, column.required, column.place) == (default, True, Place(None))


@pytest.mark.parametrize(
    "text",
    ["a", "a int b", "a int,", "a array<int", "a int DEFAULT", "a int COMMENT b", "a int AFTER"],
)
def test_columns_that_end_too_soon_or_late_are_malformed(text: str) -> None:
    with pytest.raises(InvalidStatementError, match="expected"):
        _columns(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a int PRIMARY KEY", "PRIMARY KEY"),
        ("a int, PRIMARY KEY (a)", "PRIMARY KEY"),
        ("a int, CONSTRAINT c CHECK (a > 0)", "CONSTRAINT c"),
        ("a int, CHECK (a > 0)", "CHECK"),
        ("a int REFERENCES t (a)", "REFERENCES t"),
        ("a int GENERATED ALWAYS AS (1)", "GENERATED"),
    ],
)
def test_what_iceberg_has_not_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=named):
        _columns(text)


def test_columns_may_be_called_like_constraints() -> None:
    assert [each.path[0] for each in _columns("check int, unique string, constraint date")] == [
        "check",
        "unique",
        "constraint",
    ]


def test_clauses_of_a_table_come_in_any_order() -> None:
    found = _definition(
        "(a int, b string) USING iceberg COMMENT 'c' PARTITIONED BY (bucket(4, a), `b`, days(c.d))"
        " LOCATION 's3://x/y' TBLPROPERTIES ('p' = 'q', 'n' = 1, r.s = true)"
    )
    assert [column.path for column in found.columns] == [("a",), ("b",)]
    assert found.partition_by == ["bucket(4, a)", "`b`", "days(c.d)"]
    assert found.location == "s3://x/y"
    assert found.properties == {"comment": "c", "p": "q", "n": "1", "r.s": "true"}
    assert found.query is None


def test_properties_that_describe_another_table_are_left_out() -> None:
    found = _definition(
        "(a int) TBLPROPERTIES ('current-snapshot-id' = 'none', 'format' = 'iceberg/parquet',"
        " 'format-version' = '3', 'identifier-fields' = '[a]', 'p' = 'q', 'sort-order' = 'a ASC')"
    )
    assert found.properties == {"format-version": "3", "p": "q"}


def test_columns_of_partitions_with_types_are_the_last_columns() -> None:
    found = _definition("(a int) PARTITIONED BY (b string COMMENT 'x', `c d` date)")
    assert [column.path[0] for column in found.columns] == ["a", "b", "c d"]
    assert found.columns[1].comment == "x"
    assert found.partition_by == ["`b`", "`c d`"]


def test_clustering_is_a_bucket_transform() -> None:
    found = _definition("(a int) PARTITIONED BY (a) CLUSTERED BY (`b c`) INTO 8 BUCKETS")
    assert found.partition_by == ["a", "bucket(8, `b c`)"]


def test_options_are_properties_under_two_names() -> None:
    assert _definition("OPTIONS ('k' = 'v')").properties == {"k": "v", "option.k": "v"}


@pytest.mark.parametrize(
    "query", ["SELECT 1", "(SELECT 1)", "WITH c AS (SELECT 1) SELECT * FROM c"]
)
@pytest.mark.parametrize("word", ["AS ", ""])
def test_the_query_is_what_follows(word: str, query: str) -> None:
    found = _definition(f"PARTITIONED BY (a) {word}{query}")
    assert found.query is not None
    assert found.query.written == query
    assert found.columns == []


@pytest.mark.parametrize(
    "text",
    [
        "(a int) AS SELECT 1",
        "(a int) PARTITIONED BY (a, b string)",
        "(a int) PARTITIONED BY (b string, days(a))",
        "(a int) LOCATION 'a' LOCATION 'b'",
        "(a int) TBLPROPERTIES ('provider' = 'x')",
        "(a int) TBLPROPERTIES ('location' = 'x')",
        "(a int) nonsense",
        "(a.b int)",
        "(a int FIRST)",
        "()",
    ],
)
def test_malformed_definitions(text: str) -> None:
    with pytest.raises(InvalidStatementError):
        _definition(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("USING delta", "USING delta"),
        ("STORED AS ORC", "STORED AS"),
        ("ROW FORMAT DELIMITED", "ROW FORMAT"),
        ("SKEWED BY (a) ON (1)", "SKEWED BY"),
        ("CLUSTER BY (a)", "CLUSTER BY"),
        ("CLUSTERED BY (a, b) INTO 4 BUCKETS", "CLUSTERED BY several"),
        ("CLUSTERED BY (a) SORTED BY (a) INTO 4 BUCKETS", "SORTED BY"),
    ],
)
def test_clauses_of_other_tables_are_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=named):
        _definition(f"(a int, b int) {text}")


def test_a_property_has_one_value() -> None:
    with pytest.raises(InvalidOptionError, match=r"'write\.format\.default'.*twice"):
        _definition("(a int) USING orc TBLPROPERTIES ('write.format.default' = 'avro')")
