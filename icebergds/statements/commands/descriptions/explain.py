"""EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame

from icebergds.api.view import View
from icebergds.errors import UnsupportedFeatureError
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.query import (
    named_relations,
    needed_of,
    replace_tables,
)
from icebergds.statements.queries.references import find_references
from icebergds.statements.queries.relations import scan_text
from icebergds.statements.queries.views import definition_of
from icebergds.statements.results import rows
from icebergds.statements.spark_sql import Arguments, spliced_sql
from icebergds.statements.text.cursor import Cursor

_MODES = ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST")
_TITLE = "== Iceberg Scans =="
# What stands between the first words of a statement and the name of what it changes.
_CHANGES = (
    (("INSERT", "INTO"), ("TABLE",)),
    (("INSERT", "OVERWRITE"), ("TABLE",)),
    (("DELETE", "FROM"), ()),
    (("UPDATE",), ()),
    (("MERGE", "WITH", "SCHEMA", "EVOLUTION", "INTO"), ()),
    (("MERGE", "INTO"), ()),
    (("CREATE", "TABLE"), ("IF", "NOT", "EXISTS")),
    (("CREATE", "OR", "REPLACE", "TABLE"), ()),
    (("REPLACE", "TABLE"), ()),
)


def explain(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `EXPLAIN [mode] query`: Spark's plan, and what each scan of ours reads and skips."""
    whole = cursor.span
    cursor.expect("EXPLAIN")
    cursor.take_any(*_MODES)
    query = cursor.rest()
    _refuse_changes(scope, query)
    replacements = replace_tables(scope, query, arguments)
    scans = list(_scans(scope, query))
    if not scans:
        return None
    explained = spliced_sql(scope.spark, query.statement, whole, replacements, arguments)
    [row] = explained.collect()
    text = "\n".join((row[0].rstrip("\n"), "", _TITLE, *scans))
    return rows(scope.spark, "plan string", [(text,)])


def _scans(scope: NameScope, query: Cursor) -> Iterator[str]:
    """What the scans of a query read, with those of its views."""
    relations = named_relations(scope, query, find_references(query))
    for relation, needed in zip(relations, needed_of(scope, query, relations), strict=True):
        if isinstance(relation.source, View):
            yield from _scans(*definition_of(scope, relation.name, relation.source))
        else:
            yield scan_text(scope, relation, needed)


def _refuse_changes(scope: NameScope, statement: Cursor) -> None:
    head = Cursor(statement.statement, statement.tokens, statement.at, statement.end)
    for words, further in _CHANGES:
        if not head.take(*words):
            continue
        if further:
            head.take(*further)
        name = scope.table(head.name("the name of a table"))
        if name is None:
            return
        raise UnsupportedFeatureError(
            f"EXPLAIN {' '.join(words)} {name} is not supported: it is no statement of Spark's "
            "plans; explain the query that it reads"
        )
