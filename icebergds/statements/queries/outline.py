"""Writes the text of a query for sqlglot to parse, and maps positions in its tree back."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import Token, TokenKind
from icebergds.statements.text.cursor import Cursor, Span, literal_value


@dataclass(frozen=True, slots=True)
class Outline:
    """A query without what sqlglot may not parse, with placeholders for text literals.

    Attributes:
        literals: the values of the placeholders '@0', '@1', by Spark's rules.
        places: positions of tokens in the query, by their positions in the outline.
    """

    text: str
    literals: list[str | bytes]
    places: Mapping[int, int]

    def parsed(self) -> Any | None:
        """Sqlglot's tree; None if it cannot parse the query."""
        import sqlglot
        from sqlglot.errors import SqlglotError

        log = logging.getLogger("sqlglot")
        log.addFilter(_is_no_warning)
        try:
            return sqlglot.parse_one(self.text, read="spark")
        except (SqlglotError, RecursionError, ValueError):
            return None
        finally:
            log.removeFilter(_is_no_warning)


# Words that follow a single bar as the sign of a pipe.
_PIPES = frozenset(
    """
    AGGREGATE AS CLUSTER CROSS DISTRIBUTE DROP EXCEPT EXTEND FULL INNER INTERSECT JOIN LEFT LIMIT
    MINUS NATURAL OFFSET ORDER PIVOT RIGHT SELECT SET SORT TABLESAMPLE UNION UNPIVOT WHERE WINDOW
    """.split()  # noqa: SIM905
)


def _is_no_warning(record: logging.LogRecord) -> bool:
    """Drops sqlglot's warning that it does not know a statement: Spark runs it."""
    return record.levelno > logging.WARNING


def outline_of(
    query: Cursor, hidden: Sequence[Span] = (), literals: list[str | bytes] | None = None
) -> Outline | None:
    """The outline of a query; None if it cannot be analysed.

    Args:
        hidden: parts to leave out.
        literals: literals of another outline, to which those of this one are added.
    """
    pieces: list[str] = []
    literals = [] if literals is None else literals
    places: dict[int, int] = {}
    at = 0
    before: Token | None = None
    ahead = sorted(hidden, key=lambda span: span.start, reverse=True)
    hidden_to = 0
    for token, then in pairwise((*query.tokens[query.at : query.end], None)):
        assert token is not None, "only the last one is none"
        while ahead and ahead[-1].start <= token.start:
            hidden_to = max(hidden_to, ahead.pop().end)
        if token.start < hidden_to:
            continue
        piece = token.text
        if token.is_sign("|>", "{", "}", "$") or token.kind is TokenKind.CODE:
            return None
        if token.is_sign("|") and then is not None and then.is_word(*_PIPES):
            return None
        if token.kind is TokenKind.TEXT:
            try:
                literals.append(literal_value(token))
            except InvalidStatementError:
                return None
            piece = f"'@{len(literals) - 1}'"
        if before is not None and before.end != token.start:
            pieces.append(" ")
            at += 1
        places[at] = token.start
        pieces.append(piece)
        at += len(piece)
        before = token
    return Outline("".join(pieces), literals, places)
