"""Reads which rows `INSERT INTO ... REPLACE WHERE` replaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.sql_tokens import Token, TokenKind
from icebergds.statements.commands.rows.target import Target
from icebergds.statements.queries.naming import long_qualifiers, replace_qualifiers
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.splice import spliced


def read_replaced_rows(
    cursor: Cursor, target: Target, functions: Callable[[Cursor], Sequence[Replacement]]
) -> str | None:
    """Reads `REPLACE WHERE condition`; returns the condition without qualifiers of columns.

    Args:
        functions: what takes the place of Iceberg's functions in the condition.

    None if the statement replaces none.

    Raises:
        UnsupportedFeatureError: it says REPLACE USING or REPLACE ON, or there is a sub-query.
    """
    start = cursor.at
    if cursor.take("AS") or not cursor.is_at("REPLACE"):
        # An alias, which only REPLACE ON has a use for.
        cursor.next()
    if cursor.is_at("REPLACE", "USING") or cursor.is_at("REPLACE", "ON"):
        raise UnsupportedFeatureError(
            f"table {target.named.name}: INSERT INTO ... REPLACE USING and REPLACE ON are not "
            "supported; use REPLACE WHERE, or MERGE INTO"
        )
    cursor.at = start
    if not cursor.take("REPLACE", "WHERE"):
        return None
    condition = _before_query(cursor)
    if any(token.is_word("SELECT") for token in condition.tokens[condition.at : condition.end]):
        raise UnsupportedFeatureError(
            f"table {target.named.name}: sub-queries in REPLACE WHERE are not supported; DELETE "
            "the rows first, or use MERGE INTO"
        )
    full = (target.named.name.catalog, *target.named.name.parts)
    names = [each for name in (target.name, full) for each in long_qualifiers(name)]
    columns = {field.name.lower() for field in target.table.schema().fields}
    if target.called.lower() not in columns:
        names.append((target.called.lower(),))
    qualifiers = replace_qualifiers(condition, dict.fromkeys(names, ""))
    replaced = [*qualifiers, *functions(condition)]
    return spliced(condition, sorted(replaced, key=lambda each: (each.span.start, each.span.end)))


_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")
# Words that an operand follows.
_OPERATORS = frozenset(
    """
    AND OR NOT IN LIKE ILIKE RLIKE REGEXP IS BETWEEN EXISTS DISTINCT ANY SOME ALL DIV CASE WHEN THEN
    ELSE ESCAPE INTERVAL
    """.split()  # noqa: SIM905
)


def _before_query(cursor: Cursor) -> Cursor:
    """Reads to where the query begins: a condition ends with an operand, and no operand follows."""
    start, depth = cursor.at, 0
    before: Token | None = None
    while (token := cursor.peek()) is not None:
        if depth == 0 and before is not None and _ends_operand(before) and _is_at_query(cursor):
            break
        depth += token.is_sign("(", "[") - token.is_sign(")", "]")
        cursor.at += 1
        before = token
    return Cursor(cursor.statement, cursor.tokens, start, cursor.at)


def _ends_operand(token: Token) -> bool:
    if token.kind is TokenKind.SIGN:
        return token.is_sign(")", "]")
    return not token.is_word(*_OPERATORS)


def _is_at_query(cursor: Cursor) -> bool:
    ahead = 0
    while (token := cursor.peek(ahead)) is not None and token.is_sign("("):
        ahead += 1
    return token is not None and token.is_word(*_QUERIES)
