"""Plans the job of a write from a DataFrame's schema and options."""

from __future__ import annotations

import logging
from functools import partial

from pyspark.sql.types import StructType

from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.errors import InvalidOptionError
from icebergds.operations.write.append_overwrite import PreparedWrite, prepare_write
from icebergds.operations.write.jobs import PlannedJob, PreparedJob
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
    keeps_row_ids: bool = False,
) -> PlannedJob:
    """Checks a write against its table before any row is written, and plans its tasks.

    Args:
        schema: of the rows.
        overwrite: replace rows, rather than append.
        table: the table that the options name; loaded, or planned for creation, by default.
        keeps_row_ids: as for `prepare_key_change`.

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
    delta, task, table = prepare_key_change(
        table, options, change, incoming, columns, keeps_row_ids=keeps_row_ids
    )
    return PlannedJob(delta, task, table)


_LOG = logging.getLogger(__name__)


def log_cost(write: PreparedJob) -> None:
    """Logs a warning if rows of a partitioned table should be shuffled but are not."""
    if not isinstance(write, PreparedWrite):
        return
    spec = write.plan.spec
    if write.distribution_mode == "none" or spec.is_unpartitioned:
        return
    _LOG.warning(
        "table %s is partitioned by %s, but this write does not shuffle its rows: each task writes "
        "a file for each partition of its rows, up to (tasks x partitions) files. For fewer files, "
        "write with icebergds.load_table(...).append(df), which shuffles, or repartition df by the "
        "partition columns; to silence this warning, set option('distribution-mode', 'none')",
        write.address.path,
        ", ".join(field.name for field in spec.fields),
    )
