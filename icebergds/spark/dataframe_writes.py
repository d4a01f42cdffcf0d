"""Shuffles and writes DataFrames, for the methods of `Table`."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidDataError
from icebergds.operations.write.distribution_mode import distribution_mode
from icebergds.operations.write.options import WriteOptions
from icebergds.spark.distribution import distribute, sort_within_tasks
from icebergds.spark.float_texts import floats_as_text
from icebergds.spark.save_job import run_job
from icebergds.spark.write_jobs import plan_job


def write_frame(
    df: DataFrame, table: LoadedTable, options: WriteOptions, *, overwrite: bool
) -> Committed | None:
    """Writes a DataFrame to a table, shuffled and sorted as the table requests.

    Args:
        overwrite: replace rows, rather than append.

    Raises:
        IcebergError: the rows or the commit were refused, as by `plan_job` and `run_job`.
        PySparkException: the write failed for another reason.
    """
    if not df.columns:
        raise InvalidDataError(
            f"table {table.name}: the DataFrame to write has no columns; select at least one"
        )
    metadata = table.metadata
    mode = distribution_mode(options, metadata)
    schema, spec, order = metadata.schema(), metadata.spec(), metadata.sort_order()
    if not options.merge_schema:
        df = floats_as_text(df, schema)
    incoming = df.schema
    df = distribute(df, schema, spec, order, mode)
    if options.use_table_distribution:
        df = sort_within_tasks(df, schema, spec, order)
    # The rows are shuffled already, so the job itself needs no distribution.
    planned = plan_job(
        replace(options, distribution_mode="none"), incoming, overwrite=overwrite, table=table
    )
    return run_job(df, planned)
