"""EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame

from icebergds.api.view import View
from icebergds.statements.commands.descriptions.explained import query_of
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.needed import ViewNeeded
from icebergds.statements.queries.query import (
    named_relations,
    needed_of,
    others_of,
    references_of,
    replace_tables,
    temporary_relations,
    view_needed,
)
from icebergds.statements.queries.relations import scan_text
from icebergds.statements.queries.temporary_views import TemporaryView
from icebergds.statements.queries.views import definition_of
from icebergds.statements.results import rows
from icebergds.statements.spark_sql import Arguments, Replacement, spliced_sql
from icebergds.statements.text.cursor import Cursor, Span

_MODES = ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST")
_QUERY = "== Query of the Statement =="


def explain(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `EXPLAIN [mode] statement`: Spark's plan, and what each scan of ours reads and skips.

    Of a statement that changes a table of ours, the query is explained that it reads, or that
    finds its rows.
    """
    cursor.expect("EXPLAIN")
    mode = cursor.take_any(*_MODES)
    statement = cursor.rest()
    query = query_of(scope, statement)
    shown = "" if query is None else f"{_QUERY}\n{query.written}\n\n"
    query = query or statement
    replacements = replace_tables(scope, query, arguments)
    scans = list(_scans(scope, query, arguments))
    if not scans and not shown:
        return None
    start = Span(query.span.start, query.span.start)
    replacements.insert(0, Replacement(start, f"EXPLAIN {mode or ''} "))
    explained = spliced_sql(scope.spark, query.statement, query.span, replacements, arguments)
    # Of a query that it cannot plan, Spark gives the error, a row for each line.
    plan = "\n".join(row[0] for row in explained.collect()).rstrip("\n")
    text = "\n".join((f"{shown}{plan}", "", *scans))
    return rows(scope.spark, "plan string", [(text,)])


def _scans(
    scope: NameScope, query: Cursor, arguments: Arguments, of_view: ViewNeeded | None = None
) -> Iterator[str]:
    """What the scans of a query read, with those of its views."""
    references = references_of(scope, query, arguments)
    relations = named_relations(scope, query, references)
    relations += temporary_relations(scope, others_of(references, relations))
    all_needed = needed_of(scope, query, relations, of_view)
    for relation, needed in zip(relations, all_needed, strict=True):
        view, of_rows = relation.source, view_needed(relation, needed.condition)
        if isinstance(view, View):
            within, definition = definition_of(scope, relation.name, view)
            yield from _scans(within, definition, Arguments(), of_rows)
        elif isinstance(view, TemporaryView):
            within = scope.at(view.current)
            yield from _scans(within, view.whole_query(), view.arguments, of_rows)
        else:
            yield scan_text(scope, relation, needed)
