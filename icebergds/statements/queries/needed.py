"""What a query can need of a table (`Needed`), and of the result of a view (`ViewNeeded`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from icebergds.expr.nodes import TRUE, Expr
from icebergds.spec.schema import Schema
from icebergds.statements.queries.stars import StarOfColumns

ColumnPath: TypeAlias = tuple[str, ...]
"""The names that lead to a column, or to a field within structs."""


@dataclass(frozen=True, slots=True)
class Needed:
    """What a query can need of a table.

    Attributes:
        condition: bound; rows for which it is not true change no result.
        columns: columns, and fields of those of which no more is needed; None for all.
        stars: those of the query that must be written as columns, as others are read, too.
        as_one: its rows must be no union (`PlannedScan`).
    """

    condition: Expr = TRUE
    columns: Sequence[ColumnPath] | None = None
    stars: Sequence[StarOfColumns] = ()
    as_one: bool = False


@dataclass(frozen=True, slots=True)
class ViewNeeded:
    """What is needed of the result of a view's query.

    Attributes:
        schema: of the view.
        condition: bound to it; rows for which it is not true change no result.
        of_query: the names that the query's columns had; None if these are found by position.
        as_one: as for `Needed`.
    """

    schema: Schema
    condition: Expr
    of_query: Sequence[str] | None = None
    as_one: bool = False
