"""What a query is said to need of the table that its names `lake.db...` all mean."""

from __future__ import annotations

from icebergds import Table
from icebergds.expr.sql_text import sql_text
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.operations.conditions import Setting, default_setting
from icebergds.operations.read.options import ReadOptions
from icebergds.statements.names.scope import CatalogName
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.needed import Needed, ViewNeeded
from icebergds.statements.queries.pruning import prune
from icebergds.statements.queries.references import find_references
from icebergds.statements.queries.relations import Relation
from icebergds.statements.text.cursor import Cursor


def needed_of(
    table: Table,
    query: str,
    of_view: ViewNeeded | None = None,
    setting: Setting = default_setting,
) -> list[Needed]:
    """What the query needs of each place where it names the table.

    Args:
        of_view: what is needed of the query's result, if it is one of a view.
    """
    tokens = sql_tokens(query)
    assert tokens is not None
    cursor = Cursor(query, tokens)
    relations = [
        Relation(
            reference,
            CatalogName("lake", reference.name[1:]),
            NamedTable(CatalogName("lake", reference.name[1:]), table),
            ReadOptions(),
            schema=table.schema(),
        )
        for reference in find_references(cursor)
        if reference.name[0] == "lake"
    ]
    return prune(cursor, relations, setting, "UTC", of_view)


def conditions_of(table: Table, query: str, of_view: ViewNeeded | None = None) -> list[str]:
    """The conditions of `needed_of`, as text."""
    needed = needed_of(table, query, of_view)
    return [sql_text(each.condition, table.schema()) for each in needed]
