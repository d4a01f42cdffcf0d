"""Reads the query of a view."""

from __future__ import annotations

from icebergds.api.view import View
from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.names.current import CurrentNamespace
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.text.cursor import Cursor


def definition_of(scope: NameScope, name: CatalogName, view: View) -> tuple[NameScope, Cursor]:
    """The query of a view for Spark, and what its names mean.

    Raises:
        UnsupportedFeatureError: the view has no query for Spark.
        InvalidStatementError: the query cannot be read.
    """
    text = view.sql_for()
    tokens = sql_tokens(text)
    if tokens is None:
        raise InvalidStatementError(f"view {name}: its query cannot be read: {text}")
    version = view.current_version()
    namespace = CurrentNamespace(version.default_catalog or name.catalog, version.default_namespace)
    return scope.within(namespace), Cursor(text, tokens)
