"""Reads texts that are no statements of their own, such as a query in an argument."""

from __future__ import annotations

from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.text.cursor import Cursor


def cursor_of(text: str) -> Cursor:
    """A cursor at the beginning of a text.

    Raises:
        InvalidStatementError: it cannot be split into tokens.
    """
    tokens = sql_tokens(text)
    if tokens is None:
        raise InvalidStatementError(f"{text}: it cannot be read; is a quote not closed?")
    return Cursor(text, tokens)
