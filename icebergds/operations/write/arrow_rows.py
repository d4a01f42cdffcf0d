"""Writes Arrow rows in this process, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidOptionError
from icebergds.formats.data_file.file_schema import schema_from_arrow
from icebergds.io.near import start_reading
from icebergds.operations.options.rows import ArrowRows, batches_of_rows
from icebergds.operations.write.append_overwrite import (
    commit_write,
    overwrite_filter,
    prepare_write,
)
from icebergds.operations.write.delta_commit import commit_delta, discard_delta, find_rows
from icebergds.operations.write.key_changes import prepare_key_change
from icebergds.operations.write.matching_rows import overwrite_matching
from icebergds.operations.write.metadata_delete import is_metadata_delete
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.resolve_keys import keeps_row_ids
from icebergds.reporting import writing_files
from icebergds.write.changes.keyed_delta import NO_ROWS
from icebergds.write.task import write_batches


def write_rows(
    options: WriteOptions, rows: ArrowRows, *, overwrite: bool, table: LoadedTable | None = None
) -> Committed | None:
    """Writes rows and commits them; returns None if the table already has this idempotent write.

    Args:
        overwrite: replace rows, rather than append.
        table: the table that the options name; loaded, or created, by default.

    Raises:
        InvalidOptionError: the options ask for a change by key; or as for `prepare_write`.

    Other errors are those of `prepare_write`, `write_batches` and `commit_write`.
    """
    if options.row_change is not None:
        raise InvalidOptionError(
            f"option 'write-operation' = {str(options.row_change.operation)!r} changes rows by "
            "key; use table.upsert, table.delta or table.delete_keys with Arrow rows"
        )
    if overwrite and table is not None and options.overwrite_filter is not None:
        row_filter = overwrite_filter(options)
        table = table.keeping_reads()
        if not is_metadata_delete(table, row_filter, options):
            plain = replace(options, overwrite_filter=None)
            return overwrite_matching(table, row_filter, plain, rows)
    columns = schema_from_arrow(rows.schema)
    write, table = prepare_write(options, rows.schema, columns, overwrite=overwrite, table=table)
    table = _reading_manifest_list(table, options.branch)
    writing_files()
    files = write_batches(write.plan, batches_of_rows(rows), partition_id=0, attempt_id=0)
    return commit_write(write, files, table)


def change_rows(table: LoadedTable, options: WriteOptions, rows: ArrowRows) -> Committed | None:
    """Changes rows by key, applying rows of one key in their order, and commits the change.

    Returns None if there was nothing to commit.

    Args:
        options: say which change (`row_change`).

    Errors are those of `prepare_key_change`, `write_keyed_delta` and `commit_delta`.
    """
    assert options.row_change is not None, "the options say which change"
    columns = schema_from_arrow(rows.schema)
    is_read_once = isinstance(rows, pa.RecordBatchReader)
    can_keep = not is_read_once and keeps_row_ids(table, options, rows.schema.names)
    change = replace(options.row_change, keys_meet=True)
    prepared, task, table = prepare_key_change(
        table, options, change, rows.schema, columns, keeps_row_ids=can_keep
    )
    table = _reading_manifest_list(table, options.branch)
    writing_files()
    if not can_keep:
        delta = task(batches_of_rows(rows), partition_id=0, attempt_id=0)
        return commit_delta(prepared, [delta], table)
    keys = task.of_keys(batches_of_rows(rows), partition_id=0, attempt_id=0)
    found = None
    try:
        found = find_rows(prepared, keys.deletes, table, None, task.hashing)
        task = task.replacing(found.replaced or NO_ROWS)
        delta = task(batches_of_rows(rows), partition_id=0, attempt_id=1)
    except BaseException as error:
        discard_delta(prepared, keys, None if found is None else found.resolver, error)
        raise
    return commit_delta(prepared, [replace(keys, keys=None), delta], table, found=found)


def _reading_manifest_list(table: LoadedTable, branch: str) -> LoadedTable:
    """Starts to read the manifest list for the commit, while the rows are written."""
    head = table.metadata.head_of(branch)
    if head is None or not head.manifest_list:
        return table
    table = table.keeping_reads()
    start_reading(table.io, head.manifest_list)
    return table
