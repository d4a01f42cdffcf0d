"""Deletes or replaces the rows that match a condition, in this process, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.snapshot_commit import Committed
from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import Expr
from icebergds.operations.options.rows import ArrowRows, batches_of_rows
from icebergds.operations.write.delta_commit import commit_delta
from icebergds.operations.write.isolation import check_rows_since_read, isolation_of
from icebergds.operations.write.options import WriteOptions, refuse_options_of_writes
from icebergds.operations.write.position_changes import (
    RESERVED_COLUMNS,
    PositionChange,
    plan_position_change,
    row_change_mode,
)
from icebergds.reporting import writing_files
from icebergds.scan.plan.files import PlannedFile, plan_files
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.reserved import FILE_PATH, POS
from icebergds.spec.schema import Schema
from icebergds.write.changes.position_delta import (
    FILE_COLUMN,
    POS_COLUMN,
    TARGET_COLUMN,
    WRITE_COLUMN,
)

_CONTROL = pa.schema(
    [(FILE_COLUMN, pa.string()), (POS_COLUMN, pa.int64()), (WRITE_COLUMN, pa.bool_())]
)


def delete_matching(
    table: LoadedTable, row_filter: Expr, options: WriteOptions
) -> Committed | None:
    """Deletes the rows that match a condition as the property `write.delete.mode` says.

    Returns None if there are none, or if the table already has this idempotent write.

    Args:
        row_filter: not bound yet.

    Errors are those of `plan_position_change`, `few_rows`, the write and `commit_delta`.
    """
    if table.metadata.head_of(options.branch) is None:
        return None
    return _changed(table, row_filter, options, "delete", None)


def overwrite_matching(
    table: LoadedTable, row_filter: Expr, options: WriteOptions, rows: ArrowRows
) -> Committed | None:
    """Deletes the rows that match a condition and adds others, in one commit.

    Raises:
        ValidationError: the rows to replace were changed since the caller saw the table.
        InvalidOptionError: an option of another kind of write is given.
        InvalidDataError: the rows do not fit the table.

    Other arguments and errors are those of `delete_matching`.
    """
    check_new_rows(table.name, rows.schema.names, options)
    level = isolation_of(options, table, "delete")
    check_rows_since_read(options, table, level, row_filter)
    return _changed(table, row_filter, options, "overwrite", rows)


def check_new_rows(table: str, columns: Sequence[str], options: WriteOptions) -> None:
    """Checks rows that replace others before anything is read.

    Args:
        columns: the names of their columns.

    Raises:
        InvalidDataError: two columns have the same name, or one is a metadata column.
        InvalidOptionError: an option of another kind of write is given.
    """
    refuse_options_of_writes(options, "overwrite")
    names = [name.lower() for name in columns]
    if len(set(names)) < len(names):
        raise InvalidDataError(
            f"table {table}: the rows to write have two columns with the same name: "
            f"{', '.join(columns)}; drop or rename one"
        )
    if options.merge_schema:
        raise InvalidOptionError(
            "an overwrite whose filter matches only some rows of a file does not support option "
            "'merge-schema'; add the columns first, with an append of no rows"
        )
    if taken := sorted(RESERVED_COLUMNS & set(names)):
        raise InvalidDataError(
            f"table {table} has no column {', '.join(taken)}: the rows were read with metadata "
            "columns; drop these"
        )


def _changed(
    table: LoadedTable,
    row_filter: Expr,
    options: WriteOptions,
    statement: str,
    rows: ArrowRows | None,
) -> Committed | None:
    metadata = table.metadata
    schema, head = metadata.schema(), metadata.head_of(options.branch)
    bound = bind(row_filter, schema, case_sensitive=False)
    files = plan_files(table.io, metadata, head, schema, bound).files
    change = PositionChange(
        row_change_mode(table.state, "delete"),
        statement,
        None if head is None else head.snapshot_id,
        files,
        row_filter,
        isolation_of(options, table, "delete"),
    )
    incoming = pa.schema([*_CONTROL, *([] if rows is None else rows.schema)])
    planned = plan_position_change(table, options, change, incoming)
    writing_files()
    changes = _changes(planned.targets, _places(table, files, bound), rows)
    delta = planned.task(changes, partition_id=0, attempt_id=0)
    return commit_delta(planned.delta, [delta], table)


def _places(
    table: LoadedTable, files: Sequence[PlannedFile], row_filter: Expr
) -> Iterator[pa.RecordBatch]:
    """The files and positions of the matching rows."""
    metadata = table.metadata
    schema = metadata.schema()
    plan = ReadPlan(
        io=table.io,
        columns=Schema((FILE_PATH, POS), schema.schema_id),
        table_schema=schema,
        specs=metadata.specs_by_id,
        row_filter=row_filter,
        name_mapping=table_name_mapping(metadata),
    )
    for group in pack_files(files, metadata, schema, SplitOptions.of(metadata.properties)):
        yield from read_scan_tasks(plan, group)


def _changes(
    targets: Mapping[str, bytes], places: Iterable[pa.RecordBatch], rows: ArrowRows | None
) -> Iterator[pa.RecordBatch]:
    """What `write.changes.position_delta` takes: the files, the rows to delete, and new rows."""
    packed = pa.array(targets.values(), pa.binary())
    yield pa.record_batch({WRITE_COLUMN: pa.nulls(len(packed), pa.bool_()), TARGET_COLUMN: packed})
    for batch in places:
        yield batch.append_column(WRITE_COLUMN, pa.repeat(False, batch.num_rows))
    for batch in () if rows is None else batches_of_rows(rows):
        count = batch.num_rows
        control = (
            pa.nulls(count, pa.string()),
            pa.nulls(count, pa.int64()),
            pa.repeat(True, count),
        )
        yield pa.RecordBatch.from_arrays(
            [*control, *batch.columns], [*_CONTROL.names, *batch.schema.names]
        )
