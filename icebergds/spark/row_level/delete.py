"""DELETE: rows of a condition, by delete files or by rewriting their files."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from icebergds.operations.write.row_counts import RowCounts
from icebergds.spark.row_level.conditions import (
    as_column,
    check_condition,
    described,
    named_columns,
)
from icebergds.spark.row_level.filters import planning_filter
from icebergds.spark.row_level.target import FILE, POS, WRITE, Target
from icebergds.spark.types import spark_schema


def delete_rows(target: Target, condition: str | Column) -> RowCounts:
    """Deletes the rows for which a condition is true.

    Raises:
        InvalidFilterError: the condition does not fit the table, or is not deterministic.
        InvalidOptionError: it is neither SQL nor a column.
        PySparkException: the job failed for a reason of Spark's or of the query's.
    """
    target.operation()
    rows, row_filter = rows_to_delete(target, condition, "delete: condition")
    return RowCounts() if target.snapshot() is None else target.save(rows, row_filter)


def rows_to_delete(
    target: Target, condition: str | Column, what: str
) -> tuple[DataFrame, str | None]:
    """The rows of a condition, as `write.changes.position_delta` has them, and the filter
    that finds their files.

    Args:
        what: the condition, for messages.

    Raises:
        InvalidFilterError: the condition does not fit the table, or is not deterministic.
        InvalidOptionError: it is neither SQL nor a column.
    """
    wanted = as_column(condition, what)
    names = [field.name for field in target.schema.fields]
    empty = target.spark.createDataFrame([], spark_schema(target.schema))
    check_condition(empty, wanted, described(what, condition))
    row_filter = planning_filter(target, condition)
    rows = target.rows(named_columns([condition], names), row_filter).where(wanted)
    return rows.select(FILE, POS, f.lit(False).alias(WRITE)), row_filter
