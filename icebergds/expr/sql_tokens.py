"""Splits SQL into tokens that know their position in the text.

sqlglot separates them; its changes to their text are undone here, so that a token is what the user
wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from icebergds.expr.names import split_name


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"
    NAME = "name"
    """A name in backticks."""
    TEXT = "text"
    """A literal in quotes, with the letter before it (`r'\\d'`, `X'1F'`)."""
    NUMBER = "number"
    CODE = "code"
    """Text between dollars (`$$ ... $$`, `$yaml$ ... $yaml$`), in which nothing is special."""
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL as it was written, `text[start:end]`."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in upper case; empty if it is not a word."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords (in upper case)."""
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def is_sign(self, *signs: str) -> bool:
        return self.kind is TokenKind.SIGN and self.text in signs

    @property
    def is_identifier(self) -> bool:
        """Whether it can be a part of a name."""
        return self.kind is TokenKind.NAME or (
            self.kind is TokenKind.WORD and _IDENTIFIER.fullmatch(self.text) is not None
        )

    @property
    def identifier(self) -> str:
        """The name part without its backticks."""
        return split_name(self.text)[0] if self.kind is TokenKind.NAME else self.text


def sql_tokens(text: str) -> tuple[Token, ...] | None:
    """The tokens of Spark SQL text, without comments and hints.

    None if it cannot be split, for example because a quote is not closed.
    """
    from sqlglot.errors import TokenError

    codes = _codes(text)
    # In parentheses, because words such as `call` at the start of a statement swallow the rest.
    # The line break ends a comment at the end of the text.
    wrapped = f"({_without_codes(text, codes)}\n)"
    try:
        found = _tokenizer()(dialect="spark").tokenize(wrapped)
    except TokenError:
        return None
    if found[-1].end != len(wrapped) - 1:
        return None
    tokens: list[Token] = []
    at = 0
    for each in found[1:-1]:
        start, end = each.start - 1, each.end
        # A number with a suffix, such as 1L, is several tokens at one position.
        if start < at:
            continue
        if (code := codes.get(start - 1)) is not None:
            start, end = start - 1, code
        if not _is_gap(text[at:start]):
            return None
        if tokens and _is_doubled_quote(tokens[-1], text[start]) and tokens[-1].end == start:
            start = tokens.pop().start
        if code is None:
            tokens.extend(_split(text, start, end))
        else:
            tokens.append(Token(TokenKind.CODE, text[start:end], start, end))
        at = end
    if not _is_gap(text[at:]):
        return None
    return tuple(tokens)


@cache
def _tokenizer() -> Any:
    """Sqlglot's Spark SQL tokenizer, changed so that words after `;` and BEGIN swallow nothing."""
    from sqlglot.dialects.spark import Spark

    class Tokenizer(Spark.Tokenizer):
        COMMAND_PREFIX_TOKENS = set()  # noqa: RUF012

    return Tokenizer


_CODE = re.compile(
    r"""
    (?<!\w)[rR](?:'[^']*'|"[^"]*")
    | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*`
    | --[^\n]* | /\*.*?\*/
    | (?P<dollars>\$[a-zA-Z]*\$).*?(?P=dollars)
    """,
    re.DOTALL | re.VERBOSE,
)


def _codes(text: str) -> dict[int, int]:
    """The ends of the texts between dollars by their starts; sqlglot does not know them."""
    if "$" not in text:
        return {}
    return {each.start(): each.end() for each in _CODE.finditer(text) if each["dollars"]}


def _without_codes(text: str, codes: Mapping[int, int]) -> str:
    """The text with literals in quotes instead, one character shorter at each end."""
    for start, end in codes.items():
        text = f"{text[:start]} '{' ' * (end - start - 4)}' {text[end:]}"
    return text


_IDENTIFIER = re.compile(r"\w+")
_KINDS = {
    TokenKind.TEXT: re.compile(r"""\w?(?:'.*'|".*")""", re.DOTALL),
    TokenKind.NAME: re.compile(r"`.*`", re.DOTALL),
    TokenKind.NUMBER: re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?[a-zA-Z]{0,2}"),
    TokenKind.WORD: re.compile(r"\w+"),
}


def _is_gap(text: str) -> bool:
    """Whether a text has only spaces, comments and hints."""
    return not text or text.isspace() or text.lstrip().startswith(("--", "/*"))


def _is_doubled_quote(before: Token, first: str) -> bool:
    """Whether a literal continues after its quote, as in `'it''s'`."""
    return before.kind is TokenKind.TEXT and before.text[0] == before.text[-1] == first


def _split(text: str, start: int, end: int) -> list[Token]:
    """The tokens of one sqlglot token, which may have several words, such as ORDER BY."""
    piece = text[start:end]
    kind = next((kind for kind, form in _KINDS.items() if form.fullmatch(piece)), TokenKind.SIGN)
    if kind is TokenKind.SIGN and any(c.isspace() for c in piece):
        words = re.finditer(r"\S+", piece)
        return [
            Token(TokenKind.WORD, word.group(), start + word.start(), start + word.end())
            for word in words
        ]
    return [Token(kind, piece, start, end)]
