"""Reads a statement token by token (`Cursor`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from icebergds.errors import InvalidFilterError, InvalidStatementError
from icebergds.expr.sql_literals import extract_literals
from icebergds.expr.sql_tokens import Token, TokenKind, sql_tokens

_LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a statement, `statement[start:end]`."""

    start: int
    end: int

    def of(self, statement: str) -> str:
        return statement[self.start : self.end]

    def is_within(self, other: Span) -> bool:
        return other.start <= self.start and self.end <= other.end


@dataclass(slots=True)
class Cursor:
    """A position in the tokens of a statement, advanced by reading.

    Methods named `take_*` advance and return True, or do not move; the others raise
    InvalidStatementError with the position if something else comes next.

    Attributes:
        is_extension: whether this is an Iceberg statement that Spark cannot parse, so that errors
            are ours.
    """

    statement: str
    tokens: Sequence[Token]
    at: int = 0
    end: int = field(default=-1)
    is_extension: bool = False

    def __post_init__(self) -> None:
        if self.end < 0:
            self.end = len(self.tokens)

    @property
    def is_done(self) -> bool:
        return self.at >= self.end

    def peek(self, ahead: int = 0) -> Token | None:
        """A token from here on; None after the last one."""
        at = self.at + ahead
        return self.tokens[at] if 0 <= at < self.end else None

    def next(self) -> Token:
        token = self.peek()
        if token is None:
            raise self.error("more")
        self.at += 1
        return token

    def is_at(self, *words: str) -> bool:
        """Whether these keywords, in upper case, come next."""
        ahead = [self.peek(at) for at in range(len(words))]
        return all(
            token is not None and token.is_word(word)
            for token, word in zip(ahead, words, strict=True)
        )

    def take(self, *words: str) -> bool:
        """Advances past keywords if they come next."""
        if not self.is_at(*words):
            return False
        self.at += len(words)
        return True

    def take_any(self, *words: str) -> str | None:
        """Advances past one of several keywords, and returns it."""
        return next((word for word in words if self.take(word)), None)

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            raise self.error(" ".join(words))

    def is_at_sign(self, *signs: str) -> bool:
        token = self.peek()
        return token is not None and token.is_sign(*signs)

    def take_sign(self, sign: str) -> bool:
        if not self.is_at_sign(sign):
            return False
        self.at += 1
        return True

    def expect_sign(self, sign: str) -> None:
        if not self.take_sign(sign):
            raise self.error(repr(sign))

    def identifier(self, expected: str = "a name") -> str:
        token = self.peek()
        if token is None or not token.is_identifier:
            raise self.error(expected)
        self.at += 1
        return token.identifier

    def name(self, expected: str = "a name") -> tuple[str, ...]:
        """The parts of a name, joined with dots."""
        parts = [self.identifier(expected)]
        while self.take_sign("."):
            parts.append(self.identifier(expected))
        return tuple(parts)

    def is_at_text(self) -> bool:
        token = self.peek()
        return token is not None and token.kind is TokenKind.TEXT

    def text(self, expected: str = "text in quotes") -> str:
        """The value of a literal, by Spark's rules; adjacent literals are one."""
        if not self.is_at_text():
            raise self.error(expected)
        values = []
        while self.is_at_text():
            start, end = self.at, self.next().end
            # A doubled quote splits a literal into two tokens.
            while (token := self.peek()) and token.kind is TokenKind.TEXT and token.start == end:
                end = self.next().end
            values += _values(self.part(start, self.at).written)
        if not all(isinstance(value, str) for value in values):
            raise self.error(expected)
        return "".join(map(str, values))

    def integer(self, expected: str = "a whole number") -> int:
        sign = -1 if self.take_sign("-") else 1
        token = self.peek()
        digits = "" if token is None else token.text.rstrip("lLsSyY")
        if token is None or token.kind is not TokenKind.NUMBER or not digits.isdecimal():
            raise self.error(expected)
        self.at += 1
        return sign * int(digits)

    def part(self, start: int | None = None, end: int | None = None) -> Cursor:
        """Another cursor over tokens of the statement, by default from here to the end."""
        first = self.at if start is None else start
        return Cursor(self.statement, self.tokens, first, self.end if end is None else end)

    def group(self) -> Cursor:
        """The content of the parentheses that come next, as a cursor of its own."""
        self.expect_sign("(")
        start, depth = self.at, 1
        while depth:
            token = self.next()
            depth += token.is_sign("(") - token.is_sign(")")
        return self.part(start, self.at - 1)

    def until(self, *words: str) -> Cursor:
        """The tokens before one of these keywords outside of parentheses, or before the end."""
        start, depth = self.at, 0
        while (token := self.peek()) is not None:
            if depth == 0 and token.is_word(*words):
                break
            depth += token.is_sign("(", "[") - token.is_sign(")", "]")
            self.at += 1
        return self.part(start, self.at)

    def rest(self) -> Cursor:
        """Reads the rest, and returns it."""
        start, self.at = self.at, self.end
        return self.part(start)

    def items(self) -> list[Cursor]:
        """Reads the rest, and splits it at commas outside of parentheses."""
        found, start, depth = [], self.at, 0
        while (token := self.peek()) is not None:
            depth += token.is_sign("(", "[", "{") - token.is_sign(")", "]", "}")
            if depth == 0 and token.is_sign(","):
                found.append(self.part(start, self.at))
                start = self.at + 1
            self.at += 1
        if start < self.at or found:
            found.append(self.part(start, self.at))
        return found

    @property
    def span(self) -> Span:
        """The span of the tokens from here to the end."""
        if self.is_done:
            before = self.tokens[self.at - 1].end if self.at else 0
            return Span(before, before)
        return Span(self.tokens[self.at].start, self.tokens[self.end - 1].end)

    @property
    def written(self) -> str:
        """The text from here to the end, as written."""
        return self.span.of(self.statement)

    def expect_end(self) -> None:
        if not self.is_done:
            raise self.error("the end of the statement")

    def error(self, expected: str) -> InvalidStatementError:
        """The error that something else was expected here."""
        token = self.peek()
        place = len(self.statement) if token is None else token.start
        before = self.statement[:place]
        line, column = before.count("\n") + 1, place - (before.rfind("\n") + 1)
        found = "its end" if token is None else repr(token.text)
        shown = self.statement.strip()[:_LONGEST_SHOWN]
        return InvalidStatementError(
            f"{shown}: expected {expected} at {found} (line {line}, position {column})"
        )


def literal_value(token: Token) -> str | bytes:
    """The value of a literal in quotes. Raises InvalidStatementError if it is malformed."""
    (value,) = _values(token.text)
    return value


def _values(written: str) -> list[str | bytes]:
    """The values of adjacent literals in quotes."""
    try:
        return extract_literals(written)[1]
    except (InvalidFilterError, ValueError) as error:
        raise InvalidStatementError(f"{written} is not a literal: {error}") from None


def cursor_of(text: str) -> Cursor:
    """A cursor at the beginning of a text.

    Raises:
        InvalidStatementError: it cannot be split into tokens.
    """
    tokens = sql_tokens(text)
    if tokens is None:
        raise InvalidStatementError(f"{text}: it cannot be read; is a quote not closed?")
    return Cursor(text, tokens)
