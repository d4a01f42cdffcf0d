"""Upserts, deletes by key and applies changelogs, with the rows of a key shuffled to one task."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, functions as f

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidOptionError
from icebergds.expr.names import quote_name
from icebergds.operations.write.key_changes import key_ids_of
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.row_change_options import WriteOperation
from icebergds.operations.write.table_settings import distribution_mode
from icebergds.spark.distribution import KeyedRows, are_equal_as_stored, partition_keys
from icebergds.spark.float_texts import floats_as_text
from icebergds.spark.runner import SparkRunner
from icebergds.spark.save_job import run_job
from icebergds.spark.session import session_zone
from icebergds.spark.write_jobs import plan_job


def change_by_key(table: LoadedTable, df: DataFrame, options: WriteOptions) -> Committed | None:
    """Changes the rows of a table by the keys of a DataFrame's rows.

    A changelog without `order_by` is applied in the DataFrame's order, by one task.

    Args:
        options: say which change (`row_change`).

    Raises:
        InvalidOptionError: there are no keys, or a column does not exist.
        PySparkException: the Spark job or the query failed for another reason.
    """
    change = options.row_change
    assert change is not None, "the options say which change"
    options = options.in_zone(session_zone(df.sparkSession))
    if not options.merge_schema:
        df = floats_as_text(df, table.metadata.schema())
    key_ids = key_ids_of(table.state, change.keys)
    if change.operation is WriteOperation.DELTA and change.order_by is None:
        change, rows = replace(change, keys_meet=True), df.coalesce(1)
    else:
        meeting = _meeting(table, df, key_ids, options)
        rows = meeting.without_keys(_shuffled(meeting))
        meet = are_equal_as_stored(df, table.metadata.schema(), key_ids)
        change = replace(change, keys_meet=meet, is_ordered=change.order_by is not None)
        if change.order_by is not None:
            rows = _in_order(rows, change.order_by)
    planned = plan_job(replace(options, row_change=change), df.schema, overwrite=False, table=table)
    return run_job(rows, planned, SparkRunner(df.sparkSession))


def _shuffled(meeting: KeyedRows) -> DataFrame:
    """Repartitions rows so that equal keys are in one partition.

    Adaptive execution drops a shuffle by columns that already partition the rows, and may then
    split skewed partitions. No rows are already partitioned by this hash.
    """
    return meeting.rows.repartition(f.hash(f.lit("icebergds"), *meeting.keys))


def _in_order(rows: DataFrame, order_by: str) -> DataFrame:
    if order_by.lower() not in {name.lower() for name in rows.columns}:
        raise InvalidOptionError(
            f"order_by = {order_by!r}: the rows have no such column; they have "
            f"{', '.join(rows.columns)}"
        )
    return rows.sortWithinPartitions(f.col(quote_name((order_by,))).asc_nulls_first())


def _meeting(
    table: LoadedTable, df: DataFrame, key_ids: tuple[int, ...], options: WriteOptions
) -> KeyedRows:
    """Rows with shuffle keys: the partition if the key determines it (fewer files), or the key."""
    metadata = table.metadata
    schema, spec = metadata.schema(), metadata.spec()
    sources = spec.source_ids
    keys = tuple(f.col(quote_name(schema.paths_by_id[key_id])) for key_id in key_ids)
    if sources and sources <= set(key_ids) and distribution_mode(options, metadata) == "hash":
        keyed = partition_keys(df, schema, spec)
        if keyed.keys:
            return keyed
    return KeyedRows(df, keys)
