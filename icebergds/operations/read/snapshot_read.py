"""From the options of a read to its plan, for Spark and for reads without it alike."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.commit.operations import TableState
from icebergds.expr.bind import bind
from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.sql import parse_filter
from icebergds.operations.read.change_read import (
    check_changes,
    feed_columns,
    plan_change_task_groups,
    resolve_end,
)
from icebergds.operations.read.options import ReadOptions, parse_read_options, split_options
from icebergds.operations.read.time_travel import resolve_snapshot
from icebergds.scan.plan.files import PlannedFile, pack_files, plan_files
from icebergds.scan.plan.native import NativeRule, native_rule
from icebergds.scan.projection import parse_column_list, project_columns
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import TaskGroup
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot


def plan_read(
    state: TableState, options: Mapping[str, str]
) -> tuple[ReadOptions, Snapshot | None, ReadPlan]:
    """What a read with these options reads of a table.

    Args:
        options: of a load, without its path.

    Raises:
        InvalidFilterError: the filter cannot be parsed, bound or used.
        InvalidOptionError: no such column, or options that contradict each other.
        NoSuchSnapshotError: no such snapshot, branch or tag.
    """
    parsed = parse_read_options({**options, "path": state.metadata_location})
    snapshot, schema = resolve_read(parsed, state.metadata, state.name)
    columns = chosen_columns(parsed, state.metadata, schema)
    return parsed, snapshot, make_read_plan(parsed, state, schema, columns)


def resolve_read(
    options: ReadOptions, metadata: TableMetadata, name: str
) -> tuple[Snapshot | None, Schema]:
    """The snapshot to read, or with which changes end, and the schema to read with.

    None is the snapshot of a table without rows. Errors are those of `resolve_snapshot` and
    `resolve_end`.

    Args:
        name: the table's, for messages.
    """
    if options.changes is None:
        return resolve_snapshot(metadata, options.time_travel, name)
    return resolve_end(metadata, options.changes, options.time_travel.branch, name)


def chosen_columns(options: ReadOptions, metadata: TableMetadata, schema: Schema) -> Schema:
    """The columns of a read, by the option `columns` or all.

    Raises:
        InvalidOptionError: no such column, or no column of a change feed to be had.
    """
    if options.columns is not None:
        names = parse_column_list(options.columns)
        return project_columns(metadata, schema, names, of_feed=options.is_feed)
    return feed_columns(metadata, schema) if options.is_feed else schema


def check_read(
    options: ReadOptions, state: TableState, snapshot: Snapshot | None, schema: Schema
) -> None:
    """Raises what is wrong with a read's options before anything is planned.

    Args:
        snapshot, schema: as `resolve_read` has them.

    Raises:
        InvalidFilterError: the filter cannot be parsed, bound or used.

    Other errors are those of `check_changes`.
    """
    bound_filter(options, schema)
    if options.changes is not None:
        check_changes(options.changes, state, snapshot, schema)


def make_read_plan(
    options: ReadOptions, state: TableState, schema: Schema, columns: Schema
) -> ReadPlan:
    """What all tasks of a read share.

    Args:
        schema: the schema that is read.
        columns: the output.

    Raises:
        InvalidFilterError: the filter cannot be parsed, bound or used.
    """
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
    )


def plan_task_groups(
    options: ReadOptions, state: TableState, snapshot: Snapshot | None, plan: ReadPlan
) -> list[TaskGroup]:
    """Plans the task groups of a read; errors as for `plan_scan` and `plan_change_task_groups`."""
    splits = split_options(options, state.metadata.properties)
    if options.changes is not None:
        return plan_change_task_groups(options.changes, state, snapshot, plan, splits)
    rule = native_rule_of(state, plan) if options.skip_native_files else None
    files = _plan_files(state, snapshot, plan, rule)
    if rule is not None:
        _, files = rule.split(files)
    return list(pack_files(files, state.metadata, plan.table_schema, splits))


def plan_native_files(
    state: TableState, snapshot: Snapshot | None, plan: ReadPlan, rule: NativeRule
) -> tuple[list[PlannedFile], bool]:
    """The files that Spark's own reader may read, and whether there are others.

    The others are what `plan_task_groups` plans under the option `skip-native-files`.
    """
    native, others = rule.split(_plan_files(state, snapshot, plan, rule))
    return native, bool(others)


def native_rule_of(state: TableState, plan: ReadPlan) -> NativeRule | None:
    """`native_rule` for a table; None where its storage has properties that Spark does not know."""
    if state.io.properties:
        return None
    names = {
        field.name for schema in state.metadata.schemas for field in schema.fields_by_id.values()
    }
    return native_rule(plan, names)


def bound_filter(options: ReadOptions, schema: Schema) -> Expr:
    """The filter of a read, bound to the schema that is read; TRUE where there is none.

    Raises:
        InvalidFilterError: it cannot be parsed, bound or used.
    """
    if options.filter is None:
        return TRUE
    parsed = parse_filter(options.filter, time_zone=options.time_zone)
    return bind(parsed, schema, case_sensitive=False)


def _plan_files(
    state: TableState, snapshot: Snapshot | None, plan: ReadPlan, rule: NativeRule | None
) -> list[PlannedFile]:
    return plan_files(
        state.io,
        state.metadata,
        snapshot,
        plan.table_schema,
        plan.row_filter,
        stats_of=frozenset() if rule is None else rule.stats_ids,
    )
