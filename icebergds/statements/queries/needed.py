"""Defines what a query can need of a table (`Needed`) and of a view's result (`ViewNeeded`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from icebergds.expr.nodes import TRUE, Expr
from icebergds.spec.schema import Schema
from icebergds.statements.queries.stars import StarOfColumns

ColumnPath: TypeAlias = tuple[str, ...]
"""The names that lead to a column, or to a field nested in structs."""


@dataclass(frozen=True, slots=True)
class Needed:
    """What a query may need of a table.

    Attributes:
        condition: bound; rows for which it is not true change no result.
        columns: columns, or fields of those that are needed only in part; None for all.
        stars: stars of the query to write out as columns, because other columns are read, too.
        as_one: whether its rows must not be a union (`PlannedScan`).
    """

    condition: Expr = TRUE
    columns: Sequence[ColumnPath] | None = None
    stars: Sequence[StarOfColumns] = ()
    as_one: bool = False


@dataclass(frozen=True, slots=True)
class ViewNeeded:
    """What a query may need of the result of a view's query.

    Attributes:
        schema: the view's.
        condition: bound to it; rows for which it is not true change no result.
        of_query: the names of the query's columns at creation; None to match them by position.
        as_one: as for `Needed`.
    """

    schema: Schema
    condition: Expr
    of_query: Sequence[str] | None = None
    as_one: bool = False
