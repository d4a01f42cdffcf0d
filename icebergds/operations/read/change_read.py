"""Plans a read of changes from its options: snapshots, columns and task groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidFilterError, InvalidOptionError, NoSuchSnapshotError
from icebergds.expr.names import quote_name, resolve
from icebergds.operations.read.change_options import ChangeOptions, Moment
from icebergds.operations.read.time_travel import TimeTravel, resolve_snapshot
from icebergds.scan.plan.change_tasks import change_task_groups
from icebergds.scan.plan.changes import (
    ChangePlanner,
    commit_version,
    parent_of,
    plan_appends,
    plan_changes,
)
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.history import (
    SnapshotRange,
    range_since,
    refuse_expired_history,
    snapshots_between,
)
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.projection import FeedColumns
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import TaskGroup
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.reserved import ROW_ID
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot

_NUMBER = re.compile(r"-?\d+", re.ASCII)


def resolve_end(
    metadata: TableMetadata, changes: ChangeOptions, branch: str | None, name: str
) -> tuple[Snapshot | None, Schema]:
    """The end snapshot of changes (None if there are no changes), and the schema to read with.

    The head of a branch is read with the table's current schema, any other snapshot with its own.

    Args:
        name: the table's, for messages.

    Raises:
        NoSuchSnapshotError: the snapshot, branch or tag does not exist or has expired.
        InvalidOptionError: the snapshot is not in the history of the given branch.
    """
    head, schema = resolve_snapshot(metadata, TimeTravel(branch=branch or MAIN_BRANCH), name)
    if changes.end is None:
        return head, schema
    known = metadata.lineage(head)
    if changes.end.timestamp_ms is not None:
        before = [s for s in known if s.timestamp_ms <= changes.end.timestamp_ms]
        if not before:
            refuse_expired_history(known, changes.end.timestamp_ms, name)
            return None, schema
        return resolve_snapshot(metadata, TimeTravel(before[0].snapshot_id), name)
    end, schema = _named(metadata, changes.end, name)
    if branch is not None and end.snapshot_id not in {s.snapshot_id for s in known}:
        raise InvalidOptionError(
            f"table {name}: the end snapshot {end.snapshot_id} is not in the history of branch "
            f"{branch!r}"
        )
    if not changes.end.is_before:
        return end, schema
    last = parent_of(metadata, end)
    if last is None:
        return None, schema
    return resolve_snapshot(metadata, TimeTravel(last.snapshot_id), name)


def resolve_range(
    metadata: TableMetadata, changes: ChangeOptions, end: Snapshot | None, name: str
) -> SnapshotRange:
    """The snapshots whose changes are read.

    Args:
        end: as returned by `resolve_end`.
        name: the table's, for messages.

    Raises:
        NoSuchSnapshotError: the start does not exist, or its history has expired.
        InvalidOptionError: the start is not an ancestor of the end.
    """
    start = changes.start
    if start is not None and start.timestamp_ms is not None:
        return range_since(metadata, start.timestamp_ms, end, name)
    if start is None:
        return snapshots_between(metadata, None, end, name)
    found, last = _named(metadata, start, name)[0], changes.end
    if last is not None and last.is_before:
        # The range may be empty, but not begin after the version that ends it.
        end = _named(metadata, last, name)[0]
    history = snapshots_between(metadata, found, end, name)
    if start.is_before:
        history = _with_start(metadata, history, found, name)
    without_end = slice(-1) if last is not None and last.is_before else slice(None)
    return replace(history, snapshots=history.snapshots[without_end])


def _with_start(
    metadata: TableMetadata, history: SnapshotRange, start: Snapshot, name: str
) -> SnapshotRange:
    """The range with the snapshot that it starts after."""
    parent = parent_of(metadata, start)
    if parent is None and start.parent_snapshot_id is not None:
        raise NoSuchSnapshotError(
            f"table {name}: snapshot {start.parent_snapshot_id}, before snapshot "
            f"{start.snapshot_id}, has expired, so the changes of the latter are not known; start "
            "after it: startingBoundInclusive=false, in SQL EXCLUSIVE"
        )
    return SnapshotRange(parent, (start, *history.snapshots))


def feed_columns(metadata: TableMetadata, schema: Schema, feed: FeedColumns) -> Schema:
    """The default columns of a change feed: all data columns, then the change columns.

    Raises:
        InvalidOptionError: the table has a column with the name of a change column.
    """
    of_feed = {column.name for column in feed.default}
    if taken := [field.name for field in schema.fields if field.name in of_feed]:
        raise InvalidOptionError(
            f"table {metadata.location} has a column {taken[0]}, so its change feed cannot add one "
            "of this name; rename the column, or list other columns in the option columns"
        )
    return Schema((*schema.fields, *feed.default), schema.schema_id)


def check_changes(
    changes: ChangeOptions, state: TableState, end: Snapshot | None, schema: Schema
) -> None:
    """Raises the errors of `resolve_range` and `identifier_ids`, before anything is planned."""
    identifier_ids(changes, schema, state)
    resolve_range(state.metadata, changes, end, state.name)


def plan_change_task_groups(
    changes: ChangeOptions,
    state: TableState,
    end: Snapshot | None,
    plan: ReadPlan,
    splits: SplitOptions,
) -> list[TaskGroup]:
    """Plans the task groups of a read of changes.

    Errors are those of `resolve_range`, `plan_changes` and `plan_appends`.
    """
    metadata, schema = state.metadata, plan.table_schema
    history = resolve_range(metadata, changes, end, state.name)
    planner = ChangePlanner(state.io, metadata, schema, plan.row_filter, plan.wrong_counts)
    if not changes.is_feed:
        files = plan_appends(planner, metadata, history, skipped=changes.skipped, table=state.name)
        return list(pack_files(files, metadata, schema, splits))
    found = plan_changes(planner, metadata, history)
    if changes.net:
        found = [[file for files in found for file in files]]
    return feed_task_groups(changes, found, state, schema, splits)


def feed_task_groups(
    changes: ChangeOptions,
    found: Sequence[Sequence[PlannedFile]],
    state: TableState,
    schema: Schema,
    splits: SplitOptions,
) -> list[TaskGroup]:
    """Packs the changed files of a change feed into task groups.

    Args:
        found: the files of each snapshot, as for `change_task_groups`.
        schema: the schema that is read.

    Raises:
        InvalidMetadataError: a column of an equality key is in no schema.

    Other errors are those of `identifier_ids`.
    """
    if changes.keeps_carryovers:
        files = (file for files in found for file in files)
        return list(pack_files(files, state.metadata, schema, splits))
    identifiers = identifier_ids(changes, schema, state)
    return change_task_groups(found, state.metadata, schema, splits, identifier_ids=identifiers)


def identifier_ids(changes: ChangeOptions, schema: Schema, state: TableState) -> tuple[int, ...]:
    """The field ids that identify the rows of an update; empty if updates are not computed.

    Rows of tables with row lineage have an id, which is used if no column identifies them.

    Raises:
        InvalidOptionError: a column does not exist or is inside a list or map, or there is neither
            a column nor an id.
    """
    if not changes.computes_updates:
        return ()
    named = changes.identifier_columns
    try:
        ids = (
            schema.identifier_field_ids
            if named is None
            else tuple(
                dict.fromkeys(
                    resolve(quote_name(n), schema, case_sensitive=False).field_id for n in named
                )
            )
        )
    except InvalidFilterError as error:
        raise InvalidOptionError(f"option 'identifier-columns': {error}") from None
    if ids:
        return ids
    if state.metadata.format_version < 3:
        asked = "computeUpdates" if changes.for_spark else "compute-updates"
        raise InvalidOptionError(
            f"table {state.name}: {asked} needs columns that identify rows, and the table has no "
            "identifier fields; list them in the option identifier-columns"
        )
    return (ROW_ID.field_id,)


def _named(metadata: TableMetadata, moment: Moment, name: str) -> tuple[Snapshot, Schema]:
    snapshot_id = moment.snapshot_id
    travel = TimeTravel(snapshot_id=snapshot_id, tag=moment.tag, version=moment.version)
    if moment.version is not None and _NUMBER.fullmatch(moment.version):
        snapshot_id = _id_of_version(metadata, int(moment.version), name)
        travel = TimeTravel(snapshot_id=snapshot_id)
    if snapshot_id is not None and metadata.snapshot_by_id(snapshot_id) is None:
        parents = {snapshot.parent_snapshot_id for snapshot in metadata.snapshots}
        logged = {entry.snapshot_id for entry in metadata.snapshot_log}
        if snapshot_id in parents | logged:
            raise NoSuchSnapshotError(
                f"table {name}: snapshot {snapshot_id} has expired, so the changes since then are "
                "not known; choose a later snapshot, or read the whole table again"
            )
    snapshot, schema = resolve_snapshot(metadata, travel, name)
    if snapshot is None:
        raise NoSuchSnapshotError(f"table {name}: branch {moment.version} has no snapshot yet")
    return snapshot, schema


def _id_of_version(metadata: TableMetadata, version: int, name: str) -> int:
    """The id of the snapshot with this id, or else with this commit version."""
    if metadata.snapshot_by_id(version) is not None:
        return version
    found = [s.snapshot_id for s in metadata.snapshots if commit_version(s) == version]
    if len(found) > 1:
        raise InvalidOptionError(
            f"table {name}: {len(found)} commits have the version {version}; give the id of one of "
            f"their snapshots: {', '.join(map(str, found))}"
        )
    return found[0] if found else version
