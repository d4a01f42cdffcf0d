"""Deletes the rows that match a condition, with delete files or by rewriting their files."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, functions as f

from icebergds.commit.snapshot_commit import Committed
from icebergds.expr.nodes import Expr
from icebergds.spark.row_level.conditions import (
    as_column,
    check_condition,
    described,
    named_columns,
)
from icebergds.spark.row_level.rows import StatementRows
from icebergds.spark.row_level.target import FILE, POS, WRITE, Target
from icebergds.spark.types import spark_schema


def delete_rows(
    target: Target, condition: str | Column, row_filter: Expr | None
) -> Committed | None:
    """Deletes the rows that match a condition.

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
    deleted, rows = rows_to_delete(target, condition, row_filter, "delete: condition")
    return None if target.snapshot() is None else target.save(deleted, rows)


def rows_to_delete(
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
