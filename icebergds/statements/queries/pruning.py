"""Finds out what a query can need of each table: a condition and columns."""

from __future__ import annotations

from collections.abc import Sequence

from icebergds.statements.queries.needed import Needed
from icebergds.statements.queries.relations import Relation
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def prune(query: Cursor, relations: Sequence[Relation], arguments: Arguments) -> list[Needed]:
    """What a query can need of each relation."""
    return [Needed() for _ in relations]
