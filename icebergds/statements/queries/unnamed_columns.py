"""Tells where a column of a SELECT stands that has no name of its own."""

from __future__ import annotations

from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import Token, TokenKind
from icebergds.statements.text.cursor import Cursor, Span

# They end the list of a SELECT.
BEHIND_LISTS = frozenset(
    """
    FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY LATERAL UNION
    INTERSECT EXCEPT MINUS
    """.split()  # noqa: SIM905
)
_OPERATORS = ("+", "-", "*", "/", "%", "||", "=", "==", "<", "<=", ">", ">=", "<>", "!=", "<=>")


def begins_column(before: Token | None) -> bool:
    """Whether a column begins behind a token, in the list of a SELECT."""
    return before is not None and (before.is_sign(",") or before.is_word("SELECT", "DISTINCT"))


def unnamed_column(query: Cursor, start: int) -> Span | None:
    """Where the column stands that begins at a token of the list of a SELECT.

    None if it has a name, or if that cannot be told: a column that is more than calls, columns and
    literals with operators between them, or has a sub-query.
    """
    column = Cursor(query.statement, query.tokens, start, query.end)
    try:
        _operand(column)
        while not _ends_column(column.peek()):
            if not column.next().is_sign(*_OPERATORS):
                return None
            _operand(column)
    except InvalidStatementError:
        return None
    tokens = query.tokens[start : column.at]
    if any(token.is_word("SELECT") for token in tokens):
        return None
    return Span(tokens[0].start, tokens[-1].end)


def _operand(column: Cursor) -> None:
    column.take_sign("-")
    token = column.peek()
    if token is not None and token.kind in (TokenKind.NUMBER, TokenKind.TEXT):
        column.next()
        return
    if not column.is_at_sign("("):
        column.name()
        if not column.is_at_sign("("):
            return
    column.group()


def _ends_column(behind: Token | None) -> bool:
    return behind is None or behind.is_sign(",", ")") or behind.is_word(*BEHIND_LISTS)
