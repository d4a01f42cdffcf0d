"""Runs statements that begin with WITH or FROM: WITH ... INSERT, FROM relation INSERT."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.statements.commands.rows.insert import insert, is_at_directory
from icebergds.statements.commands.rows.merge import merge
from icebergds.statements.commands.rows.update_delete import delete, update
from icebergds.statements.names.scope import NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.queries.common_tables import NONE, CommonTables, read_common_tables
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor

_WORDS = ("INTO", "OVERWRITE", "WITH")


def insert_from(
    scope: NameScope, cursor: Cursor, arguments: Arguments, common: CommonTables = NONE
) -> DataFrame | None:
    """Runs `FROM relation INSERT ... SELECT ...` with one INSERT.

    Raises:
        UnsupportedFeatureError: there are several INSERTs, and one is into a table of ours.

    Other errors are those of `insert`.
    """
    source = _until_insert(cursor)
    places = []
    start = cursor.at
    while not cursor.is_done:
        places.append(cursor.at)
        cursor.next()
        _until_insert(cursor)
    cursor.at = start
    if len(places) == 1:
        return insert(scope, cursor, arguments, common, source)
    for place in places:
        head = cursor.part(place)
        if _is_into_table_of_ours(scope, head):
            raise UnsupportedFeatureError(
                "several INSERTs behind one FROM are not supported for tables of Iceberg: they "
                "would be commits of their own; write a statement for each"
            )
    return None


def _is_into_table_of_ours(scope: NameScope, head: Cursor) -> bool:
    head.expect("INSERT")
    head.take("WITH", "SCHEMA", "EVOLUTION")
    if head.take("OVERWRITE") and is_at_directory(head):
        return False
    head.take("INTO")
    head.take("TABLE")
    return scope.table(read_name(scope, head)) is not None


def begins_with_insert(cursor: Cursor) -> bool:
    """Whether INSERT follows the relations after FROM."""
    ahead = cursor.part()
    _until_insert(ahead)
    return not ahead.is_done


def _until_insert(cursor: Cursor) -> Cursor:
    """Reads up to INSERT, or to the end."""
    start, depth = cursor.at, 0
    while (token := cursor.peek()) is not None:
        if depth == 0 and any(cursor.is_at("INSERT", word) for word in _WORDS):
            break
        depth += token.is_sign("(") - token.is_sign(")")
        cursor.at += 1
    return cursor.part(start, cursor.at)


_STATEMENTS = {
    "INSERT": insert,
    "DELETE": delete,
    "UPDATE": update,
    "MERGE": merge,
    "FROM": insert_from,
}


def with_common_tables(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs a statement that changes rows, with its common table expressions."""
    common = read_common_tables(cursor)
    word = next(word for word in _STATEMENTS if cursor.is_at(word))
    return _STATEMENTS[word](scope, cursor, arguments, common)


def changes_rows(cursor: Cursor) -> bool:
    """Whether a statement other than a query follows the common table expressions."""
    ahead = cursor.part()
    try:
        read_common_tables(ahead)
    except InvalidStatementError:
        # Spark reports it.
        return False
    if ahead.is_at("FROM"):
        return begins_with_insert(ahead)
    return any(ahead.is_at(word) for word in _STATEMENTS)
