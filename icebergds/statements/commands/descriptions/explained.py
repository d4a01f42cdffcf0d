"""Finds the query that EXPLAIN shows of a statement that changes a table of ours."""

from __future__ import annotations

from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.text.cursor import Cursor

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")


def query_of(scope: NameScope, statement: Cursor) -> Cursor | None:
    """The query that reads what a statement writes, or that finds the rows that it changes.

    Returns:
        None if it is a query itself, or changes nothing of ours.

    Raises:
        UnsupportedFeatureError: it has none.
    """
    head = Cursor(statement.statement, statement.tokens, statement.at, statement.end)
    start = head.at
    if head.take("DELETE", "FROM"):
        name = _target(scope, head)
        return None if name is None else _reread(f"SELECT * FROM {_from(statement, start + 2)}")
    if head.take("UPDATE"):
        name = _target(scope, head)
        if name is None:
            return None
        relation = _until(statement, start + 1, head.until("SET").end)
        condition = _from_word(head, "WHERE")
        return _reread(f"SELECT * FROM {relation} {condition}")
    if head.take("MERGE"):
        head.take("WITH", "SCHEMA", "EVOLUTION")
        head.expect("INTO")
        target = head.at
        if _target(scope, head) is None:
            return None
        relation = _until(statement, target, head.until("USING").end)
        head.expect("USING")
        source = head.until("WHEN").written
        return _reread(f"SELECT * FROM {relation} JOIN {source}")
    if head.take_any("INSERT", "CREATE", "REPLACE") is not None:
        return _written_query(scope, head)
    return None


def _written_query(scope: NameScope, head: Cursor) -> Cursor | None:
    """The query of an INSERT, or of CREATE TABLE ... AS."""
    for words in (("WITH", "SCHEMA", "EVOLUTION"), ("INTO",), ("OVERWRITE",), ("OR", "REPLACE")):
        head.take(*words)
    head.take("TABLE")
    head.take("IF", "NOT", "EXISTS")
    name = _target(scope, head)
    if name is None:
        return None
    head.until(*_QUERIES)
    if head.is_done:
        raise UnsupportedFeatureError(f"EXPLAIN of a statement of {name} that reads nothing")
    return head.rest()


def _target(scope: NameScope, cursor: Cursor) -> CatalogName | None:
    return scope.table(read_name(scope, cursor))


def _until(statement: Cursor, start: int, end: int) -> str:
    return Cursor(statement.statement, statement.tokens, start, end).written


def _from(statement: Cursor, start: int) -> str:
    return _until(statement, start, statement.end)


def _from_word(cursor: Cursor, word: str) -> str:
    cursor.until(word)
    return cursor.rest().written


def _reread(text: str) -> Cursor | None:
    tokens = sql_tokens(text)
    return None if tokens is None else Cursor(text, tokens)
