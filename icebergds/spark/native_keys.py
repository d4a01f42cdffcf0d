"""Leaves out the rows that equality deletes delete, of files that Spark's own reader reads.

Spark reads the delete files as it reads data files, and sends the keys to all executors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession, functions as f

from icebergds.expr.names import in_backticks
from icebergds.expr.nodes import TRUE
from icebergds.scan.plan.native_columns import NATIVE_PREFIX
from icebergds.scan.plan.native_keys import KeyColumns
from icebergds.scan.read_plan import ReadPlan
from icebergds.spark.native import has_sizes, native_frame
from icebergds.spark.session import is_connect
from icebergds.spec.manifest import DataFile
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField


def without_keys(
    spark: SparkSession,
    rows: DataFrame,
    plan: ReadPlan,
    keys: KeyColumns,
    deletes: Sequence[DataFile],
    history: Sequence[Schema],
) -> DataFrame | None:
    """The rows whose keys are in none of the equality deletes.

    Args:
        rows: with the columns of the plan, among them the key columns.
        deletes: equality deletes that apply to all rows.
        history: all schemas of the table.

    Returns:
        None if Spark cannot read the deletes or find the key columns in them, or if they have
        other sizes than manifests say.
    """
    names = {column.field_id: column.name for column in plan.columns.fields}
    by_ids: dict[tuple[int, ...], list[DataFile]] = defaultdict(list)
    for delete in deletes:
        by_ids[tuple(sorted(set(delete.equality_ids)))].append(delete)
    for ids, files in by_ids.items():
        fields = tuple(keys.fields[field_id] for field_id in ids)
        key_plan = replace(plan, columns=Schema(fields), row_filter=TRUE)
        found = native_frame(spark, key_plan, files, history, names=None, lacked={})
        # Those of a file that was damaged or replaced would be others, without an error.
        if found is None or not (is_connect(spark) or has_sizes(found, plan.io, files)):
            return None
        deleted = [f"{NATIVE_PREFIX}deleted{field_id}" for field_id in ids]
        are_equal = f.lit(True)
        for field, name in zip(fields, deleted, strict=True):
            column = f.col(in_backticks((names[field.field_id],)))
            if _may_be_null(field, files):
                are_equal = are_equal & column.eqNullSafe(f.col(name))
            else:
                # Spark finds a key sooner that it need not tell from null.
                are_equal = are_equal & (column == f.col(name))
        rows = rows.join(f.broadcast(found.toDF(*deleted)), are_equal, "left_anti")
    return rows


def _may_be_null(field: NestedField, deletes: Sequence[DataFile]) -> bool:
    """Whether null may be among the deleted values of a column."""
    return any(delete.null_value_counts.get(field.field_id) != 0 for delete in deletes)
