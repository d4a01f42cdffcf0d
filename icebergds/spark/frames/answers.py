"""Makes DataFrames of aggregates that metadata answers, as far as it does.

What it answers is merged with the rows that are left: both become rows of the key columns and of
one column for each result, which are grouped once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, functions as f

from icebergds.expr.names import in_backticks
from icebergds.expr.nodes import LOCAL_DAY, Expr
from icebergds.operations.read.aggregates import (
    Aggregate,
    Answered,
    Asked,
    Function,
    GroupKey,
    total,
)
from icebergds.spark.local_rows import local_rows
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField


@dataclass(frozen=True, slots=True)
class AggregateQuery:
    """Aggregates of the rows of one load.

    Attributes:
        outputs: for each column of the result, the key or the aggregate that it shows.
    """

    asked: Asked
    outputs: tuple[GroupKey | Aggregate, ...]

    @classmethod
    def of(
        cls,
        condition: Expr,
        keys: Iterable[GroupKey],
        outputs: Sequence[GroupKey | Aggregate],
        time_zone: str | None,
    ) -> AggregateQuery:
        """The query of rows that meet a condition, with each key and each aggregate once."""
        aggregates = dict.fromkeys(each for each in outputs if isinstance(each, Aggregate))
        asked = Asked(condition, tuple(aggregates), tuple(dict.fromkeys(keys)), time_zone)
        return cls(asked, tuple(outputs))


def answered_frame(
    spark: SparkSession,
    query: AggregateQuery,
    answered: Answered,
    unread: Callable[[], DataFrame] | None,
) -> DataFrame:
    """The output of an aggregate, by position.

    Args:
        unread: the columns of the load in the rows that are left and count; None if there are none.
    """
    asked = query.asked
    if unread is None and all(key.term is None for key in asked.keys):
        return _whole(spark, query, answered)
    rows = group_rows(spark, asked, answered)
    if unread is not None:
        rows = rows.union(unread().select(*map(f.expr, columns_of_row(asked))))
    results = [of_results(each, result_name(at)) for at, each in enumerate(asked.aggregates)]
    grouped = rows.groupBy(*(_group_column(key) for key in asked.keys)).agg(
        *map(f.expr, results or ["1"])
    )
    names = [f"c{at}" for at in range(len(grouped.columns))]
    shown = [*asked.keys, *asked.aggregates]
    return grouped.toDF(*names).select(*(names[shown.index(each)] for each in query.outputs))


def _whole(spark: SparkSession, query: AggregateQuery, answered: Answered) -> DataFrame:
    """The output if metadata answers all of it: no job computes it."""
    asked = query.asked
    groups = [(group.values, group.results) for group in answered.groups]
    if not asked.keys and not groups:
        groups = [((), total(answered, asked))]
    fields = []
    for at, each in enumerate(query.outputs):
        kind = each.column.field_type if isinstance(each, GroupKey) else _type_of(each)
        fields.append(_nullable(at, f"c{at}", kind))
    shown = [*asked.keys, *asked.aggregates]
    places = [shown.index(each) for each in query.outputs]
    rows = [[(*values, *results)[place] for place in places] for values, results in groups]
    return local_rows(spark, Schema(tuple(fields)), rows)


def _nullable(number: int, name: str, kind: Any) -> NestedField:
    return NestedField(number + 1, name, kind, required=False)


def result_name(at: int) -> str:
    """The column with the results of an aggregate, by its number."""
    return f"icebergds_result_{at}"


def group_rows(spark: SparkSession, asked: Asked, answered: Answered) -> DataFrame:
    """A row for each group that is answered: the columns of the keys, then the results."""
    places = {key.column.field_id: at for at, key in enumerate(asked.keys)}
    fields = [
        *(replace(column, required=False) for column in _key_columns(asked)),
        *(
            NestedField(-1 - at, result_name(at), _type_of(each), required=False)
            for at, each in enumerate(asked.aggregates)
        ),
    ]
    rows = [
        (*(group.values[at] for at in places.values()), *group.results) for group in answered.groups
    ]
    return local_rows(spark, Schema(tuple(fields)), rows)


def columns_of_row(asked: Asked) -> list[str]:
    """The columns of `group_rows` for a row that is read, as SQL: what it adds to each result."""
    columns = [in_backticks((column.name,)) for column in _key_columns(asked)]
    for at, each in enumerate(asked.aggregates):
        added = "1L"
        if each.column is not None:
            added = in_backticks((each.column.name,))
            if each.function is Function.COUNT:
                added = f"IF({added} IS NULL, 0L, 1L)"
        columns.append(f"{added} AS {result_name(at)}")
    return columns


def of_results(aggregate: Aggregate, name: str) -> str:
    """An aggregate of the results in a column, as SQL."""
    if aggregate.function is Function.COUNT:
        return f"coalesce(sum({name}), 0L)"
    return f"{aggregate.function}({name})"


def _key_columns(asked: Asked) -> list[NestedField]:
    return list({key.column.field_id: key.column for key in asked.keys}.values())


def _type_of(aggregate: Aggregate) -> Any:
    if aggregate.function is Function.COUNT or aggregate.column is None:
        return LONG
    return aggregate.column.field_type


def _group_column(key: GroupKey) -> Column:
    column = f.col(in_backticks((key.column.name,)))
    if key.term is None:
        return column
    day = column.cast("date")
    return day if key.term == LOCAL_DAY else f.year(day)
