"""Rows and columns that a query is said not to need change no result.

DuckDB runs random queries over whole tables, and over what pruning leaves of each at the least.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from effort import rounds
from sql_queries import SCHEMA, TABLES, random_query, random_rows

from icebergds import Table, load_catalog
from icebergds.expr.nodes import TRUE
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.formats.arrow.filter import filter_mask
from icebergds.operations.conditions import default_setting
from icebergds.operations.read.options import ReadOptions
from icebergds.statements.names.scope import CatalogName
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.needed import Needed
from icebergds.statements.queries.pruning import prune
from icebergds.statements.queries.references import find_references
from icebergds.statements.queries.relations import Relation
from icebergds.statements.text.cursor import Cursor

_QUERIES_A_GROUP = 50


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def test_results_are_those_of_whole_tables(
    tmp_path: Path, database: duckdb.DuckDBPyConnection, rng: random.Random
) -> None:
    pruned = 0
    for group in range(rounds("ICEBERGDS_QUERY_GROUPS", pull=6, nightly=200)):
        tables, rows = _tables(tmp_path / str(group), rng)
        for at, each in enumerate(rows):
            database.register(f"whole{at}", each)
        for _ in range(_QUERIES_A_GROUP):
            query = random_query(rng)
            whole = [f"whole{at}" for at in range(TABLES)]
            try:
                expected = _run(database, query.format(*whole))
            except (duckdb.NotImplementedException, duckdb.BinderException):
                # Some sub-queries in conditions of joins.
                continue
            text = query.format(*(f"lake.db.t{at}" for at in range(TABLES)))
            cursor = _cursor(text)
            relations = _relations(cursor, tables)
            needed = prune(cursor, relations, default_setting, "UTC")
            pruned += sum(each.condition is not TRUE for each in needed)
            left = _with_rows(text, relations, needed, rows, database)
            assert _run(database, left) == expected, text
    assert pruned


def _tables(warehouse: Path, rng: random.Random) -> tuple[list[Table], list[pa.Table]]:
    """Tables of several files, by day, and their rows."""
    catalog = load_catalog("lake", warehouse=str(warehouse))
    catalog.create_namespace("db")
    tables, rows = [], []
    for at in range(TABLES):
        table = catalog.create_table(f"db.t{at}", SCHEMA, partition_spec="day")
        table.append(random_rows(rng, rng.randrange(1, 12)))
        tables.append(table)
        rows.append(table.scan().to_arrow())
    return tables, rows


def _with_rows(
    text: str,
    relations: list[Relation],
    needed: list[Needed],
    rows: list[pa.Table],
    database: duckdb.DuckDBPyConnection,
) -> str:
    """The query over what is left of each relation."""
    for at in reversed(range(len(relations))):
        span, number = relations[at].reference.span, int(relations[at].name.parts[-1][1:])
        database.register(f"left{at}", _left(rows[number], needed[at]))
        text = f"{text[: span.start]}left{at}{text[span.end :]}"
    return text


def _left(rows: pa.Table, needed: Needed) -> pa.Table:
    [batch] = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
    # Ids of columns count from 1.
    mask = filter_mask(needed.condition, batch, lambda field_id: batch.column(field_id - 1))
    left = pa.Table.from_batches([batch.filter(mask)])
    return left if needed.columns is None else left.select([name for (name,) in needed.columns])


def _run(database: duckdb.DuckDBPyConnection, query: str) -> Counter[tuple[object, ...]]:
    for ours, theirs in _DIALECT.items():
        query = query.replace(ours, theirs)
    return Counter(database.sql(query).fetchall())


_DIALECT = {
    "LEFT SEMI JOIN": "SEMI JOIN",
    "LEFT ANTI JOIN": "ANTI JOIN",
    "<=>": "IS NOT DISTINCT FROM",
}


def _cursor(text: str) -> Cursor:
    tokens = sql_tokens(text)
    assert tokens is not None
    return Cursor(text, tokens)


def _relations(cursor: Cursor, tables: list[Table]) -> list[Relation]:
    found = []
    for reference in find_references(cursor):
        if reference.name[0] == "lake":
            name, table = (
                CatalogName("lake", reference.name[1:]),
                tables[int(reference.name[2][1:])],
            )
            source = NamedTable(name, table)
            found.append(Relation(reference, name, source, ReadOptions(), schema=table.schema()))
    return found
