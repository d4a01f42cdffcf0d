"""Upserts, deletes by key and applies changelogs, with the rows of a key shuffled to one task."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from pyspark.sql import DataFrame, functions as f

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.expr.names import quote_name
from icebergds.formats.deletes.key_hash import Hashes
from icebergds.operations.write.delta_commit import PreparedDelta, discard_delta, find_rows
from icebergds.operations.write.jobs import (
    PlannedJob,
    TaskResult,
    commit_job,
    discard_unreported,
)
from icebergds.operations.write.key_changes import KeyTask, key_ids_of
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.resolve_keys import keeps_row_ids
from icebergds.operations.write.row_change_options import WriteOperation
from icebergds.operations.write.table_settings import distribution_mode
from icebergds.reporting import stage, writing_files
from icebergds.spark.distribution import KeyedRows, are_equal_as_stored, partition_keys
from icebergds.spark.float_texts import floats_as_text
from icebergds.spark.runner import SparkRunner
from icebergds.spark.save_job import check_reached, run_job, write_in_tasks
from icebergds.spark.session import session_zone
from icebergds.spark.write_jobs import plan_job
from icebergds.write.changes.deltas import DeltaFiles, KeyHashes, merge_deltas
from icebergds.write.changes.keyed_delta import NO_ROWS


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
    keeps = keeps_row_ids(table, options, df.columns)
    options = replace(options, row_change=change)
    planned = plan_job(options, df.schema, overwrite=False, table=table, keeps_row_ids=keeps)
    runner = SparkRunner(df.sparkSession)
    if not keeps:
        return run_job(rows, planned, runner)
    schema = table.metadata.schema()
    read = {schema.paths_by_id[key_id][0].lower() for key_id in key_ids}
    read.add((change.row_kind_column or "").lower())
    # Spark computes no other columns.
    keys = rows.select(*(quote_name((n,)) for n in rows.columns if n.lower() in read))
    return _keeping_row_ids(rows, keys, planned, runner)


def _keeping_row_ids(
    rows: DataFrame, keys_of_rows: DataFrame, planned: PlannedJob, runner: SparkRunner
) -> Committed | None:
    """Finds the rows that new ones replace, and then writes these with their ids."""
    job, task = planned.job, planned.task
    assert isinstance(job, PreparedDelta), "changes by key are deltas"
    assert isinstance(task, KeyTask), "it changes rows by key"
    discard = partial(discard_unreported, planned)
    # Manifests are read to find rows, and for the commit.
    table = planned.table.keeping_reads()
    with stage("write keys"):
        results = write_in_tasks(keys_of_rows, task.of_keys, discard)
    keys = merge_deltas(result for result in results if isinstance(result, DeltaFiles))
    found = None
    try:
        check_reached(rows.sparkSession, planned, results)
        found = find_rows(job, keys.deletes, table, runner, task.hashing)
        writing_files()
        with stage("write files"):
            written = write_in_tasks(rows, task.replacing(found.replaced or NO_ROWS), discard)
        if not _same_keys(results, written):
            raise InvalidDataError(
                f"table {planned.table.name}: the rows to change by key had other keys when they "
                "were computed a second time; cache them first, or set write.upsert.mode to "
                "equality-deletes"
            )
    except BaseException as error:
        discard_delta(job, keys, None if found is None else found.resolver, error)
        discard()
        raise
    return commit_job(job, [keys, *written], table, runner, found)


def _same_keys(before: list[TaskResult], after: list[TaskResult]) -> bool:
    def by_task(results: list[TaskResult]) -> list[Hashes]:
        parts = (result.keys for result in results if isinstance(result, DeltaFiles))
        known = (part.hashes for part in parts if part is not None and len(part.hashes))
        return sorted(known, key=lambda hashes: int(hashes[0]))

    first, second = by_task(before), by_task(after)
    # Most tasks get the same rows again.
    if len(first) == len(second) and all(map(np.array_equal, first, second)):
        return True
    return np.array_equal(KeyHashes.of(first).hashes, KeyHashes.of(second).hashes)


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
