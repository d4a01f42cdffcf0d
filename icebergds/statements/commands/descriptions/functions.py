"""Runs SHOW FUNCTIONS and DESCRIBE FUNCTION."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.spark.bucket_function import BUCKET_FUNCTION
from icebergds.statements.commands.descriptions.patterns import matches, read_pattern
from icebergds.statements.names.scope import NameScope
from icebergds.statements.names.table_names import read_name, shown_name
from icebergds.statements.queries.catalog_functions import catalog_function
from icebergds.statements.queries.function_bodies import signatures
from icebergds.statements.queries.functions import (
    SYSTEM,
    function_named,
    function_names,
    function_usage,
)
from icebergds.statements.results import rows
from icebergds.statements.spark_sql import Arguments, spark_sql
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.parameters import literal

_SCOPES = ("ALL", "USER", "SYSTEM")


def show_functions(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `SHOW [ALL | USER | SYSTEM] FUNCTIONS {FROM | IN} namespace [LIKE pattern]`.

    As in Java, a catalog's functions are in its namespace `system`, but found without it, too.
    """
    cursor.expect("SHOW")
    kind = cursor.take_any(*_SCOPES) or "ALL"
    cursor.expect("FUNCTIONS")
    if cursor.take_any("FROM", "IN") is None:
        return None
    name = scope.namespace(read_name(scope, cursor, "the name of a namespace"))
    if name is None:
        return None
    pattern = read_pattern(cursor)
    found: list[str] = []
    if kind != "USER":
        found += _of_spark(scope, "SYSTEM", pattern)
    if kind != "SYSTEM":
        # Functions of Spark's own databases have qualified names.
        of_session = (each for each in _of_spark(scope, "USER", pattern) if "." not in each)
        found += (each for each in of_session if each != BUCKET_FUNCTION)
        if [part.lower() for part in name.parts] in ([], [SYSTEM]):
            listed = (each for each in function_names() if matches(each, pattern))
            found += (shown_name((name.catalog, *name.parts, each)) for each in listed)
        else:
            # Raises if there is no such namespace.
            scope.catalog(name.catalog).list_tables(name.parts)
        if name.parts and scope.catalog(name.catalog)._has_functions():
            of_server = scope.catalog(name.catalog).list_functions(name.parts)
            found += (
                shown_name((name.catalog, *each))
                for each in of_server
                if matches(each[-1], pattern)
            )
    return rows(scope.spark, "function string NOT NULL", [(each,) for each in sorted(set(found))])


def describe_function(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `{DESCRIBE | DESC} FUNCTION [EXTENDED] name`."""
    cursor.next()
    cursor.expect("FUNCTION")
    cursor.take("EXTENDED")
    token = cursor.peek()
    if token is None or not token.is_identifier:
        # A table of this name, or an operator.
        return None
    parts = cursor.name("the name of a function")
    function = function_named(scope, parts)
    if function is None:
        return _describe_loaded(scope, cursor, parts)
    cursor.expect_end()
    lines = [f"Function: {shown_name(parts)}", f"Usage: {function_usage(function)}"]
    return rows(scope.spark, "function_desc string NOT NULL", [(line,) for line in lines])


def _describe_loaded(scope: NameScope, cursor: Cursor, parts: tuple[str, ...]) -> DataFrame | None:
    """Describes a function of a catalog's server; None if there is none of this name."""
    found = catalog_function(scope, parts)
    if found is None:
        return None
    cursor.expect_end()
    called = shown_name(parts)
    lines = [f"Function: {called}"]
    lines += (f"Usage: {called}{each}" for each in signatures(found.metadata))
    return rows(scope.spark, "function_desc string NOT NULL", [(line,) for line in lines])


def _of_spark(scope: NameScope, kind: str, pattern: str | None) -> list[str]:
    like = "" if pattern is None else f" LIKE {literal(pattern)}"
    text = f"SHOW {kind} FUNCTIONS{like}"
    return [row[0] for row in spark_sql(scope.spark, text, Arguments()).collect()]
