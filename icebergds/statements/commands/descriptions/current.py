"""Runs USE, SET CATALOG and SHOW CURRENT NAMESPACE."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.statements.names.scope import CurrentNamespace, NameScope, set_current_namespace
from icebergds.statements.names.table_names import read_name, shown_name
from icebergds.statements.results import nothing, rows
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor

NAMESPACE = ("NAMESPACE", "DATABASE", "SCHEMA")
"""Words for a namespace."""


def use(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `USE [NAMESPACE] name`; with the word, the name is in the current catalog."""
    cursor.expect("USE")
    then = cursor.peek(1)
    is_word = then is not None and not then.is_sign(".")
    in_catalog = is_word and cursor.take_any(*NAMESPACE) is not None
    parts = read_name(scope, cursor, "the name of a catalog or namespace")
    cursor.expect_end()
    catalog = scope.current.catalog
    if not in_catalog and scope.is_catalog(parts[0]):
        return _choose(scope, parts[0], parts[1:])
    if catalog is None:
        if not in_catalog and len(parts) > 1 and not scope.is_of_spark(parts[0]):
            # Namespaces of Spark's own catalog have one part, so the first part is a catalog.
            scope.require_catalog(parts[0])
        return None
    if not in_catalog and scope.is_of_spark(parts[0]):
        return _back_to_spark(scope, cursor)
    return _choose(scope, catalog, parts)


def set_catalog(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SET CATALOG name`."""
    cursor.expect("SET", "CATALOG")
    expected = "the name of a catalog"
    name = cursor.text() if cursor.is_at_text() else cursor.identifier(expected)
    cursor.expect_end()
    if scope.is_of_spark(name):
        return None if scope.current.catalog is None else _back_to_spark(scope, cursor)
    scope.require_catalog(name)
    return _choose(scope, name, ())


def show_current_namespace(
    scope: NameScope, cursor: Cursor, arguments: Arguments
) -> DataFrame | None:
    """Runs `SHOW CURRENT NAMESPACE`."""
    cursor.expect("SHOW", "CURRENT")
    if cursor.take_any(*NAMESPACE) is None:
        return None
    cursor.expect_end()
    current = scope.current
    if current.catalog is None:
        return None
    columns = "catalog string NOT NULL, namespace string NOT NULL"
    return rows(scope.spark, columns, [(current.catalog, shown_name(current.namespace))])


def _choose(scope: NameScope, catalog: str, namespace: tuple[str, ...]) -> DataFrame:
    if namespace:
        # Raises if it does not exist.
        scope.catalog(catalog).load_namespace_properties(namespace)
    else:
        scope.catalog(catalog)
    set_current_namespace(scope.spark, CurrentNamespace(catalog, namespace))
    return nothing(scope.spark)


def _back_to_spark(scope: NameScope, cursor: Cursor) -> DataFrame:
    done = spark_sql(scope.spark, cursor.statement, Arguments())
    set_current_namespace(scope.spark, CurrentNamespace())
    return done
