"""Makes DataFrames of aggregates that metadata answers, as far as it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
    columns = list({key.column.field_id: key.column for key in asked.keys}.values())
    results = [_result_name(at) for at in range(len(asked.aggregates))]
    fields = [_nullable(at, column.name, column.field_type) for at, column in enumerate(columns)]
    fields += [
        _nullable(len(columns) + at, results[at], _type_of(each))
        for at, each in enumerate(asked.aggregates)
    ]
    places = [asked.keys.index(_key_of(asked, column)) for column in columns]
    rows = local_rows(
        spark,
        Schema(tuple(fields)),
        [(*(group.values[at] for at in places), *group.results) for group in answered.groups],
    )
    if unread is not None:
        left = unread().select(
            *(f.col(in_backticks((column.name,))) for column in columns),
            *(_of_row(each) for each in asked.aggregates),
        )
        rows = rows.union(left)
    grouped = rows.groupBy(*(_group_column(key) for key in asked.keys)).agg(
        *(_of_results(each, results[at]) for at, each in enumerate(asked.aggregates)),
        *([] if asked.aggregates else [f.lit(1)]),
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


def _result_name(at: int) -> str:
    return f"icebergds_result_{at}"


def _key_of(asked: Asked, column: NestedField) -> GroupKey:
    return next(key for key in asked.keys if key.column.field_id == column.field_id)


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


def _of_row(aggregate: Aggregate) -> Column:
    """What a row that is read adds to a result."""
    if aggregate.column is None:
        return f.lit(1).cast("bigint")
    column = f.col(in_backticks((aggregate.column.name,)))
    if aggregate.function is Function.COUNT:
        return f.when(column.isNull(), 0).otherwise(1).cast("bigint")
    return column


def _of_results(aggregate: Aggregate, name: str) -> Column:
    match aggregate.function:
        case Function.COUNT:
            return f.coalesce(f.sum(name), f.lit(0).cast("bigint"))
        case Function.MIN:
            return f.min(name)
        case Function.MAX:
            return f.max(name)
