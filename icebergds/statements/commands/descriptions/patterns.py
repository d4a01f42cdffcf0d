"""Matches names with the patterns of SHOW statements."""

from __future__ import annotations

import re

from icebergds.statements.text.cursor import Cursor


def read_pattern(cursor: Cursor) -> str | None:
    """Reads `[LIKE] 'pattern'` at the end of a statement; None if there is no pattern.

    Raises:
        InvalidStatementError: something else follows.
    """
    pattern = cursor.text("a pattern") if cursor.take("LIKE") or cursor.is_at_text() else None
    cursor.expect_end()
    return pattern


def matches(name: str, pattern: str | None) -> bool:
    """Whether Spark's SHOW statements list a name: `*` is any text, `|` separates alternatives.

    Everything else is a case-insensitive regular expression; a malformed one matches nothing.
    """
    if pattern is None:
        return True
    return any(_matches(name, one.strip().replace("*", ".*")) for one in pattern.split("|"))


def _matches(name: str, expression: str) -> bool:
    try:
        return re.fullmatch(expression, name, re.IGNORECASE) is not None
    except re.error:
        return False
