"""Runs SHOW CATALOGS, NAMESPACES, TABLES and VIEWS."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from icebergds.errors import UnsupportedFeatureError
from icebergds.statements.commands.descriptions.details import table_information
from icebergds.statements.commands.descriptions.patterns import matches, read_pattern
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name, shown_name
from icebergds.statements.results import rows
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.parameters import literal

_TABLES = "namespace string NOT NULL, tableName string NOT NULL, isTemporary boolean NOT NULL"
_VIEWS = "namespace string NOT NULL, viewName string NOT NULL, isTemporary boolean NOT NULL"


def show_catalogs(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SHOW CATALOGS [LIKE pattern]`: Spark's catalogs and ours."""
    cursor.expect("SHOW", "CATALOGS")
    pattern = read_pattern(cursor)
    of_spark = [row[0] for row in spark_sql(scope.spark, "SHOW CATALOGS", Arguments()).collect()]
    names = sorted({*of_spark, *scope.catalogs()})
    found = [(name,) for name in names if matches(name, pattern)]
    return rows(scope.spark, "catalog string NOT NULL", found)


def show_namespaces(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SHOW NAMESPACES [IN name] [LIKE pattern]`, by default in the current catalog."""
    cursor.expect("SHOW")
    cursor.next()
    if cursor.take_any("FROM", "IN") is not None:
        parent = scope.namespace(read_name(scope, cursor, "the name of a namespace"))
    else:
        catalog = scope.current.catalog
        parent = None if catalog is None else CatalogName(catalog, ())
    pattern = read_pattern(cursor)
    if parent is None:
        return None
    names = map(shown_name, scope.catalog(parent.catalog).list_namespaces(parent.parts))
    found = [(name,) for name in names if matches(name, pattern)]
    return rows(scope.spark, "namespace string NOT NULL", found)


def show_tables(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SHOW TABLES [IN namespace] [LIKE pattern] [AS JSON]`."""
    cursor, is_json = _before_json(cursor)
    cursor.expect("SHOW", "TABLES")
    namespace = _namespace(scope, cursor)
    pattern = read_pattern(cursor)
    if namespace is None:
        return None
    names = scope.catalog(namespace.catalog).list_tables(namespace.parts)
    if is_json:
        return _json(scope, [_described(name) for name in names if matches(name[-1], pattern)])
    return rows(scope.spark, _TABLES, _listed(names, pattern))


def show_table_extended(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SHOW TABLE EXTENDED [IN namespace] LIKE pattern [AS JSON]`."""
    cursor, is_json = _before_json(cursor)
    cursor.expect("SHOW", "TABLE", "EXTENDED")
    namespace = _namespace(scope, cursor)
    if namespace is None:
        return None
    cursor.expect("LIKE")
    pattern = cursor.text("a pattern")
    if cursor.is_at("PARTITION"):
        raise UnsupportedFeatureError(
            "SHOW TABLE EXTENDED ... PARTITION is not supported: partitions of Iceberg's are not "
            f"in the catalog; query the metadata table {shown_name((pattern, 'partitions'))}"
        )
    cursor.expect_end()
    catalog = scope.catalog(namespace.catalog)
    names = catalog.list_tables(namespace.parts)
    if is_json:
        more = {"catalog": namespace.catalog, "type": "MANAGED"}
        tables = [{**_described(each), **more} for each in names if matches(each[-1], pattern)]
        return _json(scope, tables)
    found: list[tuple[object, ...]] = []
    for namespace_name, name, _ in _listed(names, pattern):
        whole = CatalogName(namespace.catalog, (*namespace.parts, name))
        text = table_information(whole, catalog.load_table(whole.parts))
        found.append((namespace_name, name, False, text))
    found += _temporary(scope, "TABLE EXTENDED", pattern)
    return rows(scope.spark, f"{_TABLES}, information string NOT NULL", found)


def show_views(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SHOW VIEWS [IN namespace] [LIKE pattern]`, including the session's temporary views."""
    cursor.expect("SHOW", "VIEWS")
    namespace = _namespace(scope, cursor)
    pattern = read_pattern(cursor)
    if namespace is None:
        return None
    try:
        names = scope.catalog(namespace.catalog).list_views(namespace.parts)
    except UnsupportedFeatureError:
        names = []
    found = [*_listed(names, pattern), *_temporary(scope, "VIEWS", pattern or "*")]
    return rows(scope.spark, _VIEWS, found)


def _before_json(cursor: Cursor) -> tuple[Cursor, bool]:
    """The statement without `AS JSON` at its end, and whether it has that."""
    end = cursor.end - 2
    tail = cursor.part(end)
    if end < cursor.at or not tail.is_at("AS", "JSON"):
        return cursor, False
    return cursor.part(cursor.at, end), True


def _described(name: tuple[str, ...]) -> dict[str, object]:
    return {"name": name[-1], "namespace": list(name[:-1]), "isTemporary": False}


def _json(scope: NameScope, tables: Sequence[Mapping[str, object]]) -> DataFrame:
    text = json.dumps({"tables": tables}, ensure_ascii=False, separators=(",", ":"))
    return rows(scope.spark, "json_metadata string NOT NULL", [(text,)])


def _namespace(scope: NameScope, cursor: Cursor) -> CatalogName | None:
    if cursor.take_any("FROM", "IN") is None:
        return scope.namespace(())
    return scope.namespace(read_name(scope, cursor, "the name of a namespace"))


def _listed(names: Sequence[tuple[str, ...]], pattern: str | None) -> list[tuple[str, str, bool]]:
    return [
        (shown_name(name[:-1]), name[-1], False) for name in names if matches(name[-1], pattern)
    ]


def _temporary(scope: NameScope, what: str, pattern: str) -> list[tuple[object, ...]]:
    """The rows of Spark's own SHOW statement for temporary views, except global ones."""
    # This database has no tables.
    text = f"SHOW {what} IN global_temp LIKE {literal(pattern)}"
    return [tuple(row) for row in spark_sql(scope.spark, text, Arguments()).collect() if not row[0]]
