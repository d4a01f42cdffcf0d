"""Plans a read from its options, with Spark or without."""

from __future__ import annotations

from dataclasses import replace

from icebergds.commit.operations import TableState
from icebergds.encryption.list_keys import keys_of_snapshot
from icebergds.expr.bind import bind
from icebergds.expr.nodes import Expr
from icebergds.operations.read.change_read import (
    check_changes,
    feed_columns,
    plan_change_task_groups,
    resolve_end,
)
from icebergds.operations.read.chosen_files import choose_files
from icebergds.operations.read.options import ReadOptions, split_options
from icebergds.operations.read.time_travel import resolve_snapshot
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.projection import project_columns
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import TaskGroup
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot


def plan_read(
    state: TableState, options: ReadOptions, columns: Schema | None = None
) -> tuple[Snapshot | None, ReadPlan]:
    """Resolves the snapshot of a read (or the end snapshot of its changes) and plans the read.

    Args:
        columns: the columns that are read; by default those of the options.

    Raises:
        InvalidFilterError: the filter cannot be bound or used.
        InvalidOptionError: a column does not exist, or options do not fit the table.
        NoSuchSnapshotError: the snapshot, branch or tag does not exist.
    """
    snapshot, schema = resolve_read(options, state.metadata, state.name)
    if columns is None:
        columns = chosen_columns(options, state.metadata, schema)
    return snapshot, make_read_plan(options, state, schema, columns)


def resolve_read(
    options: ReadOptions, metadata: TableMetadata, name: str
) -> tuple[Snapshot | None, Schema]:
    """The snapshot to read, or the end snapshot of changes, and the schema to read with.

    The snapshot is None if the table has none. Errors are those of `resolve_snapshot` and
    `resolve_end`.

    Args:
        name: the table's, for messages.
    """
    if options.changes is None:
        return resolve_snapshot(metadata, options.time_travel, name)
    return resolve_end(metadata, options.changes, options.time_travel.branch, name)


def without_other_snapshots(state: TableState, snapshot: Snapshot | None) -> TableState:
    """The part of a table's state that a read of one snapshot needs, for another process.

    Args:
        snapshot: None for a table without rows.
    """
    metadata = replace(
        state.metadata,
        current_snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        snapshots=() if snapshot is None else (snapshot,),
        snapshot_log=(),
        metadata_log=(),
        refs={},
        statistics=(),
        partition_statistics=(),
        encryption_keys=keys_of_snapshot(state.metadata, snapshot),
        unknown={},
    )
    return replace(state, metadata=metadata)


def chosen_columns(options: ReadOptions, metadata: TableMetadata, schema: Schema) -> Schema:
    """The columns of a read: those of the option `columns`, or all.

    Raises:
        InvalidOptionError: a column does not exist, or the change feed cannot have its columns.
    """
    if options.columns is not None:
        return project_columns(metadata, schema, options.columns, feed=options.feed)
    return schema if options.feed is None else feed_columns(metadata, schema, options.feed)


def check_read(
    options: ReadOptions, state: TableState, snapshot: Snapshot | None, schema: Schema
) -> None:
    """Checks a read's options before anything is planned.

    Args:
        snapshot, schema: as returned by `resolve_read`.

    Raises:
        InvalidFilterError: the filter cannot be bound or used.
        UnsupportedFeatureError: the table's catalog restricts what may be read.

    Other errors are those of `check_changes`.
    """
    state.io.require_rows()
    bound_filter(options, schema)
    if options.changes is not None:
        check_changes(options.changes, state, snapshot, schema)


def make_read_plan(
    options: ReadOptions, state: TableState, schema: Schema, columns: Schema
) -> ReadPlan:
    """Makes the plan that all tasks of a read share.

    Args:
        schema: the table's schema to read with.
        columns: the output.

    Raises:
        InvalidFilterError: the filter cannot be bound or used.
        UnsupportedFeatureError: the table's catalog restricts what may be read.
    """
    state.io.require_rows()
    return ReadPlan(
        io=state.io,
        columns=columns,
        table_schema=schema,
        specs=state.metadata.specs_by_id,
        row_filter=bound_filter(options, schema),
        name_mapping=table_name_mapping(state.metadata),
        batch_size=options.batch_size,
        delete_cache_bytes=options.delete_cache_bytes,
        for_changes=options.for_changes,
        wrong_counts=options.wrong_counts,
        shown=options.shown,
    )


def plan_task_groups(
    options: ReadOptions, state: TableState, snapshot: Snapshot | None, plan: ReadPlan
) -> list[TaskGroup]:
    """Plans the task groups of a read; errors are those of its parts."""
    splits = split_options(options, state.metadata.properties)
    if options.changes is not None:
        return plan_change_task_groups(options.changes, state, snapshot, plan, splits)
    found = choose_files(state, snapshot, plan, plan.row_filter)
    return list(pack_files(found.files, state.metadata, plan.table_schema, splits))


def bound_filter(options: ReadOptions, schema: Schema) -> Expr:
    """The filter of a read, bound to the schema to read with.

    Raises:
        InvalidFilterError: it cannot be bound or used.
    """
    return bind(options.row_filter, schema, case_sensitive=False)
