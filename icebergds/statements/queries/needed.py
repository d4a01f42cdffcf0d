"""Defines what a query can need of a table (`Needed`) and of a view's result (`ViewNeeded`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from icebergds.expr.nodes import TRUE, Expr
from icebergds.operations.read.aggregates import Aggregate, Asked
from icebergds.operations.read.first_rows import FirstRows
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField
from icebergds.statements.queries.stars import StarOfColumns
from icebergds.statements.text.cursor import Span

ColumnPath: TypeAlias = tuple[str, ...]
"""The names that lead to a column, or to a field nested in structs."""


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A call of an aggregate function in a query.

    Attributes:
        name: that Spark gives it as a column.
    """

    aggregate: Aggregate
    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class DistinctCall:
    """A count of the distinct values of a column; its name is as that of an `AggregateCall`."""

    column: NestedField
    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class UnnamedItem:
    """An item of a SELECT that calls aggregate functions and has no alias.

    Attributes:
        name: that Spark gives the column; None if only Spark knows it.
    """

    span: Span
    name: str | None


@dataclass(frozen=True, slots=True)
class AggregateQuery:
    """A SELECT that reads aggregates of one table.

    Attributes:
        calls: one for each of the aggregates that are asked for.
        distinct: counts of the distinct values of columns, which are among the keys.
        is_grouped: whether its result has a row for each group.
        text: the whole statement.
        where: its WHERE clause.
        end: where its FROM and WHERE clauses end.
    """

    asked: Asked
    calls: tuple[AggregateCall, ...]
    distinct: tuple[DistinctCall, ...]
    is_grouped: bool
    unnamed: tuple[UnnamedItem, ...]
    text: str
    where: Span | None
    end: int


@dataclass(frozen=True, slots=True)
class Needed:
    """What a query may need of a table.

    Attributes:
        condition: bound; rows for which it is not true change no result.
        columns: columns, or fields of those that are needed only in part; None for all.
        stars: stars of the query to write out as columns, because other columns are read, too.
        as_one: whether its rows must not be a union (`PlannedScan`).
        aggregates: the SELECT that reads it, if metadata may answer its aggregates.
        first: the only rows that are needed, by order; None if others are, too.
        may_be_local: whether Spark may have its rows in the plan.
    """

    condition: Expr = TRUE
    columns: Sequence[ColumnPath] | None = None
    stars: Sequence[StarOfColumns] = ()
    as_one: bool = False
    aggregates: AggregateQuery | None = None
    first: FirstRows | None = None
    may_be_local: bool = False


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
