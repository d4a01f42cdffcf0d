"""Finds the stars of a query over one relation that can be written out as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from icebergds.expr.names import in_backticks
from icebergds.statements.queries.derived import selects_of
from icebergds.statements.queries.joins import relations_of
from icebergds.statements.queries.outputs import given_names, has_more_than, is_star
from icebergds.statements.text.cursor import Cursor, Span

# A node of sqlglot's tree.
_Node = Any


@dataclass(frozen=True, slots=True)
class StarOfColumns:
    """A star, and the columns to write instead.

    Attributes:
        span: the span of `*`, or of `alias.*`.
        qualifier: the alias, as written; empty if there is none.
    """

    span: Span
    qualifier: str
    columns: Sequence[str]

    @property
    def text(self) -> str:
        before = f"{self.qualifier}." if self.qualifier else ""
        return ", ".join(f"{before}{in_backticks((name,))}" for name in self.columns)


def stars_of_columns(
    query: Cursor, tree: _Node | None, columns: Sequence[str]
) -> list[StarOfColumns]:
    """The stars of a query of one SELECT over one table; none for any other query.

    Args:
        tree: sqlglot's tree.
        columns: the table's columns, in order.
    """
    if tree is None or tree.key != "select" or len(selects_of(tree)) != 1:
        return []
    relations = relations_of(tree)
    if len(relations) != 1 or relations[0].key != "table" or tree.args.get("laterals"):
        return []
    if has_more_than(relations[0], "this", "db", "catalog", "alias") or given_names(relations[0]):
        return []
    found = list(_stars(query, columns))
    plain = [node for node in tree.expressions if is_star(node)]
    return found if len(found) == len(plain) else []


def _stars(query: Cursor, columns: Sequence[str]) -> list[StarOfColumns]:
    found = []
    for at in range(query.at + 1, query.end - 1):
        before, token, after = query.tokens[at - 1 : at + 2]
        if token.is_word("FROM"):
            break
        if not token.is_sign("*") or not (after.is_sign(",") or after.is_word("FROM")):
            continue
        if before.is_word("SELECT", "ALL", "DISTINCT") or before.is_sign(","):
            found.append(StarOfColumns(Span(token.start, token.end), "", columns))
        elif before.is_sign(".") and not query.tokens[at - 3].is_sign("."):
            alias = query.tokens[at - 2]
            found.append(StarOfColumns(Span(alias.start, token.end), alias.text, columns))
    return found
