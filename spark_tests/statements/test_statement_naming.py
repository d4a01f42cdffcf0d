"""Columns are qualified as before where DataFrames stand for tables."""

from __future__ import annotations

import pytest

from icebergds import Table, load_catalog
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.names.scope import CatalogName
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.naming import aliases_of, is_name_of_other, qualifiers
from icebergds.statements.queries.references import find_references
from icebergds.statements.queries.relations import Relation
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.splice import spliced


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    catalog = load_catalog("lake", warehouse=str(tmp_path_factory.mktemp("warehouse")))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", "id bigint")


def _named(table: Table, query: str) -> tuple[list[str | None], str]:
    """The aliases of tables of `lake`, and the query with its new qualifiers."""
    tokens = sql_tokens(query)
    assert tokens is not None
    cursor = Cursor(query, tokens)
    references = find_references(cursor)
    relations = []
    for reference in references:
        if reference.name[0] == "lake":
            name = CatalogName("lake", reference.name[1:])
            relations.append(Relation(reference, name, NamedTable(name, table)))
    aliases = aliases_of(cursor, relations, references)
    return aliases, spliced(cursor, qualifiers(cursor, relations, aliases))


@pytest.mark.parametrize(
    ("query", "aliases", "changed"),
    [
        ("SELECT t.id FROM lake.db.t", ["`t`"], "SELECT t.id FROM lake.db.t"),
        ("SELECT lake.db.t.id FROM lake.db.t", ["`t`"], "SELECT `t`.id FROM lake.db.t"),
        ("SELECT lake.db.t.*, t.* FROM lake.db.t", ["`t`"], "SELECT `t`.*, t.* FROM lake.db.t"),
        ("SELECT t.id FROM lake.db.t AS t", [None], "SELECT t.id FROM lake.db.t AS t"),
        (
            "SELECT t.id FROM lake.db.t WHERE t.id IN (SELECT t.id FROM lake.x.t)",
            ["`t`", "`t`"],
            "SELECT t.id FROM lake.db.t WHERE t.id IN (SELECT t.id FROM lake.x.t)",
        ),
        (
            "SELECT 1 FROM lake.db.t WHERE EXISTS (SELECT 1 FROM lake.x.t WHERE t.id = db.t.id)",
            ["`lake.db.t`", "`t`"],
            "SELECT 1 FROM lake.db.t WHERE EXISTS (SELECT 1 FROM lake.x.t WHERE t.id = "
            "`lake.db.t`.id)",
        ),
        (
            "SELECT 1 FROM lake.db.t WHERE EXISTS (SELECT 1 FROM u AS t WHERE t.id = db.t.id)",
            ["`lake.db.t`"],
            "SELECT 1 FROM lake.db.t WHERE EXISTS (SELECT 1 FROM u AS t WHERE t.id = "
            "`lake.db.t`.id)",
        ),
        (
            "SELECT db.t.id, x.t.id FROM lake.db.t, lake.x.t",
            ["`lake.db.t`", "`lake.x.t`"],
            "SELECT `lake.db.t`.id, `lake.x.t`.id FROM lake.db.t, lake.x.t",
        ),
    ],
)
def test_a_qualifier_is_of_the_table_that_it_names(
    table: Table, query: str, aliases: list[str | None], changed: str
) -> None:
    assert _named(table, query) == (aliases, changed)


@pytest.mark.parametrize(
    ("query", "is_other"),
    [
        ("SELECT t.id, db.t.id FROM t", False),
        ("UPDATE t SET id = 1 WHERE db.t.id = 2", False),
        ("SELECT db.t.id, t FROM t", True),
        ("SELECT db.t.id FROM t JOIN (SELECT 1 AS x) t", True),
    ],
)
def test_the_table_itself_is_nothing_else_of_its_name(query: str, is_other: bool) -> None:
    tokens = sql_tokens(query)
    assert tokens is not None
    cursor = Cursor(query, tokens)
    places = {reference.start for reference in find_references(cursor)}
    assert is_name_of_other(cursor, "t", [], places) == is_other
