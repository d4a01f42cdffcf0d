"""From a DataFrame's schema and the options of a write to its job and what its tasks do."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql.types import StructType

from icebergds.errors import InvalidOptionError
from icebergds.operations.write.append_overwrite import prepare_write
from icebergds.operations.write.jobs import PreparedJob, Task
from icebergds.operations.write.key_changes import prepare_key_change
from icebergds.operations.write.options import parse_write_options
from icebergds.operations.write.position_changes import prepare_row_change
from icebergds.operations.write.row_change_options import BY_KEY
from icebergds.spark.dataframe_schema import iceberg_schema, incoming_arrow_schema, optional_columns
from icebergds.write.task import write_batches


def plan_job(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> tuple[PreparedJob, Task]:
    """Checks a write against its table before a row is written, and plans its tasks.

    Args:
        options: of the write, as Spark hands them over.
        schema: of the rows.
        overwrite: replace rows, rather than append.

    Errors are those of `parse_write_options`, `prepare_write`, `prepare_key_change` and
    `prepare_row_change`.
    """
    parsed = parse_write_options(options)
    incoming = incoming_arrow_schema(schema)
    columns = optional_columns(iceberg_schema(schema))
    change = parsed.row_change
    if change is None:
        write = prepare_write(parsed, incoming, columns, overwrite=overwrite)
        return write, partial(write_batches, write.plan)
    if overwrite:
        raise InvalidOptionError(
            f"option 'write-operation' = {str(change.operation)!r} changes single rows, which "
            "needs mode('append') and outputMode('append'), not 'overwrite' or 'complete'"
        )
    if change.operation in BY_KEY:
        return prepare_key_change(parsed, change, incoming, columns)
    return prepare_row_change(parsed, change, incoming)
