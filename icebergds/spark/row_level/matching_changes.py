"""Deletes, updates or overwrites the rows that match a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, functions as f

from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidFilterError
from icebergds.expr.names import in_backticks, quote_name
from icebergds.expr.nodes import Expr
from icebergds.operations.write.isolation import check_rows_since_read
from icebergds.operations.write.matching_rows import check_new_rows
from icebergds.spark.errors import own_errors, unlogged
from icebergds.spark.float_texts import floats_as_text
from icebergds.spark.row_level.assignments import plan_assignments
from icebergds.spark.row_level.conditions import (
    Value,
    as_column,
    check_condition,
    described,
    first_line,
    named_columns,
)
from icebergds.spark.row_level.match_filter import Sides, match_filter
from icebergds.spark.row_level.rows import StatementRows
from icebergds.spark.row_level.target import FILE, LAST_UPDATED, POS, ROW_ID, WRITE, Target
from icebergds.spark.types import spark_schema


def delete_matching(
    target: Target, condition: str | Column, row_filter: Expr | None
) -> Committed | None:
    """Deletes the rows that match a condition, with delete files or by rewriting their files.

    Args:
        row_filter: the condition to plan the scan with; None if it cannot be used for that.

    Raises:
        InvalidFilterError: the condition does not fit the table, or is not deterministic.
        InvalidOptionError: it is neither SQL nor a column.
        PySparkException: the Spark job or the query failed for another reason.
    """
    target.mode()
    if row_filter is None:
        row_filter = target.plannable_part(condition)
    deleted, rows = _rows_to_delete(target, condition, row_filter, "delete: condition")
    return None if target.snapshot() is None else target.save(deleted, rows)


def update_matching(
    target: Target, values: Mapping[str, Value], condition: str | Column | None
) -> Committed | None:
    """Updates columns of the rows that match a condition, as `delete_matching` deletes rows.

    Args:
        values: by column; all are computed from the row before the update.
        condition: None for all rows.

    Raises:
        InvalidFilterError: the condition does not fit the table, or is not deterministic.
        InvalidOptionError: the condition is neither SQL nor a column, or a value is not a `Value`.
        InvalidDataError: a column is unknown or given twice, or a value does not fit its type.
        PySparkException: the Spark job or the query failed for another reason.
    """
    target.mode()
    empty = target.called(target.spark.createDataFrame([], spark_schema(target.schema)))
    assigned = plan_assignments(target, values, empty, "update")
    wanted = f.lit(True) if condition is None else as_column(condition, "update: condition")
    check_condition(empty, wanted, described("update: condition", condition))
    if target.snapshot() is None:
        return None
    row_filter = target.plannable_part(condition)
    may_be_sub_queries = any("select" in str(value).lower() for value in values.values())
    rows = target.rows(None, row_filter, with_ids=True, as_one=may_be_sub_queries)
    columns = [
        assigned.get(field.name, f.col(quote_name((field.name,)))).alias(field.name)
        for field in target.schema.fields
    ]
    lineage = [f.col(ROW_ID), f.lit(None).cast("bigint").alias(LAST_UPDATED)]
    changes = (
        target.called(rows.frame)
        .where(wanted)
        .select(
            FILE,
            POS,
            f.lit(True).alias(WRITE),
            *columns,
            *(lineage if target.has_lineage else []),
        )
    )
    return target.save(changes, rows)


@dataclass(frozen=True, slots=True)
class MatchedBy:
    """Chooses the rows of a table that match at least one of other rows.

    Attributes:
        rows: the others.
        on: a condition on both, or the names of columns whose values are equal.
        alias: of the others in the condition; None if only their columns' own names are used.
    """

    rows: DataFrame
    on: str | Sequence[str]
    alias: str | None


def overwrite_matching(
    target: Target, df: DataFrame, condition: str | Column | MatchedBy
) -> Committed | None:
    """Deletes the rows that match a condition and adds those of a DataFrame, in one commit.

    For conditions that match only some rows of their files. Rows are deleted as the table
    property `write.delete.mode` says.

    Args:
        condition: with `MatchedBy`, the target has an alias.

    Raises:
        InvalidFilterError: the condition does not fit the table, or is not deterministic.
        InvalidDataError: the rows do not fit the table.
        ValidationError: the rows to replace were changed since the caller saw the table.
        PySparkException: the Spark job or the query failed for another reason.
    """
    target.mode()
    check_new_rows(target.state.name, df.columns, target.options)
    df = floats_as_text(df, target.schema)
    what = "overwrite: condition"
    if isinstance(condition, MatchedBy):
        deleted, rows = _matching_rows(target, condition, what)
    else:
        deleted, rows = _rows_to_delete(target, condition, target.plannable(condition), what)
    check_rows_since_read(target.options, target.table, target.isolation_level(), rows.row_filter)
    columns = [f.col(quote_name((name,))) for name in df.columns]
    added = df.select(
        f.lit(None).cast("string").alias(FILE),
        f.lit(None).cast("bigint").alias(POS),
        f.lit(True).alias(WRITE),
        *columns,
    )
    return target.save(added.unionByName(deleted, allowMissingColumns=True), rows)


def _matching_rows(
    target: Target, matching: MatchedBy, what: str
) -> tuple[DataFrame, StatementRows]:
    """The deletes of the rows that match others, and the rows read, as for `_rows_to_delete`."""
    assert target.alias is not None, "its columns need a name"
    wanted = _condition_of(matching, target.alias, what)
    empty = target.called(target.spark.createDataFrame([], spark_schema(target.schema)))
    try:
        with unlogged():
            pairs = empty.join(_named(matching.rows, matching.alias), wanted, "inner")
            _ = pairs.schema
    except AnalysisException as error:
        shown = described(what, matching.on)
        raise InvalidFilterError(f"{shown}: {first_line(error)}") from None
    on = matching.on
    if not isinstance(on, str):
        on = [quote_name((name,)) for name in on]
    row_filter, others = None, matching.rows
    if matching.alias is not None:
        # Without an alias, names in the condition may be those of either side.
        sides = Sides(target, others, matching.alias, target.alias, pairs)
        with own_errors():
            row_filter, others = match_filter(sides, on, ())
    texts = [on] if isinstance(on, str) else on
    names = named_columns(texts, [field.name for field in target.schema.fields])
    rows = target.rows(names, row_filter)
    found = target.called(rows.frame).join(_named(others, matching.alias), wanted, "left_semi")
    return found.select(FILE, POS, f.lit(False).alias(WRITE)), rows


def _condition_of(matching: MatchedBy, alias: str, what: str) -> Column:
    if isinstance(matching.on, str):
        return as_column(matching.on, what)
    assert matching.alias is not None, "columns of both sides have the same names"
    wanted = f.lit(True)
    for name in matching.on:
        of_both = (in_backticks((side, name)) for side in (alias, matching.alias))
        left, right = map(f.col, of_both)
        wanted = wanted & (left == right)
    return wanted


def _named(rows: DataFrame, alias: str | None) -> DataFrame:
    return rows if alias is None else rows.alias(alias)


def _rows_to_delete(
    target: Target, condition: str | Column, row_filter: Expr | None, what: str
) -> tuple[DataFrame, StatementRows]:
    """The deletes of the matching rows, for `write.changes.position_delta`, and the rows read.

    Args:
        row_filter: the condition to plan the scan with; None if it cannot be used for that.
        what: the condition, for messages.

    Raises:
        InvalidFilterError: the condition does not fit the table, or is not deterministic.
        InvalidOptionError: it is neither SQL nor a column.
    """
    wanted = as_column(condition, what)
    names = [field.name for field in target.schema.fields]
    empty = target.called(target.spark.createDataFrame([], spark_schema(target.schema)))
    check_condition(empty, wanted, described(what, condition))
    rows = target.rows(named_columns([condition], names), row_filter)
    frame = target.called(rows.frame)
    return frame.where(wanted).select(FILE, POS, f.lit(False).alias(WRITE)), rows
