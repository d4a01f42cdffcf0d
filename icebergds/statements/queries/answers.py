"""Writes what metadata answers into a query, in the places of what it computes.

A SELECT without groups gets the answers as constants, beside which it reads only the files that
metadata does not answer. Another one reads a row for each group that metadata answers, beside these
files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icebergds.expr.names import in_backticks
from icebergds.operations.read.aggregates import (
    Aggregate,
    Function,
    distinct_values,
    total,
)
from icebergds.spark.frames.answers import columns_of_row, group_rows, of_results, result_name
from icebergds.spark.frames.chosen_rows import AnsweredRows
from icebergds.spark.local_rows import no_rows
from icebergds.spark.sql_constants import constant_text
from icebergds.spark.types import spark_type
from icebergds.spec.types import is_scalar
from icebergds.statements.queries.naming import placed
from icebergds.statements.queries.needed import AggregateCall, AggregateQuery
from icebergds.statements.queries.relations import Relation
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Span


def answered_text(
    spark: SparkSession,
    relation: Relation,
    found: AggregateQuery,
    rows: AnsweredRows,
    alias: str | None,
) -> list[Replacement]:
    """Replaces the table of a SELECT, and what it computes, by answers and the rows that are left.

    Args:
        rows: with an answer.
        alias: to give to the table, in backticks.
    """
    assert rows.answered is not None, "otherwise all rows are read"
    named = list(_names(spark, relation, found))
    if found.asked.keys and (found.is_grouped or rows.rows is not None):
        return [*_grouped(spark, relation, found, rows, alias), *named]
    results = total(rows.answered, found.asked)
    calls = [
        (call, _constant(call.aggregate, result))
        for call, result in zip(found.calls, results, strict=True)
    ]
    if rows.rows is None:
        constants = [Replacement(call.span, text) for call, text in calls]
        constants += [
            Replacement(call.span, f"{distinct_values(rows.answered, found.asked, call.column)}L")
            for call in found.distinct
        ]
        return [*constants, *_placed(relation, found, " VALUES (0)", alias), *named]
    added = [each for call, text in calls for each in _added(call, text)]
    return [*added, *placed(relation.reference, rows.rows, alias), *named]


def _added(call: AggregateCall, text: str) -> Iterator[Replacement]:
    """Adds an answer to what a call computes of the rows that are left."""
    match call.aggregate.function:
        case Function.COUNT:
            before, after = "(", f" + {text})"
        case Function.MIN:
            before, after = "least(", f", {text})"
        case Function.MAX:
            before, after = "greatest(", f", {text})"
    yield Replacement(Span(call.span.start, call.span.start), before)
    yield Replacement(Span(call.span.end, call.span.end), after)


def _constant(aggregate: Aggregate, result: Any) -> str:
    if aggregate.function is Function.COUNT:
        return f"{result or 0}L"
    assert aggregate.column is not None, "rows are only counted"
    kind = aggregate.column.field_type
    if result is None:
        return f"CAST(NULL AS {spark_type(kind).simpleString()})"
    assert is_scalar(kind), "the least and the greatest value are of scalars"
    return constant_text(kind, result)


def _grouped(
    spark: SparkSession,
    relation: Relation,
    found: AggregateQuery,
    rows: AnsweredRows,
    alias: str | None,
) -> list[Replacement]:
    """A row for each group that is answered, beside the rows that are left."""
    assert rows.answered is not None
    answers = group_rows(spark, found.asked, rows.answered)
    calls = [
        Replacement(call.span, of_results(call.aggregate, result_name(at)))
        for at, call in enumerate(found.calls)
    ]
    if rows.rows is None:
        return [*calls, *_placed(relation, found, answers, alias)]
    reference = relation.reference
    start, end = reference.start, found.end
    columns = columns_of_row(found.asked)
    outer = alias or in_backticks([reference.suffix.alias or ""])
    return [
        *calls,
        Replacement(Span(start, start), f"(SELECT {', '.join(columns)} FROM "),
        *placed(reference, rows.rows, alias),
        Replacement(Span(end, end), " UNION ALL SELECT * FROM "),
        Replacement(Span(end, end), f") AS {outer}", answers),
    ]


def _placed(
    relation: Relation, found: AggregateQuery, rows: DataFrame | str, alias: str | None
) -> list[Replacement]:
    """Replaces the table by rows that need no condition."""
    replaced = placed(relation.reference, rows, alias)
    return replaced if found.where is None else [*replaced, Replacement(found.where)]


def _names(spark: SparkSession, relation: Relation, found: AggregateQuery) -> Iterator[Replacement]:
    """Gives the columns of the result the names that they have without answers."""
    for item in found.unnamed:
        name = item.name
        if name is None:
            assert relation.schema is not None
            [name] = no_rows(spark, relation.schema).selectExpr(item.span.of(found.text)).columns
        yield Replacement(Span(item.span.end, item.span.end), f" AS {in_backticks([name])}")


def without_inner(replacements: Sequence[Replacement]) -> list[Replacement]:
    """Replacements in order, without those within parts that others replace."""
    wide = [each.span for each in replacements if each.span.start < each.span.end]
    kept = [each for each in replacements if not any(_is_inside(each.span, span) for span in wide)]
    return sorted(kept, key=lambda each: each.span.start)


def _is_inside(span: Span, other: Span) -> bool:
    """Whether a span is a part of another one, not an insertion at its edge."""
    if span == other or not span.is_within(other):
        return False
    return span.start < span.end or other.start < span.start < other.end
