"""Reads the clause REPLACE of INSERT: which rows of the table the new ones replace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from icebergds.errors import InvalidStatementError
from icebergds.expr.sql_tokens import Token, TokenKind
from icebergds.statements.commands.rows.inserted_columns import read_column_list
from icebergds.statements.commands.rows.target import StatementTarget, read_options
from icebergds.statements.queries.naming import long_qualifiers, replace_qualifiers
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.text.splice import spliced


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """The clause `REPLACE WHERE condition`, `REPLACE ON condition` or `REPLACE USING (columns)`.

    Attributes:
        kind: its second keyword.
        condition: of WHERE, on the table alone; of ON, on the table and the new rows.
        columns: of USING: rows with the values of a new row are replaced.
    """

    kind: str
    condition: Cursor | None = None
    columns: Sequence[str] = ()

    @property
    def has_sub_query(self) -> bool:
        if self.condition is None:
            return False
        tokens = self.condition.tokens[self.condition.at : self.condition.end]
        return any(
            before.is_sign("(") and token.is_word(*_QUERIES) for before, token in pairwise(tokens)
        )


_KINDS = ("WHERE", "ON", "USING")


def read_alias_of_replaced(cursor: Cursor) -> str | None:
    """Reads `[AS] alias` after the name of the table, if the clause REPLACE comes later."""
    start = cursor.at
    has_as = cursor.take("AS")
    token = cursor.peek()
    clauses = [*(("REPLACE", kind) for kind in _KINDS), ("BY", "NAME"), ("WITH",)]
    is_clause = any(cursor.is_at(*words) for words in clauses)
    if token is not None and token.is_identifier and (has_as or not is_clause):
        alias = cursor.identifier()
        ahead = _copy(cursor)
        read_options(ahead)
        if not ahead.take("BY", "NAME"):
            read_column_list(ahead)
        if any(ahead.is_at("REPLACE", kind) for kind in _KINDS):
            return alias
    cursor.at = start
    return None


def read_replaced_rows(cursor: Cursor) -> ReplacedRows | None:
    """Reads the clause REPLACE; None if there is none.

    Raises:
        InvalidStatementError: it is malformed.
    """
    kind = next((each for each in _KINDS if cursor.take("REPLACE", each)), None)
    if kind is None:
        return None
    if kind == "USING":
        columns = [each.identifier("a column") for each in cursor.group().items()]
        if not columns:
            raise cursor.error("columns between the parentheses before it")
        return ReplacedRows(kind, columns=columns)
    condition = _before_query(cursor)
    if condition.is_done:
        raise cursor.error("a condition")
    return ReplacedRows(kind, condition)


def read_aliased_query(cursor: Cursor) -> tuple[Cursor, str | None]:
    """Reads `query` or `(query) [AS] alias`, to the end."""
    ahead = _copy(cursor)
    if ahead.is_at_sign("("):
        query = ahead.group()
        has_as = ahead.take("AS")
        if ahead.at + 1 == ahead.end and (has_as or ahead.tokens[ahead.at].is_identifier):
            cursor.rest()
            return query, ahead.identifier("an alias")
    return cursor.rest(), None


def replacing_query(cursor: Cursor) -> Cursor | None:
    """The query of an INSERT that has the clause REPLACE; None for other statements.

    Args:
        cursor: after the name of the table; it stays there.
    """
    ahead = _copy(cursor)
    read_alias_of_replaced(ahead)
    read_options(ahead)
    if not ahead.take("BY", "NAME"):
        read_column_list(ahead)
    return None if read_replaced_rows(ahead) is None else read_aliased_query(ahead)[0]


def refuse_contradictions(
    target: StatementTarget, replaced: ReplacedRows, alias: str | None, *, has_list: bool
) -> None:
    """Refuses what the clause does not go together with, in Spark's words.

    Raises:
        InvalidStatementError: there is such a thing.
    """
    if replaced.kind == "ON" and has_list:
        raise InvalidStatementError(
            f"table {target.named.name}: [INSERT_REPLACE_ON_COLUMN_LIST_NOT_ALLOWED] A column list "
            "is not allowed with INSERT INTO ... REPLACE ON."
        )
    if has_list and (replaced.kind == "USING" or alias is not None):
        raise InvalidStatementError(
            f"table {target.named.name}: INSERT INTO ... REPLACE {replaced.kind} takes no list of "
            "columns here; use BY NAME"
        )
    if replaced.kind == "WHERE" and alias is not None:
        raise InvalidStatementError(
            f"table {target.named.name}: [INSERT_REPLACE_WHERE_TABLE_ALIAS_NOT_ALLOWED] Table "
            "alias is not allowed with INSERT INTO ... REPLACE WHERE because the WHERE condition "
            "is evaluated against the target table directly. Use INSERT INTO ... REPLACE ON if you "
            "need to reference the target table via an alias."
        )


def newer_clauses(cursor: Cursor) -> list[Span]:
    """The clauses of an INSERT that not every version of Spark can parse.

    Without them, the statement is one that all can.

    Args:
        cursor: after the name of the table.
    """
    found: list[Span] = []
    if cursor.tokens[0].is_word("INSERT") and _part(cursor, 0, 4).is_at("INSERT", "WITH", "SCHEMA"):
        found.append(_part(cursor, 1, 4).span)
    start = cursor.at
    if read_alias_of_replaced(cursor) is not None:
        found.append(_part(cursor, start, cursor.at).span)
    read_options(cursor)
    if cursor.take("PARTITION"):
        cursor.group()
    if not cursor.take("BY", "NAME"):
        read_column_list(cursor)
    start = cursor.at
    if (replaced := read_replaced_rows(cursor)) is not None:
        found.append(_part(cursor, start, cursor.at).span)
        if replaced.kind == "ON":
            query, alias = read_aliased_query(_copy(cursor))
            if alias is not None:
                found.append(_part(cursor, query.end + 1, cursor.end).span)
    return found


def unqualified(
    condition: Cursor, target: StatementTarget, functions: Sequence[Replacement]
) -> str:
    """A condition of WHERE without qualifiers of columns.

    Args:
        functions: replacements for Iceberg's functions in it.
    """
    full = (target.named.name.catalog, *target.named.name.parts)
    names = [each for name in (target.name, full) for each in long_qualifiers(name)]
    columns = {field.name.lower() for field in target.table.schema().fields}
    if target.called.lower() not in columns:
        names.append((target.called.lower(),))
    qualifiers = replace_qualifiers(condition, dict.fromkeys(names, ""))
    replaced = [*qualifiers, *functions]
    return spliced(condition, sorted(replaced, key=lambda each: (each.span.start, each.span.end)))


_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")
# Words that are followed by an operand.
_OPERATORS = frozenset(
    """
    AND OR NOT IN LIKE ILIKE RLIKE REGEXP IS BETWEEN EXISTS DISTINCT ANY SOME ALL DIV CASE WHEN THEN
    ELSE ESCAPE INTERVAL
    """.split()  # noqa: SIM905
)


def _before_query(cursor: Cursor) -> Cursor:
    """Reads up to the query: the condition ends with an operand, and no operand follows."""
    start, depth = cursor.at, 0
    before: Token | None = None
    while (token := cursor.peek()) is not None:
        if depth == 0 and before is not None and _ends_operand(before) and _is_at_query(cursor):
            break
        depth += token.is_sign("(", "[") - token.is_sign(")", "]")
        cursor.at += 1
        before = token
    return _part(cursor, start, cursor.at)


def _ends_operand(token: Token) -> bool:
    if token.kind is TokenKind.SIGN:
        return token.is_sign(")", "]")
    return not token.is_word(*_OPERATORS)


def _is_at_query(cursor: Cursor) -> bool:
    ahead = 0
    while (token := cursor.peek(ahead)) is not None and token.is_sign("("):
        ahead += 1
    return token is not None and token.is_word(*_QUERIES)


def _part(cursor: Cursor, start: int, end: int) -> Cursor:
    return cursor.part(start, end)


def _copy(cursor: Cursor) -> Cursor:
    return _part(cursor, cursor.at, cursor.end)
