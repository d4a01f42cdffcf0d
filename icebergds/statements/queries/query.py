"""Runs queries: the tables of ours that they name are replaced by pruned scans."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from pyspark.sql import DataFrame

from icebergds.api.view import View
from icebergds.spark.session import session_setting, session_zone
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.functions import replace_functions
from icebergds.statements.queries.naming import alias_of, qualifiers
from icebergds.statements.queries.needed import Needed
from icebergds.statements.queries.pruning import prune
from icebergds.statements.queries.references import find_references
from icebergds.statements.queries.relations import Relation, open_relations, table_frame
from icebergds.statements.queries.views import definition_of
from icebergds.statements.spark_sql import Arguments, Replacement, spliced_sql
from icebergds.statements.text.cursor import Cursor, Span


def run_query(scope: NameScope, query: Cursor, arguments: Arguments) -> DataFrame:
    """Runs a query, or another statement that only reads tables of ours.

    Its text stays as it is, but for the places where it names such tables.

    Raises:
        NoSuchTableError: a table does not exist.
        InvalidStatementError: what is to be read of a table is malformed.
        IcebergError: a table cannot be read.
    """
    replacements = replace_tables(scope, query, arguments)
    return spliced_sql(scope.spark, query.statement, query.span, replacements, arguments)


def replace_tables(
    scope: NameScope, query: Cursor, arguments: Arguments, visible: frozenset[str] = frozenset()
) -> list[Replacement]:
    """What takes the place of the names of our tables in a query, or of a condition.

    Args:
        visible: names of common table expressions of the statement, in lower case.

    Errors are those of `run_query`.
    """
    named = [(each, scope.table(each.name)) for each in find_references(query, visible)]
    ours = [(each, name) for each, name in named if name is not None]
    found = replace_functions(scope, query)
    if not ours:
        return found
    relations = open_relations(scope, query.statement, ours)
    setting, zone = cache(session_setting(scope.spark)), session_zone(scope.spark)
    needed = prune(query, relations, setting, zone)
    for relation, need in zip(relations, needed, strict=True):
        found.extend(_replaced(scope, relation, need, relations))
    found.extend(qualifiers(query, relations))
    return sorted(found, key=lambda each: each.span.start)


def _replaced(
    scope: NameScope, relation: Relation, needed: Needed, relations: Sequence[Relation]
) -> list[Replacement]:
    source, reference = relation.source, relation.reference
    if isinstance(source, View):
        within, definition = definition_of(scope, relation.name, source)
        names = [field.name for field in source.schema().fields]
        frame = run_query(within, definition, Arguments()).toDF(*names)
    else:
        frame = table_frame(scope, relation, needed)
    alias = alias_of(relation, relations)
    text = "" if alias is None else f" AS {alias}"
    at = reference.suffix.alias_at
    if at == reference.span.end:
        return [Replacement(reference.span, text, frame)]
    return [Replacement(reference.span, "", frame), Replacement(Span(at, at), text)]
