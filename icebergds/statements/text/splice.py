"""Replaces parts of a statement, and quotes names in double quotes with backticks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from icebergds.expr.names import in_backticks
from icebergds.expr.sql_tokens import TokenKind, sql_tokens
from icebergds.statements.text.cursor import Cursor, Span


class Splice(Protocol):
    """A part of a statement, and the text that replaces it."""

    @property
    def span(self) -> Span: ...

    @property
    def text(self) -> str: ...


def spliced(part: Cursor, replacements: Iterable[Splice]) -> str:
    """A part of a statement as written, with replacements.

    Args:
        replacements: in order, without overlaps.
    """
    span = part.span
    pieces: list[str] = []
    at = span.start
    for each in replacements:
        pieces += [part.statement[at : each.span.start], each.text]
        at = each.span.end
    return "".join([*pieces, part.statement[at : span.end]])


_SETTINGS = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enabled": "true",
}


def with_backticks(text: str, setting: Callable[[str], str | None]) -> str:
    """A statement with backticks around names in double quotes, if the session reads these as
    names.

    Args:
        setting: reads settings of the session that runs it.
    """
    if '"' not in text or not all(
        (setting(name) or default).lower() == "true" for name, default in _SETTINGS.items()
    ):
        return text
    pieces: list[str] = []
    at = 0
    for token in sql_tokens(text) or ():
        if token.kind is TokenKind.TEXT and token.text[0] == '"':
            name = token.text[1:-1].replace('""', '"')
            pieces += [text[at : token.start], in_backticks([name])]
            at = token.end
    return "".join([*pieces, text[at:]])
