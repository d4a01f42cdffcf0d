"""Qualifies columns in clauses of MERGE that have a row of one side only."""

from __future__ import annotations

from collections.abc import Collection

from icebergds.expr.names import in_backticks
from icebergds.statements.queries.outline import outline_of
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Cursor, Span


def qualify_shared(
    expression: Cursor, alias: str, shared: Collection[str], qualifiers: Collection[str]
) -> list[Replacement]:
    """Puts an alias before columns that both sides have, and that would be ambiguous without.

    Args:
        shared: names of columns of both sides, in lower case.
        qualifiers: what columns may be qualified with already, in lower case.

    Returns:
        Nothing if the expression cannot be analysed.
    """
    if not shared:
        return []
    outline = outline_of(expression, ())
    tree = None if outline is None else outline.parsed()
    if outline is None or tree is None:
        return []
    from sqlglot.expressions import Column, Select

    found = []
    for column in tree.find_all(Column):
        first = column.parts[0]
        name = first.name.lower()
        start = first.meta.get("start")
        is_qualified = len(column.parts) > 1 and name in qualifiers
        if name not in shared or is_qualified or start not in outline.places:
            continue
        if column.find_ancestor(Select) is None:
            place = outline.places[start]
            found.append(Replacement(Span(place, place), f"{in_backticks([alias])}."))
    return found
