"""Overwrites the rows that match a condition, if they are only some rows of their files."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, functions as f

from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.expr.names import quote_name
from icebergds.expr.nodes import TRUE
from icebergds.operations.write.isolation import check_rows_since_read
from icebergds.spark.float_texts import floats_as_text
from icebergds.spark.row_level.delete import rows_to_delete
from icebergds.spark.row_level.target import FILE, LAST_UPDATED, POS, ROW_ID, WRITE, Target
from icebergds.write.changes.target_rows import TARGET_COLUMN

_CONTROL_COLUMNS = {FILE, POS, WRITE, ROW_ID, LAST_UPDATED, TARGET_COLUMN}


def overwrite_rows(target: Target, df: DataFrame, condition: str | Column) -> Committed | None:
    """Deletes the rows that match a condition and adds those of a DataFrame, in one commit.

    Rows are deleted as the table property `write.delete.mode` says.

    Raises:
        InvalidFilterError: the condition does not fit the table, or is not deterministic.
        InvalidDataError: the rows do not fit the table.
        ValidationError: the rows to replace were changed since the caller saw the table.
        PySparkException: the Spark job or the query failed for another reason.
    """
    target.mode()
    names = [name.lower() for name in df.columns]
    if len(set(names)) < len(names):
        raise InvalidDataError(
            f"table {target.state.name}: the rows to write have two columns with the same name: "
            f"{', '.join(df.columns)}; drop or rename one"
        )
    if target.options.merge_schema:
        raise InvalidOptionError(
            "an overwrite whose filter matches only some rows of a file does not support option "
            "'merge-schema'; add the columns first, with an append of no rows"
        )
    if taken := sorted(_CONTROL_COLUMNS & set(names)):
        raise InvalidDataError(
            f"table {target.state.name} has no column {', '.join(taken)}: the rows were read with "
            "metadata columns; drop these"
        )
    df = floats_as_text(df, target.schema)
    row_filter = target.plannable(condition)
    overwritten = TRUE if row_filter is None else row_filter
    check_rows_since_read(target.options, target.table, target.isolation_level(), overwritten)
    deleted, rows = rows_to_delete(target, condition, row_filter, "overwrite: condition")
    columns = [f.col(quote_name((name,))) for name in df.columns]
    added = df.select(
        f.lit(None).cast("string").alias(FILE),
        f.lit(None).cast("bigint").alias(POS),
        f.lit(True).alias(WRITE),
        *columns,
    )
    return target.save(added.unionByName(deleted, allowMissingColumns=True), rows)
