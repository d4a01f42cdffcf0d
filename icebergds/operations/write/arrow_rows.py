"""Writes of Arrow's rows in this process, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa

from icebergds.catalog.address import TableAddress
from icebergds.commit.snapshot_commit import Committed
from icebergds.formats.data_file.file_schema import schema_from_arrow
from icebergds.operations.write.append_overwrite import commit_write, prepare_write
from icebergds.operations.write.key_changes import prepare_key_change
from icebergds.operations.write.options import parse_write_options
from icebergds.operations.write.position_changes import commit_delta
from icebergds.operations.write.row_counts import RowCounts, counts_of_summary
from icebergds.write.task import write_batches

Rows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader
"""Rows that Arrow holds or reads."""


def write_rows(
    address: TableAddress, rows: Rows, options: Mapping[str, str], *, overwrite: bool
) -> Committed | None:
    """Writes rows and commits them; None if the table has this idempotent write already.

    Args:
        options: of the write, without those of the address.
        overwrite: replace rows, rather than append.

    Errors are those of `prepare_write`, `write_batches` and `commit_write`.
    """
    parsed = parse_write_options({**options, "path": address.path}, address)
    write = prepare_write(parsed, rows.schema, schema_from_arrow(rows.schema), overwrite=overwrite)
    files = write_batches(write.plan, _batches(rows), partition_id=0, attempt_id=0)
    return commit_write(write, files)


def change_rows(address: TableAddress, rows: Rows, options: Mapping[str, str]) -> RowCounts:
    """Changes rows by key and commits that; rows of one key in the order they have.

    Args:
        options: of the write, without those of the address.

    Errors are those of `prepare_key_change`, `write_keyed_delta` and `commit_delta`.
    """
    parsed = parse_write_options({**options, "path": address.path}, address)
    assert parsed.row_change is not None, "the options say which change"
    columns = schema_from_arrow(rows.schema)
    prepared, task = prepare_key_change(parsed, parsed.row_change, rows.schema, columns)
    delta = task(_batches(rows), partition_id=0, attempt_id=0)
    committed = commit_delta(prepared, [delta])
    return RowCounts() if committed is None else counts_of_summary(committed.snapshot.summary)


def _batches(rows: Rows) -> Iterator[pa.RecordBatch]:
    if isinstance(rows, pa.RecordBatch):
        return iter([rows])
    return iter(rows) if isinstance(rows, pa.RecordBatchReader) else iter(rows.to_batches())
