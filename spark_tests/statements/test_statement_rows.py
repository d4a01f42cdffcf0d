"""How statements that change rows are read; nothing is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from icebergds import load_catalog
from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.commands.rows import COMMANDS
from icebergds.statements.commands.rows.assignments import expression_until
from icebergds.statements.commands.rows.insert import with_defaults
from icebergds.statements.commands.rows.inserted_columns import (
    InsertedColumns,
    PartitionValues,
    read_column_list,
)
from icebergds.statements.commands.rows.replaced_rows import (
    newer_clauses,
    read_alias_of_replaced,
    read_aliased_query,
    read_replaced_rows,
    unqualified,
)
from icebergds.statements.commands.rows.target import StatementTarget, newer_options, read_alias
from icebergds.statements.names.scope import CatalogName
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.common_tables import read_common_tables
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.splice import spliced
from icebergds.statements.user_text import Piece


def read(text: str) -> Cursor:
    tokens = sql_tokens(text)
    assert tokens is not None
    return Cursor(text, tokens)


@pytest.fixture
def target(tmp_path: Path) -> StatementTarget:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    schema = "id bigint, s struct<id: int, t: int>, name string, t struct<x: int>"
    table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
    with table.update_schema() as update:
        update.add_column("kind", "string", default_value="it's")
        update.add_column("code", "binary", default_value=b"\x01\xff")
    name = ("lake", "db", "t")
    return StatementTarget(NamedTable(CatalogName("lake", ("db", "t")), table), name)


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        ("INSERT INTO t SELECT 1", True),
        ("FROM u SELECT *", False),
        ("FROM u INSERT INTO t SELECT *", True),
        ("FROM (SELECT 1) INSERT OVERWRITE t SELECT *", True),
        ("WITH c AS (SELECT 1) SELECT * FROM c", False),
        ("WITH c AS (SELECT 1), d (x) AS (SELECT 2) DELETE FROM t", True),
        ("WITH c (SELECT 1) MERGE INTO t USING c ON true WHEN MATCHED THEN DELETE", True),
        ("WITH c AS (SELECT 1) FROM c SELECT *", False),
        ("WITH c AS (SELECT 1) FROM c INSERT INTO t SELECT *", True),
        ("SELECT 1", False),
    ],
)
def test_statements_that_change_rows_are_told_from_queries(text: str, is_ours: bool) -> None:
    assert any(command.is_of(read(text)) for command in COMMANDS) is is_ours


def test_an_expression_ends_at_a_keyword_outside_of_parentheses_and_of_case() -> None:
    cursor = read("a = CASE WHEN x THEN 1 END, b = (SELECT 1 WHERE y), c = s.when WHEN MATCHED")
    expression = expression_until(cursor, "WHEN")
    assert expression.written == "a = CASE WHEN x THEN 1 END, b = (SELECT 1 WHERE y), c = s.when"
    assert cursor.is_at("WHEN", "MATCHED")


def test_common_tables_are_read_to_their_end() -> None:
    cursor = read("WITH a AS (SELECT 1), b (x, y) AS (SELECT 2, 3), c (SELECT 4) DELETE FROM t")
    found = read_common_tables(cursor)
    assert found.names == {"a", "b", "c"}
    assert found.text == "WITH a AS (SELECT 1), b (x, y) AS (SELECT 2, 3), c (SELECT 4)"
    assert cursor.is_at("DELETE")


@pytest.mark.parametrize(("text", "alias"), [("AS x WHERE", "x"), ("x", "x"), ("WHERE", None)])
def test_an_alias_is_read_with_as_and_without(text: str, alias: str | None) -> None:
    assert read_alias(read(text), "WHERE") == alias


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("(a, `b c`) SELECT 1, 2", ["a", "b c"]),
        ("(map, values) SELECT 1, 2", ["map", "values"]),
        ("(SELECT 1)", None),
        ("((TABLE x) UNION SELECT 1)", None),
        ("SELECT 1", None),
    ],
)
def test_a_list_of_columns_is_told_from_a_query(text: str, names: list[str] | None) -> None:
    cursor = read(text)
    assert read_column_list(cursor) == names
    assert (cursor.at == 0) is (names is None)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("id = 1 SELECT 2", "id = 1"),
        ("id IS DISTINCT FROM 1 FROM x SELECT 2", "id IS DISTINCT FROM 1"),
        ("id IN (1, 2) (SELECT 2)", "id IN (1, 2)"),
        ("(id = 1 AND name = 'x') VALUES (1)", "(id = 1 AND name = 'x')"),
        (
            "map(1, id)[1] = 2 AND map(1, 2)[1] > 0 TABLE u",
            "map(1, id)[1] = 2 AND map(1, 2)[1] > 0",
        ),
        ("id > 1 WITH c AS (SELECT 1) SELECT * FROM c", "id > 1"),
        ("lake.db.t.id = 1 OR db.t.name = 'db.t.x' SELECT 2", "id = 1 OR name = 'db.t.x'"),
        ("t.x = 1 SELECT 2", "t.x = 1"),
    ],
)
def test_replaced_rows_end_where_the_query_begins(
    target: StatementTarget, text: str, condition: str
) -> None:
    cursor = read(f"REPLACE WHERE {text}")
    found = read_replaced_rows(cursor)
    assert found is not None
    assert found.condition is not None
    assert unqualified(found.condition, target, []) == condition
    assert cursor.rest().written in text


@pytest.mark.parametrize(
    ("text", "alias", "kind", "query", "query_alias"),
    [
        ("REPLACE USING (id, name) SELECT 1", None, "USING", "SELECT 1", None),
        ("AS x REPLACE ON x.id = 1 SELECT 1", "x", "ON", "SELECT 1", None),
        ("x REPLACE ON true (SELECT 1) AS s", "x", "ON", "SELECT 1", "s"),
        ("AS by BY NAME REPLACE ON t.id = s.id (TABLE u) s", "by", "ON", "TABLE u", "s"),
        ("replace REPLACE ON true SELECT 1", "replace", "ON", "SELECT 1", None),
        ("BY NAME REPLACE WHERE id = 1 SELECT 1", None, "WHERE", "SELECT 1", None),
        (
            "REPLACE ON true (SELECT 1) UNION (SELECT 2)",
            None,
            "ON",
            "(SELECT 1) UNION (SELECT 2)",
            None,
        ),
    ],
)
def test_what_is_replaced_is_read_with_the_aliases_of_both_sides(
    text: str, alias: str | None, kind: str, query: str, query_alias: str | None
) -> None:
    cursor = read(text)
    assert read_alias_of_replaced(cursor) == alias
    cursor.take("BY", "NAME")
    found = read_replaced_rows(cursor)
    assert found is not None
    assert found.kind == kind
    written, of_query = read_aliased_query(cursor)
    assert (written.written, of_query, cursor.is_done) == (query, query_alias, True)


@pytest.mark.parametrize(
    "text",
    [
        *("SELECT 1", "BY NAME SELECT 1", "(SELECT 1)", "x SELECT 1", "(id) VALUES (1)"),
        "WITH (a = 1) BY NAME REPLACE USING (a) SELECT 1",
    ],
)
def test_statements_that_replace_nothing_have_no_alias(text: str) -> None:
    cursor = read(text)
    assert read_alias_of_replaced(cursor) is None
    assert cursor.at == 0


@pytest.mark.parametrize(
    ("text", "older"),
    [
        ("AS a BY NAME REPLACE USING (id) SELECT 1", "BY NAME SELECT 1"),
        ("(id) REPLACE WHERE id IN (SELECT 1) SELECT 1", "(id) SELECT 1"),
        ("a WITH ('a' = 1) REPLACE ON true (SELECT 1) AS s", "WITH ('a' = 1) (SELECT 1)"),
        ("SELECT 1", "SELECT 1"),
    ],
)
def test_newer_clauses_can_be_left_out(text: str, older: str) -> None:
    cursor = read(text)
    found = [Replacement(span) for span in newer_clauses(read(text))]
    assert " ".join(spliced(cursor, found).split()) == older


@pytest.mark.parametrize(
    ("text", "older"),
    [
        ("AS x WITH ('a' = 1) WHERE id = 1", "AS x WHERE id = 1"),
        ("WITH (a 1) SET id = 1", "SET id = 1"),
        ("t WITH (a = 1) USING u WITH (b = 2) s ON true WHEN", "t USING u s ON true WHEN"),
        ("USING (WITH c AS (SELECT 1) TABLE c) s ON true", None),
        ("WHERE id IN (TABLE u WITH (b = 2))", None),
    ],
)
def test_newer_options_can_be_left_out(text: str, older: str | None) -> None:
    cursor = read(text)
    found = [Replacement(span) for span in newer_options(read(text))]
    assert " ".join(spliced(cursor, found).split()) == (older or text)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("VALUES (1, DEFAULT), (DEFAULT, 'x')", "VALUES (1, {kind}), (NULL, 'x')"),
        ("(VALUES (1, default))", "(VALUES (1, {kind}))"),
        ("SELECT 1, DEFAULT FROM u", "SELECT 1, {kind} FROM u"),
        ("SELECT f(DEFAULT), 'DEFAULT'", "SELECT f(DEFAULT), 'DEFAULT'"),
        ("SELECT 1, 2 FROM (SELECT DEFAULT)", "SELECT 1, 2 FROM (SELECT DEFAULT)"),
    ],
)
def test_default_is_the_default_of_its_column(
    target: StatementTarget, query: str, expected: str
) -> None:
    columns = InsertedColumns(target, PartitionValues()).listed(["id", "kind"])
    kind = "CAST(X'69742773' AS STRING)"
    assert _text(with_defaults(read(query), columns)) == expected.format(kind=kind)


def test_the_default_of_binary_is_written_as_bytes(target: StatementTarget) -> None:
    columns = InsertedColumns(target, PartitionValues()).listed(["code"])
    assert _text(with_defaults(read("VALUES (DEFAULT)"), columns)) == "VALUES (X'01ff')"


def _text(pieces: list[Piece]) -> str:
    return "".join(each.text or "" for each in pieces)


@pytest.mark.parametrize(
    ("parts", "column"),
    [
        (("ID",), "id"),
        (("t", "id"), "id"),
        (("lake", "db", "t", "s", "id"), "s.id"),
        (("s", "t"), "s.t"),
        (("t", "x"), "t.x"),
        (("t", "t", "x"), "t.x"),
    ],
)
def test_a_column_has_a_qualifier_or_none(
    target: StatementTarget, parts: tuple[str, ...], column: str
) -> None:
    found = target.column(parts, "update")
    assert ".".join(target.table.schema().paths_by_id[found.field_id]) == column


def test_an_unknown_column_is_named_with_the_nearest(target: StatementTarget) -> None:
    with pytest.raises(InvalidStatementError, match=r"table lake\.db\.t: .*did you mean name"):
        target.column(("nme",), "update")
