"""Runs statements on namespaces: CREATE, DROP, ALTER, COMMENT ON, DESCRIBE, USE, SHOW CURRENT."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from icebergds.errors import AlreadyExistsError, InvalidStatementError, NoSuchNamespaceError
from icebergds.statements.names.scope import (
    CatalogName,
    CurrentNamespace,
    NameScope,
    set_current_namespace,
)
from icebergds.statements.names.table_names import read_name, shown_name
from icebergds.statements.results import nothing, rows
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.properties import read_properties, read_property_name

_COMMENT, _LOCATION, _OWNER = "comment", "location", "owner"
_RESERVED = (_COMMENT, _LOCATION, _OWNER)
"""Properties that have clauses of their own, in the order in which Spark describes them."""
_WORDS = "DBPROPERTIES or PROPERTIES"
NAMESPACE = ("NAMESPACE", "DATABASE", "SCHEMA")
"""Words for a namespace."""


def create_namespace(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `CREATE NAMESPACE [IF NOT EXISTS] name [COMMENT ...] [LOCATION ...] [WITH ...]`."""
    cursor.expect("CREATE")
    cursor.next()
    may_exist = cursor.take("IF", "NOT", "EXISTS")
    name = _name(scope, cursor)
    if name is None:
        return None
    properties: dict[str, str] = {}
    while not cursor.is_done:
        if cursor.take("COMMENT"):
            clause = {_COMMENT: cursor.text("a comment")}
        elif cursor.take("LOCATION"):
            clause = {_LOCATION: cursor.text("a location")}
        else:
            cursor.expect("WITH")
            clause = _properties(cursor)
        if clause.keys() & properties.keys():
            raise cursor.error("each clause and each property once")
        properties |= clause
    catalog = scope.catalog(name.catalog)
    try:
        catalog.create_namespace(name.parts, properties)
    except AlreadyExistsError:
        if not may_exist:
            raise
    return nothing(scope.spark)


def drop_namespace(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `DROP NAMESPACE [IF EXISTS] name [RESTRICT|CASCADE]`.

    Catalogs drop only empty namespaces, even with CASCADE, as in Java.
    """
    cursor.expect("DROP")
    cursor.next()
    may_be_missing = cursor.take("IF", "EXISTS")
    name = _name(scope, cursor)
    if name is None:
        return None
    cursor.take_any("RESTRICT", "CASCADE")
    cursor.expect_end()
    try:
        scope.catalog(name.catalog).drop_namespace(name.parts)
    except NoSuchNamespaceError:
        if not may_be_missing:
            raise
    return nothing(scope.spark)


def alter_namespace(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `ALTER NAMESPACE name SET [DB]PROPERTIES|LOCATION ...` and UNSET."""
    cursor.expect("ALTER")
    cursor.next()
    name = _name(scope, cursor)
    if name is None:
        return None
    updates: Mapping[str, str] = {}
    removals: set[str] = set()
    if cursor.take("UNSET"):
        _expect_word(cursor)
        listed = cursor.group()
        while not listed.is_done:
            removals.add(read_property_name(listed))
            if not listed.is_done:
                listed.expect_sign(",")
    else:
        cursor.expect("SET")
        if cursor.take("LOCATION"):
            updates = {_LOCATION: cursor.text("a location")}
        else:
            updates = _properties(cursor)
    cursor.expect_end()
    scope.catalog(name.catalog).update_namespace_properties(name.parts, removals, updates)
    return nothing(scope.spark)


def comment_on_namespace(
    scope: NameScope, cursor: Cursor, arguments: Arguments
) -> DataFrame | None:
    """Runs `COMMENT ON NAMESPACE name IS 'text'|NULL`; NULL empties the comment."""
    cursor.expect("COMMENT", "ON")
    cursor.next()
    name = _name(scope, cursor)
    if name is None:
        return None
    cursor.expect("IS")
    text = "" if cursor.take("NULL") else cursor.text("a comment")
    cursor.expect_end()
    catalog = scope.catalog(name.catalog)
    catalog.update_namespace_properties(name.parts, updates={_COMMENT: text})
    return nothing(scope.spark)


def describe_namespace(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `DESCRIBE NAMESPACE [EXTENDED] name`, starting after its first word."""
    cursor.next()
    is_extended = cursor.take("EXTENDED")
    name = _name(scope, cursor)
    if name is None:
        return None
    cursor.expect_end()
    properties = scope.catalog(name.catalog).load_namespace_properties(name.parts)
    found = [("Catalog Name", name.catalog), ("Namespace Name", shown_name(name.parts))]
    found += [(key.capitalize(), properties[key]) for key in _RESERVED if key in properties]
    if is_extended:
        others = sorted((k, v) for k, v in properties.items() if k not in _RESERVED)
        shown = ", ".join(f"({key},{value})" for key, value in others)
        found.append(("Properties", f"({shown})" if others else ""))
    return rows(scope.spark, "info_name string NOT NULL, info_value string", found)


def _name(scope: NameScope, cursor: Cursor) -> CatalogName | None:
    name = scope.namespace(read_name(scope, cursor, "the name of a namespace"))
    if name is not None and not name.parts:
        raise InvalidStatementError(
            f"{name.catalog} is a catalog; name a namespace in it, such as {name.catalog}.db"
        )
    return name


def _properties(cursor: Cursor) -> dict[str, str]:
    _expect_word(cursor)
    found = read_properties(cursor.group())
    for key in _RESERVED:
        if key in found:
            raise cursor.error(f"no property {key!r}, which a clause of its own sets, before")
    return found


def _expect_word(cursor: Cursor) -> None:
    if cursor.take_any("DBPROPERTIES", "PROPERTIES") is None:
        raise cursor.error(_WORDS)


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
