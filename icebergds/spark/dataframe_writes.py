"""Writes DataFrames to loaded tables, shuffled and sorted as the tables require."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidDataError
from icebergds.operations.conditions import plannable_condition
from icebergds.operations.write.metadata_delete import is_metadata_delete
from icebergds.operations.write.options import WriteOptions, refuse_options_of_writes
from icebergds.operations.write.read_marks import ReadMark
from icebergds.operations.write.table_settings import distribution_mode
from icebergds.spark.distribution import distribute, sort_within_tasks
from icebergds.spark.float_texts import floats_as_text
from icebergds.spark.read_mark import read_marks
from icebergds.spark.row_level.column_conditions import column_filter
from icebergds.spark.row_level.matching_changes import MatchedBy, overwrite_matching
from icebergds.spark.row_level.target import make_target
from icebergds.spark.save_job import run_job
from icebergds.spark.session import session_setting, session_zone
from icebergds.spark.write_jobs import plan_job


def append_or_overwrite(
    df: DataFrame, table: LoadedTable, options: WriteOptions, *, overwrite: bool
) -> Committed | None:
    """Appends a DataFrame, or replaces rows of a table with its rows.

    Args:
        overwrite: replace all rows, those that meet the options' filter, or the partitions of `df`.

    Raises:
        IcebergError: the rows or the commit were refused, as by `plan_job` and `run_job`.
        PySparkException: the write failed for another reason.
    """
    options = options.in_zone(session_zone(df.sparkSession))
    condition = options.overwrite_filter
    if overwrite and isinstance(condition, str):
        row_filter = plannable_condition(
            condition,
            table.metadata.schema(),
            options.time_zone,
            session_setting(df.sparkSession),
        )
        table = table.keeping_reads()
        if row_filter is None or not is_metadata_delete(table, row_filter, options):
            return overwrite_by_condition(
                df, table, condition, replace(options, overwrite_filter=None)
            )
    if overwrite:
        options = _with_read_marks(options, table, df, only_some=condition is not None)
    return _write_distributed(df, table, options, overwrite=overwrite)


def overwrite_by_condition(
    df: DataFrame,
    table: LoadedTable,
    condition: str | Column | MatchedBy,
    options: WriteOptions,
    alias: str | None = None,
) -> Committed | None:
    """Replaces the rows that meet a condition.

    Data files whose rows all meet it, as metadata shows, are removed as a whole.

    Args:
        alias: a name of the table in the condition.

    Errors are those of `row_level.matching_changes.overwrite_matching`.
    """
    options = options.in_zone(session_zone(df.sparkSession))
    if not isinstance(condition, str | MatchedBy):
        schema = table.metadata.schema()
        row_filter = column_filter(df.sparkSession, condition, schema).exact
        table = table.keeping_reads()
        if row_filter is not None and is_metadata_delete(table, row_filter, options):
            options = replace(options, overwrite_filter=row_filter)
            options = _with_read_marks(options, table, df, only_some=True)
            return _write_distributed(df, table, options, overwrite=True)
    refuse_options_of_writes(options, "overwrite")
    options = _with_read_marks(options, table, df, only_some=True)
    target = make_target(df.sparkSession, table, "overwrite", options, alias)
    return overwrite_matching(target, df, condition)


def _write_distributed(
    df: DataFrame, table: LoadedTable, options: WriteOptions, *, overwrite: bool
) -> Committed | None:
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


def _with_read_marks(
    options: WriteOptions, table: LoadedTable, df: DataFrame, *, only_some: bool
) -> WriteOptions:
    """Adds to the options the snapshots that the new rows were read from, as for `df.write`.

    Args:
        only_some: the overwrite replaces rows that meet a filter, and the filter may come from what
            the caller has seen.
    """
    marks = read_marks(df.schema)
    seen = (table.seen or table.metadata).head_of(options.branch)
    if marks and only_some and table.metadata.table_uuid is not None:
        seen_id = None if seen is None else seen.snapshot_id
        marks = (*marks, ReadMark(table.metadata.table_uuid, seen_id, options.branch))
    return replace(options, read_marks=marks)
