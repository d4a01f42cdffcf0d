"""Lets `current_catalog()`, `current_database()` and `current_schema()` see what USE has chosen."""

from __future__ import annotations

from collections.abc import Iterator

from icebergds.expr.sql_tokens import Token
from icebergds.statements.names.current import current_namespace
from icebergds.statements.names.quoting import shown_name
from icebergds.statements.names.scope import NameScope
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.text.parameters import literal


def session_functions(scope: NameScope, query: Cursor) -> Iterator[Replacement]:
    """What takes the place of calls of these functions, while a catalog of ours is the current one.

    Spark's own session does not know it.
    """
    current = current_namespace(scope.spark)
    if current.catalog is None:
        return
    namespace = (shown_name(current.namespace), "current_schema()")
    values = {
        "current_catalog": (current.catalog, "current_catalog()"),
        "current_database": namespace,
        "current_schema": namespace,
    }
    tokens = query.tokens
    # By parentheses: whether this is the list of a SELECT.
    in_lists = [False]
    for at in range(query.at, query.end):
        token = tokens[at]
        if token.is_sign("("):
            in_lists.append(False)
        elif token.is_sign(")") and len(in_lists) > 1:
            in_lists.pop()
        elif token.is_word("SELECT"):
            in_lists[-1] = True
        elif token.is_word(*_ENDS):
            in_lists[-1] = False
        elif (found := values.get(token.text.lower())) is not None and _is_call(query, at):
            value, name = found
            is_item = in_lists[-1] and _is_item(_token(query, at - 1), _token(query, at + 3))
            text = literal(value) + (f" AS `{name}`" if is_item else "")
            yield Replacement(Span(token.start, tokens[at + 2].end), text)


# Of the list of a SELECT.
_ENDS = frozenset(
    """
    FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY LATERAL UNION
    INTERSECT EXCEPT MINUS
    """.split()  # noqa: SIM905
)


def _token(query: Cursor, at: int) -> Token | None:
    return query.tokens[at] if query.at <= at < query.end else None


def _is_call(query: Cursor, at: int) -> bool:
    before, opens, closes = (_token(query, at + step) for step in (-1, 1, 2))
    return (
        (before is None or not before.is_sign("."))
        and opens is not None
        and opens.is_sign("(")
        and closes is not None
        and closes.is_sign(")")
    )


def _is_item(before: Token | None, then: Token | None) -> bool:
    """Whether what stands between two tokens is a whole item of a list."""
    begins = before is not None and (before.is_sign(",") or before.is_word("SELECT", "DISTINCT"))
    ends = then is None or then.is_sign(",", ")") or then.is_word(*_ENDS)
    return begins and ends
