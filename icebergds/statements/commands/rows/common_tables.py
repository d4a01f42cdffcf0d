"""Runs statements that begin with WITH: WITH ... INSERT, DELETE, UPDATE, MERGE."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.errors import InvalidStatementError
from icebergds.statements.commands.rows.insert import insert
from icebergds.statements.commands.rows.merge import merge
from icebergds.statements.commands.rows.multiple_inserts import begins_with_insert, insert_from
from icebergds.statements.commands.rows.update_delete import delete, update
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.common_tables import read_common_tables
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor

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
    ahead = Cursor(cursor.statement, cursor.tokens, cursor.at, cursor.end)
    try:
        read_common_tables(ahead)
    except InvalidStatementError:
        # Spark reports it.
        return False
    if ahead.is_at("FROM"):
        return begins_with_insert(ahead)
    return any(ahead.is_at(word) for word in _STATEMENTS)
