"""Plans the job of a write from a DataFrame's schema and the write options."""

from __future__ import annotations

from functools import partial

from pyspark.sql.types import StructType

from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.errors import InvalidOptionError
from icebergds.operations.write.append_overwrite import prepare_write
from icebergds.operations.write.jobs import PlannedJob
from icebergds.operations.write.key_changes import prepare_key_change
from icebergds.operations.write.options import WriteOptions
from icebergds.spark.dataframe_schema import iceberg_schema, incoming_arrow_schema, optional_columns
from icebergds.write.task import write_batches


def plan_job(
    options: WriteOptions,
    schema: StructType,
    *,
    overwrite: bool,
    table: LoadedTable | None = None,
) -> PlannedJob:
    """Checks a write against its table before any row is written, and plans its tasks.

    Args:
        schema: of the rows.
        overwrite: replace rows, rather than append.
        table: the table that the options name; loaded, or planned for creation, by default.

    Errors are those of `prepare_write` and `prepare_key_change`.
    """
    incoming = incoming_arrow_schema(schema)
    columns = optional_columns(iceberg_schema(schema))
    change = options.row_change
    if change is None:
        write, table = prepare_write(options, incoming, columns, overwrite=overwrite, table=table)
        return PlannedJob(write, partial(write_batches, write.plan), table)
    if overwrite:
        raise InvalidOptionError(
            f"option 'write-operation' = {str(change.operation)!r} changes rows by key; use "
            "mode('append') or outputMode('append') with it, not 'overwrite' or 'complete'"
        )
    table = table or load_for_write(options.address)
    delta, task, table = prepare_key_change(table, options, change, incoming, columns)
    return PlannedJob(delta, task, table)
