"""Splits SQL conditions into conjuncts, and removes table aliases from column names.

It only separates names, signs and literals; the filter parser and Spark interpret the parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from icebergds.errors import InvalidFilterError
from icebergds.expr.names import split_name

_NAMES = ("name", "word")
_WORD = re.compile(r"[^\W\d]\w*")
# Words that Spark takes for values, even if a column has the name.
_VALUES = frozenset(
    {"true", "false", "null", "user", "session_user", "localtimestamp"}
    | {f"current_{what}" for what in ("date", "time", "timestamp", "timezone")}
    | {f"current_{what}" for what in ("user", "catalog", "database", "schema", "path")}
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL text; `kind`: `literal`, `name`, `number`, `word`, `space` or `sign`."""

    kind: str
    text: str

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.upper() == word


def conjuncts_of(text: str) -> list[tuple[Token, ...]]:
    """Splits a condition at its top-level ANDs.

    Returns only the condition itself if it has a top-level OR, and nothing if it has comments or
    unclosed quotes.
    """
    tokens = _tokens(text)
    if tokens is None:
        return []
    parts: list[list[Token]] = [[]]
    depth = 0
    is_between = False
    for token in _unwrapped(tokens):
        opens = token.text in ("(", "[") or token.is_word("CASE")
        closes = token.text in (")", "]") or token.is_word("END")
        depth += (opens and token.kind in ("sign", "word")) - (
            closes and token.kind in ("sign", "word")
        )
        if depth == 0 and token.is_word("OR"):
            return [tuple(tokens)]
        if depth == 0 and token.is_word("BETWEEN"):
            is_between = True
        elif depth == 0 and token.is_word("AND"):
            if not is_between:
                parts.append([])
                continue
            is_between = False
        parts[-1].append(token)
    return [tuple(part) for part in parts]


def without_alias(tokens: tuple[Token, ...], alias: str) -> str:
    """The text, without an alias in front of column names."""
    kept: list[str] = []
    at = 0
    while at < len(tokens):
        if _is_qualifier(tokens, at, alias):
            at += 2
            continue
        kept.append(tokens[at].text)
        at += 1
    return "".join(kept).strip()


def conjunct_texts(text: str) -> list[str]:
    """The texts of the conjuncts of a condition; none if it cannot be split."""
    return ["".join(token.text for token in tokens).strip() for tokens in conjuncts_of(text)]


def unqualified(text: str, alias: str) -> str:
    """A condition without an alias in front of column names; as it is if it cannot be split."""
    parts = [without_alias(part, alias) for part in conjuncts_of(text)]
    return " AND ".join(f"({part})" for part in parts) if parts else text


def without_queries(text: str) -> str:
    """A condition with its sub-queries left empty; as it is if it cannot be split."""
    tokens = _tokens(text)
    if tokens is None:
        return text
    kept: list[str] = []
    depth = 0
    opened: int | None = None
    for at, token in enumerate(tokens):
        if token.kind == "sign":
            if token.text == ")":
                depth -= 1
                if depth == opened:
                    opened = None
            elif token.text == "(":
                if opened is None and _is_query(tokens, at + 1):
                    kept.append(token.text)
                    opened = depth
                depth += 1
        if opened is None:
            kept.append(token.text)
    return "".join(kept)


def without_columns_of(text: str, alias: str) -> str:
    """The text, without the columns that are qualified by an alias."""
    name = re.escape(alias)
    # A quoted name is taken whole: the alias and a dot may be in it.
    pattern = rf"(?<![.\w`])(?:{name}|`{name}`)\s*\.\s*(?:`[^`]*`|\w+)|(?P<other>`(?:[^`]|``)*`)"
    return re.sub(pattern, lambda match: match["other"] or " ", text, flags=re.IGNORECASE)


def has_alias(tokens: tuple[Token, ...], alias: str) -> bool:
    """Whether any name is qualified by an alias."""
    return any(_is_qualifier(tokens, at, alias) for at in range(len(tokens)))


def equal_names(tokens: tuple[Token, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The parts of both names in a condition such as `a.b = c.d`; None for other conditions."""
    solid = [token for token in _unwrapped(tokens) if token.kind != "space"]
    signs = [at for at, token in enumerate(solid) if token.text in ("=", "==")]
    if len(signs) != 1:
        return None
    left, right = _name_of(solid[: signs[0]]), _name_of(solid[signs[0] + 1 :])
    return None if left is None or right is None else (left, right)


def _name_of(tokens: list[Token]) -> tuple[str, ...] | None:
    """The parts of a name; None if tokens are anything else, such as a word for a value."""
    parts, dots = tokens[::2], tokens[1::2]
    if len(parts) != len(dots) + 1 or any(token.text != "." for token in dots):
        return None
    if not all(token.kind == "name" or _WORD.fullmatch(token.text) for token in parts):
        return None
    if len(parts) == 1 and parts[0].text.lower() in _VALUES:
        return None
    try:
        return split_name("".join(token.text for token in tokens))
    except InvalidFilterError:
        return None


def _tokens(text: str) -> tuple[Token, ...] | None:
    """The tokens of a condition, and the space between them; None if it cannot be split safely."""
    from sqlglot import tokenize
    from sqlglot.errors import TokenError

    # Inside parentheses: first in a statement, words such as `call` swallow the rest.
    wrapped = f"({text})"
    try:
        found = tokenize(wrapped, read="spark")
    except TokenError:
        return None
    if found[-1].end != len(wrapped) - 1:
        return None
    tokens: list[Token] = []
    at = 0
    for token in found:
        if token.start < at:
            # The suffix of a number such as 1L is several tokens in one place.
            continue
        space, piece = wrapped[at : token.start], wrapped[token.start : token.end + 1]
        kind = _kind_of(piece)
        # Comments are no tokens.
        if kind is None or (space and not space.isspace()):
            return None
        if space:
            tokens.append(Token("space", space))
        if kind == "number" and tokens and not space and tokens[-1].text == ".":
            tokens[-1] = Token("number", f".{piece}")
        else:
            tokens.append(Token(kind, piece))
        at = token.end + 1
    tokens = tokens[1:-1]
    return tuple(
        token
        for at, token in enumerate(tokens)
        if token.kind != "space" or not _is_beside_dot(tokens, at)
    )


def _kind_of(piece: str) -> str | None:
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(piece)), None)


_KINDS = {
    "literal": re.compile(r"""\w*(?:'.*'|".*")""", re.DOTALL),
    "name": re.compile(r"`.*`", re.DOTALL),
    "number": re.compile(r"\d+(?:\.\d*)?\w*(?:[+-]\d+\w*)?"),
    "word": re.compile(r"\w+(?:\s+\w+)*"),
    "sign": re.compile(r"[^\w\s'\"`{}]+"),
}


def _is_beside_dot(tokens: list[Token], at: int) -> bool:
    return any(
        beside.text == "." for beside in (*tokens[max(at - 1, 0) : at], *tokens[at + 1 : at + 2])
    )


def _unwrapped(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Tokens without parentheses around all of them."""
    while True:
        solid = [at for at, token in enumerate(tokens) if token.kind != "space"]
        if len(solid) < 2 or tokens[solid[0]].text != "(" or tokens[solid[-1]].text != ")":
            return tokens
        depth = 0
        for at in solid:
            depth += (tokens[at].text == "(") - (tokens[at].text == ")")
            if depth == 0 and at != solid[-1]:
                return tokens
        tokens = tokens[solid[0] + 1 : solid[-1]]


def _is_query(tokens: tuple[Token, ...], at: int) -> bool:
    solid = next((token for token in tokens[at:] if token.kind != "space"), None)
    words = [] if solid is None or solid.kind != "word" else solid.text.upper().split()
    return bool(words) and words[0] in ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


def _is_qualifier(tokens: tuple[Token, ...], at: int, alias: str) -> bool:
    if tokens[at].kind not in _NAMES or at + 1 >= len(tokens) or tokens[at + 1].text != ".":
        return False
    if at and tokens[at - 1].text == ".":
        return False
    return split_name(tokens[at].text)[0].lower() == alias.lower()
