"""Runs ALTER VIEW and DROP VIEW; rejects views in Spark's catalog that would read our tables."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame

from icebergds.api.view import View
from icebergds.errors import InvalidStatementError, NoSuchViewError, UnsupportedFeatureError
from icebergds.expr.sql_tokens import TokenKind
from icebergds.statements.commands.views.new_view import (
    Definition,
    analysed_view,
    read_view_properties,
    refuse_reserved,
)
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.queries.references import find_references
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.properties import read_property_name

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")
_HIVE = ("ADD", "DROP")


def alter_view(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `ALTER VIEW name SET|UNSET TBLPROPERTIES ...`, `RENAME TO name` and `[AS] query`."""
    cursor.expect("ALTER", "VIEW")
    parts = read_name(scope, cursor, "the name of a view")
    name = scope.table(parts)
    if name is None:
        refuse_ours_in_spark(scope, parts, cursor.rest())
        return None
    if cursor.take("RENAME", "TO"):
        _rename(scope, name, cursor)
    elif cursor.take("SET", "TBLPROPERTIES"):
        properties = read_view_properties(cursor)
        cursor.expect_end()
        _view(scope, name).set_properties(properties)
    elif cursor.take("UNSET", "TBLPROPERTIES"):
        _unset(scope, name, cursor)
    elif cursor.is_at("WITH", "SCHEMA") or any(map(cursor.is_at, _HIVE)):
        raise UnsupportedFeatureError(
            f"view {name}: views of Iceberg's have no partitions and no SCHEMA BINDING"
        )
    elif cursor.take("AS") or cursor.is_at_sign("(") or any(map(cursor.is_at, _QUERIES)):
        view = _view(scope, name)
        analysed_view(scope, name, Definition(cursor.rest()), arguments).replace(view)
    else:
        raise cursor.error("SET TBLPROPERTIES, UNSET TBLPROPERTIES, RENAME TO or AS and a query")
    return nothing(scope.spark)


def drop_view(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `DROP VIEW [IF EXISTS] name`."""
    cursor.expect("DROP", "VIEW")
    may_be_missing = cursor.take("IF", "EXISTS")
    name = scope.table(read_name(scope, cursor, "the name of a view"))
    if name is None:
        return None
    cursor.expect_end()
    catalog = scope.catalog(name.catalog)
    try:
        catalog.drop_view(name.parts)
    except (NoSuchViewError, UnsupportedFeatureError):
        if not may_be_missing:
            _refuse_table(scope, name)
            raise
    return nothing(scope.spark)


def _view(scope: NameScope, name: CatalogName) -> View:
    try:
        return scope.catalog(name.catalog).load_view(name.parts)
    except (NoSuchViewError, UnsupportedFeatureError):
        _refuse_table(scope, name)
        raise


def _refuse_table(scope: NameScope, name: CatalogName) -> None:
    if len(name.parts) > 1 and scope.catalog(name.catalog).table_exists(name.parts):
        raise InvalidStatementError(f"{name} is a table, not a view; write TABLE instead of VIEW")


def _rename(scope: NameScope, name: CatalogName, cursor: Cursor) -> None:
    parts = cursor.name("the new name of the view")
    cursor.expect_end()
    target = scope.table(parts, may_be_temporary=False)
    if target is None or target.catalog != name.catalog:
        raise InvalidStatementError(
            f"view {name} cannot move to another catalog, as {'.'.join(parts)} would; give its "
            f"new name with the catalog: RENAME TO {name.catalog}...."
        )
    _view(scope, name)
    scope.catalog(name.catalog).rename_view(name.parts, target.parts)


def _unset(scope: NameScope, name: CatalogName, cursor: Cursor) -> None:
    may_be_missing = cursor.take("IF", "EXISTS")
    listed = cursor.group()
    cursor.expect_end()
    keys = []
    while not listed.is_done:
        keys.append(read_property_name(listed))
        if not listed.is_done:
            listed.expect_sign(",")
    refuse_reserved(cursor, keys)
    view = _view(scope, name)
    missing = [key for key in keys if key not in view.properties]
    if missing and not may_be_missing:
        raise InvalidStatementError(
            f"view {name} has no property {missing[0]!r} to be removed; tolerate that with "
            "IF EXISTS"
        )
    view.remove_properties(*keys)


def refuse_ours_in_spark(scope: NameScope, view: tuple[str, ...], definition: Cursor) -> None:
    """Raises InvalidStatementError if the definition of a view names a table of ours.

    Spark stores the text, and does not know our catalogs when it reads it.
    """
    named = ".".join(view)
    if (catalog := catalog_of_metrics(scope, definition)) is not None:
        raise InvalidStatementError(
            f"metric view {named} is one of Spark's own catalog, which cannot read tables of "
            f"{catalog}; create a view with the measures as columns beside them (CREATE VIEW "
            f"{catalog}.<namespace>.{view[-1]} AS SELECT dimension, measure ... GROUP BY "
            "dimension), or such a TEMPORARY VIEW"
        )
    for reference in find_references(definition):
        ours = scope.table(reference.name)
        if ours is not None:
            shown = f"{ours.catalog}.{'.'.join(ours.parts[:-1])}.{view[-1]}"
            raise InvalidStatementError(
                f"view {named} is one of Spark's own catalog, which cannot read {ours}; "
                f"create it beside the table (CREATE VIEW {shown} ...), or as a TEMPORARY VIEW"
            )


def catalog_of_metrics(scope: NameScope, definition: Cursor) -> str | None:
    """The catalog of ours that the sources of a metric view name; None if it names none."""
    catalogs = "|".join(map(re.escape, scope.catalogs()))
    for token in definition.tokens[definition.at : definition.end]:
        if catalogs and token.kind is TokenKind.CODE:
            found = re.search(rf"(?<![\w.])`?({catalogs})`?\.[\w`]", token.text)
            if found is not None:
                return found[1]
    return None
