"""Reads the query of a view, and what its names mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icebergds.api.view import View
from icebergds.errors import InvalidStatementError
from icebergds.expr.names import in_backticks
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.spec.views.metadata import ViewVersion
from icebergds.statements.names.current import CurrentNamespace
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.queries.references import Reference
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Cursor, Span

QUERY_COLUMNS = "spark.query-column-names"
"""The property of a view that keeps the names of its query's columns, as Java writes it."""


def definition_of(scope: NameScope, name: CatalogName, view: View) -> tuple[NameScope, Cursor]:
    """The query of a view for Spark, and what its names mean.

    Raises:
        InvalidOptionError: the view has no query for Spark.
        InvalidStatementError: the query cannot be read, reads the view itself, or its default
            catalog is not configured.
    """
    if name in scope.views:
        path = " -> ".join(map(str, (*scope.views[scope.views.index(name) :], name)))
        raise InvalidStatementError(f"view {name} reads itself: {path}")
    text = view.sql_for()
    tokens = sql_tokens(text)
    if tokens is None:
        raise InvalidStatementError(f"view {name}: its query cannot be read: {text}")
    current = _namespace(scope, name, view.current_version())
    return scope.within(name, current), Cursor(text, tokens)


def spark_qualifiers(scope: NameScope, references: Iterable[Reference]) -> Iterator[Replacement]:
    """What a view's query needs before the names of tables of Spark's.

    A session may have another current namespace, and a temporary view of the name.
    """
    home = scope.current.namespace
    if not scope.views or scope.current.catalog is not None:
        return
    for reference in references:
        name, start = reference.name, reference.start
        if len(name) > 1 and scope.is_of_spark(name[0]):
            continue
        before = home if len(name) == 1 else home[:1]
        yield Replacement(Span(start, start), f"{in_backticks(before)}.")


def _namespace(scope: NameScope, name: CatalogName, version: ViewVersion) -> CurrentNamespace:
    catalog = version.default_catalog or name.catalog
    if scope.is_catalog(catalog):
        return CurrentNamespace(catalog, version.default_namespace)
    if not scope.is_of_spark(catalog):
        raise InvalidStatementError(
            f"view {name}: its query looks for names in the catalog {catalog}, which is not "
            f"configured (there are {', '.join(scope.catalogs())})"
        )
    return CurrentNamespace(None, (catalog, *version.default_namespace))
