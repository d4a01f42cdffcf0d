"""Splits SQL into statements, as scripts and prompts have several."""

from __future__ import annotations

from collections.abc import Iterator

from icebergds.errors import InvalidFilterError
from icebergds.expr.sql_tokens import Token, sql_tokens


def statements_of(text: str) -> tuple[list[str], str]:
    """The statements that end with a semicolon, without it, and what follows them.

    Semicolons in literals, in comments and within `BEGIN ... END` end none. What has only comments
    is not a statement. All of a text in which a literal or comment is open is what follows.
    """
    tokens = _tokens(text)
    if tokens is None:
        return [], text
    found: list[str] = []
    begin, own = 0, list[Token]()
    for token in tokens:
        if token.is_sign(";") and not _is_in_block(own):
            if own:
                found.append(text[begin : token.start].strip())
            begin, own = token.end, []
        else:
            own.append(token)
    return found, text[begin:].strip() if own else ""


def _tokens(text: str) -> tuple[Token, ...] | None:
    try:
        return sql_tokens(text)
    except InvalidFilterError:
        return None


def _is_in_block(tokens: list[Token]) -> bool:
    """Whether a compound statement is open."""
    return bool(tokens) and tokens[0].is_word("BEGIN") and sum(_steps(tokens)) > 0


def _steps(tokens: list[Token]) -> Iterator[int]:
    """1 for each word that begins a block or CASE, and -1 for each that ends one."""
    for at, token in enumerate(tokens):
        is_ended = at > 0 and tokens[at - 1].is_word("END")
        if token.is_word("BEGIN", "CASE") and not is_ended:
            yield 1
        elif token.is_word("END"):
            following = tokens[at + 1] if at + 1 < len(tokens) else None
            # These blocks begin with words that are functions, too.
            if following is None or not following.is_word("IF", "WHILE", "LOOP", "REPEAT", "FOR"):
                yield -1
