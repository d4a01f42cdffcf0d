"""Finds where the expressions of a statement end."""

from __future__ import annotations

from icebergds.statements.text.cursor import Cursor


def expression_until(cursor: Cursor, *words: str) -> Cursor:
    """Reads what stands before one of these keywords, or before the end.

    Keywords in parentheses and between CASE and END are of the expression.
    """
    start, depth = cursor.at, 0
    while (token := cursor.peek()) is not None:
        before = cursor.peek(-1)
        if before is None or not before.is_sign("."):
            if depth == 0 and token.is_word(*words):
                break
            depth += token.is_word("CASE") - token.is_word("END")
        depth += token.is_sign("(", "[") - token.is_sign(")", "]")
        cursor.at += 1
    return Cursor(cursor.statement, cursor.tokens, start, cursor.at)
