"""Names in double quotes, which sessions may read as names in backticks."""

from __future__ import annotations

from collections.abc import Callable

from icebergds.expr.names import in_backticks
from icebergds.expr.sql_tokens import TokenKind, sql_tokens

_SETTINGS = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enabled": "true",
}


def with_backticks(text: str, setting: Callable[[str], str | None]) -> str:
    """A statement with backticks around names in double quotes, if these are names.

    Args:
        setting: of the session that runs it.
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
