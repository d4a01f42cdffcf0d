"""Reads what follows the name of a table in a query.

That is a version or a range of changes, options, a sample, an alias.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from icebergds.catalog.naming import version_options
from icebergds.errors import InvalidOptionError, InvalidStatementError
from icebergds.expr.sql_tokens import TokenKind
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.text.properties import read_properties


@dataclass(frozen=True, slots=True)
class Suffix:
    """What follows the name of a table.

    Attributes:
        end: where the name, the version or changes, and the options end.
        options: the read options.
        times: expressions whose values are the times of further read options, by these.
        alias: the name that the query gives to the relation.
        alias_at: where an alias can be inserted.
        is_sampled: whether only a sample of the rows is read.
        source_name: of a stream, in its checkpoints: `IDENTIFIED BY name`.
    """

    end: int
    options: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, Span] = field(default_factory=dict)
    alias: str | None = None
    alias_at: int = 0
    is_sampled: bool = False
    source_name: str | None = None


AS_OF = "as-of-timestamp"
"""The option of a read as of a time."""


def ends_relation(cursor: Cursor) -> bool:
    """Whether no name comes next, but words that belong to the name before, or end its relation."""
    token, then = cursor.peek(), cursor.peek(1)
    if token is None or token.is_word(*_JOINS, *_CLAUSES):
        return True
    if any(cursor.is_at(*each) for each in _TRAVELS):
        return True
    if token.is_word("WITH") and then is not None and then.is_sign("("):
        return True
    ahead = cursor.part()
    _skip_watermark(ahead)
    return ahead.at > cursor.at


def read_suffix(cursor: Cursor, *, is_stream: bool = False) -> Suffix:
    """Reads the suffix, from after the name on.

    Args:
        is_stream: whether the word STREAM is before the name.

    Raises:
        InvalidStatementError: it is malformed.
        InvalidOptionError: it gives two versions, or an option twice.
    """
    options = _version(cursor)
    times: dict[str, Span] = {}
    if options and any(cursor.is_at(*each) for each in _TRAVELS):
        raise InvalidOptionError(f"{cursor.statement.strip()[:_LONGEST_SHOWN]}: {_TWICE}")
    if _takes(cursor, "VERSION", "SYSTEM_VERSION"):
        options["versionAsOf"] = _named_version(cursor)
    elif _takes(cursor, "TIMESTAMP", "SYSTEM_TIME"):
        times[AS_OF] = _expression(cursor)
    elif cursor.take("CHANGES", "FROM"):
        options["changes"] = "true"
        _changes(cursor, options, times)
    elif is_stream and cursor.take("CHANGES"):
        options["changes"] = "true"
    if cursor.is_at("WITH") and (token := cursor.peek(1)) is not None and token.is_sign("("):
        cursor.next()
        given = read_properties(cursor.group())
        said = {name.lower() for name in (*options, *times)}
        if twice := [name for name in given if name.lower() in said]:
            what = f"option {twice[0]!r} says what CHANGES FROM says; leave it out"
            what = what if "changes" in options else _TWICE
            raise InvalidOptionError(f"{cursor.statement.strip()[:_LONGEST_SHOWN]}: {what}")
        options |= given
    source_name = None
    if is_stream and cursor.take("IDENTIFIED", "BY"):
        source_name = cursor.identifier()
    end = cursor.tokens[cursor.at - 1].end
    is_sampled = _skips_sample(cursor)
    _skip_watermark(cursor)
    alias_at = cursor.tokens[cursor.at - 1].end
    return Suffix(end, options, times, _alias(cursor), alias_at, is_sampled, source_name)


def _changes(cursor: Cursor, options: dict[str, str], times: dict[str, Span]) -> None:
    """Reads the bounds of `CHANGES FROM VERSION 1 EXCLUSIVE TO VERSION 2`, from after FROM on."""
    # Spark 4.1 does not know the clause: what is wrong within it is told by us.
    was_extension, cursor.is_extension = cursor.is_extension, True
    by_version = _bound(cursor, "starting", options, times)
    if cursor.take("TO") and _bound(cursor, "ending", options, times) is not by_version:
        raise InvalidStatementError(
            f"{cursor.statement.strip()}: CHANGES FROM VERSION ends TO VERSION, and FROM TIMESTAMP "
            "ends TO TIMESTAMP"
        )
    cursor.is_extension = was_extension


def _bound(cursor: Cursor, which: str, options: dict[str, str], times: dict[str, Span]) -> bool:
    """Reads a bound of changes; returns whether it is a version."""
    by_version = cursor.take_any("VERSION", "SYSTEM_VERSION") is not None
    if by_version:
        options[f"{which}Version"] = _named_version(cursor)
    elif cursor.take_any("TIMESTAMP", "SYSTEM_TIME"):
        times[f"{which}Timestamp"] = _expression(cursor)
    else:
        raise cursor.error("VERSION or TIMESTAMP")
    if (word := cursor.take_any("INCLUSIVE", "EXCLUSIVE")) is not None:
        options[f"{which}BoundInclusive"] = str(word == "INCLUSIVE").lower()
    return by_version


def _named_version(cursor: Cursor) -> str:
    return str(cursor.text() if cursor.is_at_text() else cursor.integer("a snapshot id or a name"))


def _version(cursor: Cursor) -> dict[str, str]:
    """Reads `@v12` or `@20260131120000000`, if that comes next; returns the read options.

    Raises:
        InvalidStatementError: something else follows the sign.
    """
    sign, at = cursor.peek(), cursor.peek(1)
    if sign is None or not sign.is_sign("@"):
        return {}
    is_near = at is not None and at.start == sign.end
    options = version_options(at.text) if at is not None and is_near else None
    if options is None:
        cursor.next()
        raise cursor.error("a version (t@v12) or a time (t@yyyyMMddHHmmssSSS)")
    cursor.at += 2
    return options


def spans_of_versions(statement: Cursor) -> Iterator[Span]:
    """Where versions are given as in `t@v12`, and where changes are."""
    tokens = statement.tokens
    cursor = Cursor(statement.statement, tokens, statement.at, statement.end)
    while not cursor.is_done:
        start = cursor.at
        if not cursor.take("CHANGES", "FROM"):
            cursor.next()
            continue
        with suppress(InvalidStatementError):
            _changes(cursor, {}, {})
            yield Span(tokens[start].start, tokens[cursor.at - 1].end)
    for at in range(statement.at + 1, statement.end - 1):
        sign, then = tokens[at], tokens[at + 1]
        is_near = sign.is_sign("@") and then.start == sign.end
        if is_near and tokens[at - 1].is_identifier and version_options(then.text) is not None:
            yield Span(sign.start, then.end)


_LONGEST_SHOWN = 200
_WORDS = ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")
_TRAVELS = [
    ("CHANGES", "FROM"),
    *((*first, word, "AS", "OF") for word in _WORDS for first in ((), ("FOR",))),
]
_TWICE = (
    "[MULTIPLE_TIME_TRAVEL_SPEC] Cannot specify time travel in more than one of: the '@' suffix in "
    "the table name, the time travel clause, and the read options."
)
# Words that Spark does not accept as an alias, and words that begin a clause unless they are last.
_JOINS = frozenset(
    """
    JOIN INNER LEFT RIGHT FULL CROSS NATURAL ANTI SEMI OUTER LATERAL ON USING UNION INTERSECT EXCEPT
    MINUS PIVOT UNPIVOT TABLESAMPLE
    """.split()  # noqa: SIM905
)
_CLAUSES = frozenset(
    """
    WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY SELECT SET WHEN
    INSERT FROM
    """.split()  # noqa: SIM905
)
_TYPES = ("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATE")
_UNITS = frozenset(
    """
    YEAR YEARS MONTH MONTHS WEEK WEEKS DAY DAYS HOUR HOURS MINUTE MINUTES SECOND SECONDS
    MILLISECOND MILLISECONDS MICROSECOND MICROSECONDS TO
    """.split()  # noqa: SIM905
)


def _takes(cursor: Cursor, *words: str) -> bool:
    """Reads `VERSION AS OF`, with or without FOR before it."""
    for word in words:
        if cursor.take(word, "AS", "OF") or cursor.take("FOR", word, "AS", "OF"):
            return True
    return False


def _expression(cursor: Cursor) -> Span:
    """Reads sums of literals, intervals and functions, such as `now() - INTERVAL 1 DAY`."""
    start = cursor.at
    _operand(cursor)
    while cursor.is_at_sign("+", "-"):
        cursor.next()
        _operand(cursor)
    return Span(cursor.tokens[start].start, cursor.tokens[cursor.at - 1].end)


def _operand(cursor: Cursor) -> None:
    expected = "a time, such as '2026-03-01 12:00:00'"
    if cursor.take("INTERVAL"):
        cursor.take_sign("-")
        while (token := cursor.peek()) is not None and (
            token.kind in (TokenKind.TEXT, TokenKind.NUMBER) or token.is_word(*_UNITS)
        ):
            cursor.next()
        return
    if cursor.is_at_sign("("):
        cursor.group()
        return
    if any(cursor.take(kind) for kind in _TYPES) and cursor.is_at_text():
        cursor.text()
        return
    token = cursor.peek()
    if token is None or token.kind is TokenKind.SIGN:
        raise cursor.error(expected)
    if token.kind in (TokenKind.TEXT, TokenKind.NUMBER):
        cursor.next()
        return
    cursor.name(expected)
    if cursor.is_at_sign("("):
        cursor.group()


def _skips_sample(cursor: Cursor) -> bool:
    if not cursor.take("TABLESAMPLE"):
        return False
    cursor.take_any("SYSTEM", "BERNOULLI")
    cursor.group()
    if cursor.take("REPEATABLE"):
        cursor.group()
    return True


def _skip_watermark(cursor: Cursor) -> None:
    """Reads `WATERMARK column DELAY OF INTERVAL 1 MINUTE`, if that comes next."""
    if not cursor.is_at("WATERMARK"):
        return
    ahead = cursor.part(cursor.at + 1)
    column = ahead.until("DELAY", *_CLAUSES)
    # Otherwise it is an alias, and the words are those of another relation.
    is_one = len(column.items()) == 1
    if is_one and ahead.take("DELAY", "OF") and ahead.is_at("INTERVAL"):
        _operand(ahead)
        cursor.at = ahead.at


def _alias(cursor: Cursor) -> str | None:
    if cursor.take("AS"):
        return cursor.identifier("an alias")
    token, then = cursor.peek(), cursor.peek(1)
    if token is None or not token.is_identifier or token.is_word(*_JOINS):
        return None
    if _is_at_newer_join(cursor):
        return None
    is_last = then is None or then.is_sign(")")
    if token.is_word("QUALIFY"):
        # As a clause, it has an expression behind it.
        is_last = is_last or then is None or then.is_sign(",") or then.is_word(*_CLAUSES, *_JOINS)
    return cursor.identifier() if is_last or not token.is_word(*_CLAUSES) else None


def _is_at_newer_join(cursor: Cursor) -> bool:
    """Whether words come next that not every version of Spark knows, not an alias.

    That is, `APPROX NEAREST`, `EXACT NEAREST`, `ASOF JOIN relation MATCH_CONDITION (a >= b)`, or
    the last part of that.
    """
    if cursor.is_at("APPROX", "NEAREST") or cursor.is_at("EXACT", "NEAREST"):
        return True
    ahead = cursor.part()
    if ahead.take("ASOF", "JOIN"):
        ahead.until("MATCH_CONDITION", "JOIN")
    if not ahead.take("MATCH_CONDITION") or not ahead.is_at_sign("("):
        return False
    condition = ahead.group()
    tokens = condition.tokens[condition.at : condition.end]
    # Otherwise, these are names of columns behind an alias.
    return any(token.is_sign("<", "<=", ">", ">=") for token in tokens)
