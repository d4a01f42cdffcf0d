"""Runs EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame

from icebergds.api.view import View
from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.commands.rows.replaced_rows import replacing_query
from icebergds.statements.commands.rows.target import read_alias, read_options
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
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
from icebergds.statements.queries.temporary_views import TemporaryView, definition_of
from icebergds.statements.results import rows
from icebergds.statements.spark_sql import Arguments, Replacement, spliced_sql
from icebergds.statements.text.cursor import Cursor, Span

_MODES = ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST")
_QUERY = "== Query of the Statement =="


def explain(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `EXPLAIN [mode] statement`: Spark's plan, and what each of our scans reads and skips.

    For a statement that changes a table of ours, explains the query that it writes, or that finds
    the rows to change.
    """
    cursor.expect("EXPLAIN")
    mode = cursor.take_any(*_MODES)
    statement = cursor.rest()
    query = _query_of(scope, statement)
    shown = "" if query is None else f"{_QUERY}\n{query.written}\n\n"
    query = query or statement
    replacements = replace_tables(scope, query, arguments)
    scans = list(_scans(scope, query, arguments))
    if not scans and not shown:
        return None
    start = Span(query.span.start, query.span.start)
    replacements.insert(0, Replacement(start, f"EXPLAIN {mode or ''} "))
    explained = spliced_sql(scope.spark, query.statement, query.span, replacements, arguments)
    # If Spark cannot plan the query, it returns the error, with a row for each line.
    plan = "\n".join(row[0] for row in explained.collect()).rstrip("\n")
    text = "\n".join((f"{shown}{plan}", "", *scans))
    return rows(scope.spark, "plan string", [(text,)])


def _scans(
    scope: NameScope, query: Cursor, arguments: Arguments, of_view: ViewNeeded | None = None
) -> Iterator[str]:
    """Describes the scans of a query and of its views."""
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


_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")


def _query_of(scope: NameScope, statement: Cursor) -> Cursor | None:
    """The query that a statement writes, or that finds the rows that it changes.

    Returns:
        None if it is itself a query, or changes nothing of ours.

    Raises:
        UnsupportedFeatureError: it has no such query.
    """
    head = statement.part()
    if head.take("DELETE", "FROM"):
        target = _changed(scope, head)
        if target is None:
            return None
        return _reread(f"SELECT * FROM {target} {head.rest().written}")
    if head.take("UPDATE"):
        target = _changed(scope, head)
        if target is None:
            return None
        return _reread(f"SELECT * FROM {target} {_from_word(head, 'WHERE')}")
    if head.take("MERGE"):
        head.take("WITH", "SCHEMA", "EVOLUTION")
        head.expect("INTO")
        target = _changed(scope, head)
        if target is None:
            return None
        head.expect("USING")
        source = head.until("WHEN").written
        return _reread(f"SELECT * FROM {target} JOIN {source}")
    if head.take_any("INSERT", "CREATE", "REPLACE") is not None:
        return _written_query(scope, head)
    return None


def _written_query(scope: NameScope, head: Cursor) -> Cursor | None:
    """The query of an INSERT, or of CREATE TABLE ... AS."""
    for words in (("WITH", "SCHEMA", "EVOLUTION"), ("INTO",), ("OVERWRITE",), ("OR", "REPLACE")):
        head.take(*words)
    head.take("TABLE")
    head.take("IF", "NOT", "EXISTS")
    name = _target(scope, head)
    if name is None:
        return None
    if (query := replacing_query(head)) is not None:
        return query
    head.until(*_QUERIES)
    if head.is_done:
        raise UnsupportedFeatureError(f"EXPLAIN of a statement of {name} that reads nothing")
    return head.rest()


def _target(scope: NameScope, cursor: Cursor) -> CatalogName | None:
    return scope.table(read_name(scope, cursor))


def _changed(scope: NameScope, cursor: Cursor) -> str | None:
    """Reads a table to change, its alias and options; returns the first two, None if not ours."""
    start = cursor.at
    name = _target(scope, cursor)
    if name is None:
        return None
    read_alias(cursor, "WHERE", "SET", "USING")
    written = cursor.part(start, cursor.at).written
    # They are options of a write.
    read_options(cursor)
    return written


def _from_word(cursor: Cursor, word: str) -> str:
    cursor.until(word)
    return cursor.rest().written


def _reread(text: str) -> Cursor | None:
    tokens = sql_tokens(text)
    return None if tokens is None else Cursor(text, tokens)
