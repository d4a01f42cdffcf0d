"""Updates the rows that match a condition, with delete files or by rewriting their files."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, functions as f

from icebergds.commit.snapshot_commit import Committed
from icebergds.expr.names import quote_name
from icebergds.spark.row_level.assignments import plan_assignments
from icebergds.spark.row_level.conditions import Value, as_column, check_condition, described
from icebergds.spark.row_level.target import FILE, LAST_UPDATED, POS, ROW_ID, WRITE, Target
from icebergds.spark.types import spark_schema


def update_rows(
    target: Target, values: Mapping[str, Value], condition: str | Column | None
) -> Committed | None:
    """Updates columns of the rows that match a condition.

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
