"""Runs queries, with pruned scans instead of the tables of ours that they name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from icebergds.api.view import View
from icebergds.expr.names import in_backticks, quote_name
from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.sql_tokens import Token
from icebergds.spark.errors import unlogged
from icebergds.spark.session import session_setting, session_zone
from icebergds.statements.names.scope import CatalogName, NameScope, current_namespace
from icebergds.statements.names.table_names import name_in_query, shown_name
from icebergds.statements.queries.answers import answered_text, without_inner
from icebergds.statements.queries.functions import calls_namesakes, replace_functions
from icebergds.statements.queries.naming import aliases_of, placed, qualifiers
from icebergds.statements.queries.needed import Needed, ViewNeeded
from icebergds.statements.queries.pruning import prune
from icebergds.statements.queries.references import Reference, find_references
from icebergds.statements.queries.relations import (
    Relation,
    may_be_answered,
    open_relations,
    refuse_version,
    rows_beside_answers,
    table_frame,
)
from icebergds.statements.queries.streams import require_stream
from icebergds.statements.queries.temporary_views import (
    TemporaryView,
    definition_of,
    spark_qualifiers,
    temporary_view,
)
from icebergds.statements.queries.view_columns import as_created, as_declared, with_columns
from icebergds.statements.spark_sql import Arguments, Replacement, spliced_sql
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.text.parameters import literal
from icebergds.suggestions import did_you_mean


def run_query(
    scope: NameScope, query: Cursor, arguments: Arguments, needed: ViewNeeded | None = None
) -> DataFrame:
    """Runs a query, or another statement that only reads tables of ours.

    The text is unchanged except where it names such tables.

    Args:
        needed: of the rows, if the query is a view's; other rows may be left out.

    Raises:
        NoSuchTableError: a table does not exist.
        InvalidStatementError: the version or options of a table are malformed.
        IcebergError: a table cannot be read.
    """
    replacements = replace_tables(scope, query, arguments, needed=needed)
    try:
        # After some errors, another query is run instead.
        with unlogged():
            return spliced_sql(scope.spark, query.statement, query.span, replacements, arguments)
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith(("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND")):
            raise
    # Spark suggests similar columns from those of the scans, which only have those that are named.
    replacements = replace_tables(scope, query, arguments, all_columns=True, needed=needed)
    return spliced_sql(scope.spark, query.statement, query.span, replacements, arguments)


def our_frame(scope: NameScope, query: Cursor, arguments: Arguments) -> DataFrame | None:
    """The result of a query, as `run_query` gives it; None if it reads nothing of ours."""
    replacements = replace_tables(scope, query, arguments)
    if not replacements:
        return None
    return spliced_sql(scope.spark, query.statement, query.span, replacements, arguments)


def replace_tables(
    scope: NameScope,
    query: Cursor,
    arguments: Arguments,
    visible: frozenset[str] = frozenset(),
    *,
    all_columns: bool = False,
    needed: ViewNeeded | None = None,
) -> list[Replacement]:
    """Replacements for the names of our tables in a query or condition.

    Args:
        visible: names of common table expressions of the statement, in lower case.
        all_columns: whether scans include columns that the query does not name.
        needed: of the query's result, if the query is a view's.

    Errors are those of `run_query`.
    """
    references = references_of(scope, query, arguments, visible)
    relations = named_relations(scope, query, references)
    found = [*_session_functions(scope, query), *replace_functions(scope, query)]
    others = others_of(references, relations)
    views = temporary_relations(scope, others)
    if not relations and not views and not scope.views:
        return sorted(found, key=lambda each: each.span.start)
    aliases = aliases_of(query, relations, references)
    needs = needed_of(scope, query, [*relations, *views], needed)
    for relation, need in zip(views, needs[len(relations) :], strict=True):
        found.extend(_temporary(scope, relation, need))
    for relation, need, alias in zip(relations, needs, aliases, strict=False):
        if all_columns and not need.stars:
            need = replace(need, columns=None)
        found.extend(_replaced(scope, relation, need, alias))
        found.extend(Replacement(star.span, star.text) for star in need.stars)
    found.extend(qualifiers(query, relations, aliases))
    found += spark_qualifiers(scope, others)
    return without_inner(found)


def references_of(
    scope: NameScope, query: Cursor, arguments: Arguments, visible: frozenset[str] = frozenset()
) -> list[Reference]:
    """The places where a query names tables, including `IDENTIFIER(...)`.

    Errors are those of `find_references`.
    """
    return find_references(query, visible, partial(name_in_query, scope, arguments))


def named_relations(
    scope: NameScope, query: Cursor, references: Sequence[Reference]
) -> list[Relation]:
    """The tables and views of ours among the references of a query.

    Raises:
        InvalidStatementError: a name begins with a misspelt name of one of our catalogs.

    Other errors are those of `open_relations`.
    """
    named = [(each, scope.table(each.name)) for each in references]
    for reference, found in named:
        if found is None and len(reference.name) > 2:
            _refuse_misspelt(scope, reference.name[0])
    ours = [(each, name) for each, name in named if name is not None]
    return open_relations(scope, query.statement, ours)


def others_of(references: Sequence[Reference], relations: Sequence[Relation]) -> list[Reference]:
    """The references that are not among our relations."""
    ours = {relation.reference.start for relation in relations}
    return [each for each in references if each.start not in ours]


def temporary_relations(scope: NameScope, references: Sequence[Reference]) -> list[Relation]:
    """The temporary views over our tables among the references of a query.

    Raises:
        InvalidStatementError: a version or options of reads follow one.
    """
    found = []
    for reference in references:
        view = None if scope.views else temporary_view(scope.spark, reference.name)
        if view is not None:
            refuse_version(reference, quote_name(reference.name))
            name = CatalogName("", reference.name)
            found.append(Relation(reference, name, view, schema=view.columns_schema()))
    return found


def _refuse_misspelt(scope: NameScope, catalog: str) -> None:
    """Rejects a misspelt name of one of our catalogs; leaves other names to Spark."""
    if not scope.is_of_spark(catalog) and did_you_mean(catalog, scope.catalogs()):
        scope.require_catalog(catalog)


def needed_of(
    scope: NameScope,
    query: Cursor,
    relations: Sequence[Relation],
    needed: ViewNeeded | None = None,
) -> list[Needed]:
    """What a query can need of its relations.

    Args:
        needed: of the query's result, if the query is a view's.

    Raises:
        InvalidStatementError: the query names metadata columns beside `*`.
    """
    if calls_namesakes(scope, query):
        # They would be taken for Iceberg's transforms.
        return [Needed() for _ in relations]
    setting, zone = cache(session_setting(scope.spark)), session_zone(scope.spark)
    return prune(query, relations, setting, zone, needed)


def view_needed(relation: Relation, condition: Expr, *, as_one: bool = False) -> ViewNeeded | None:
    """What is needed of a view's rows, given a condition on them; None if all may be needed."""
    if relation.schema is None:
        return None
    view = relation.source
    of_query = view.schema.names if isinstance(view, TemporaryView) else None
    return ViewNeeded(relation.schema, condition, of_query, as_one)


def view_frame(
    scope: NameScope,
    name: CatalogName,
    view: View,
    condition: Expr = TRUE,
    *,
    as_one: bool = False,
) -> DataFrame:
    """The rows of a view.

    Args:
        condition: bound to the view's schema; rows for which it is not true may be left out.
        as_one: as for `Needed`.

    Errors are those of `definition_of`, `run_query` and `as_declared`.
    """
    within, definition = definition_of(scope, name, view)
    declared = view.schema()
    frame = run_query(
        within, definition, Arguments(), ViewNeeded(declared, condition, as_one=as_one)
    )
    return as_declared(frame, name, declared)


def _temporary(scope: NameScope, relation: Relation, needed: Needed) -> list[Replacement]:
    """The current rows of a temporary view over our tables."""
    view, reference = relation.source, relation.reference
    assert isinstance(view, TemporaryView), "it is read by its query"
    within = scope.at(view.current)
    of_rows = view_needed(relation, needed.condition, as_one=needed.as_one)
    frame = run_query(within, view.whole_query(), view.arguments, of_rows)
    if reference.is_stream:
        require_stream(frame, reference.name)
    name = quote_name(reference.name)
    frame = with_columns(as_created(frame, name, view.schema), name, view.columns)
    needs_alias = reference.suffix.alias is None and reference.can_have_alias
    return placed(reference, frame, in_backticks(reference.name[-1:]) if needs_alias else None)


def _replaced(
    scope: NameScope, relation: Relation, needed: Needed, alias: str | None
) -> list[Replacement]:
    source, reference = relation.source, relation.reference
    if isinstance(source, View):
        frame = view_frame(scope, relation.name, source, needed.condition, as_one=needed.as_one)
        if reference.is_stream:
            require_stream(frame, reference.name)
        return placed(reference, frame, alias)
    if needed.aggregates is not None and may_be_answered(scope, relation, needed):
        rows = rows_beside_answers(scope, relation, needed)
        if rows.answered is not None:
            return answered_text(scope.spark, relation, needed.aggregates, rows, alias)
        assert rows.rows is not None, "what is not answered is read"
        return placed(reference, rows.rows, alias)
    return placed(reference, table_frame(scope, relation, needed), alias)


def _session_functions(scope: NameScope, query: Cursor) -> Iterator[Replacement]:
    """Replacements for calls of these functions while the current catalog is ours.

    Spark's own session does not know that catalog.
    """
    current = current_namespace(scope.spark)
    if current.catalog is None:
        return
    namespace = (shown_name(current.namespace), "current_schema()")
    values = {
        "current_catalog": (current.catalog, "current_catalog()"),
        "current_database": namespace,
        "current_schema": namespace,
    }
    tokens = query.tokens
    # For each open parenthesis: whether it is in the list of a SELECT.
    in_lists = [False]
    for at in range(query.at, query.end):
        token = tokens[at]
        if token.is_sign("("):
            in_lists.append(False)
        elif token.is_sign(")") and len(in_lists) > 1:
            in_lists.pop()
        elif token.is_word("SELECT"):
            in_lists[-1] = True
        elif token.is_word(*_ENDS):
            in_lists[-1] = False
        elif (found := values.get(token.text.lower())) is not None and _is_call(query, at):
            value, name = found
            is_item = in_lists[-1] and _is_item(_token(query, at - 1), _token(query, at + 3))
            text = literal(value) + (f" AS `{name}`" if is_item else "")
            yield Replacement(Span(token.start, tokens[at + 2].end), text)


# Keywords that end the list of a SELECT.
_ENDS = frozenset(
    """
    FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY LATERAL UNION
    INTERSECT EXCEPT MINUS
    """.split()  # noqa: SIM905
)


def _token(query: Cursor, at: int) -> Token | None:
    return query.tokens[at] if query.at <= at < query.end else None


def _is_call(query: Cursor, at: int) -> bool:
    before, opens, closes = (_token(query, at + step) for step in (-1, 1, 2))
    return (
        (before is None or not before.is_sign("."))
        and opens is not None
        and opens.is_sign("(")
        and closes is not None
        and closes.is_sign(")")
    )


def _is_item(before: Token | None, then: Token | None) -> bool:
    """Whether the text between two tokens is a whole item of a list."""
    begins = before is not None and (before.is_sign(",") or before.is_word("SELECT", "DISTINCT"))
    ends = then is None or then.is_sign(",", ")") or then.is_word(*_ENDS)
    return begins and ends
