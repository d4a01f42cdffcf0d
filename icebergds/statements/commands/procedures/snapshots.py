"""Implements procedures for snapshots, branches and tags, and for changes between snapshots."""

from __future__ import annotations

from icebergds.api.table import Table
from icebergds.errors import InvalidStatementError, NoSuchSnapshotError
from icebergds.expr.names import in_backticks
from icebergds.operations.evolution.cherry_pick import WAP_ID
from icebergds.statements.commands.procedures.signature import Call, Rows
from icebergds.statements.commands.procedures.targets import name_of, table_of


def rollback_to_snapshot(call: Call) -> Rows:
    table = table_of(call)
    previous = _current(table)
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(call["snapshot_id"])
    return [(previous, call["snapshot_id"])]


def rollback_to_timestamp(call: Call) -> Rows:
    table = table_of(call)
    previous = _current(table)
    with table.manage_snapshots() as manage:
        manage.rollback_to_timestamp(call.moment("timestamp"))
    return [(previous, _current(table))]


def set_current_snapshot(call: Call) -> Rows:
    snapshot_id, ref = call.get("snapshot_id"), call.get("ref")
    if (snapshot_id is None) == (ref is None):
        raise InvalidStatementError("set_current_snapshot: expected one of snapshot_id and ref")
    table = table_of(call)
    previous = _current(table)
    with table.manage_snapshots() as manage:
        manage.set_current_snapshot(snapshot_id, ref)
    return [(previous, _current(table))]


def cherrypick_snapshot(call: Call) -> Rows:
    table = table_of(call)
    with table.manage_snapshots() as manage:
        manage.cherry_pick(call["snapshot_id"])
    return [(call["snapshot_id"], _current(table))]


def publish_changes(call: Call) -> Rows:
    table, wap_id = table_of(call), call["wap_id"]
    staged = [
        snapshot.snapshot_id
        for snapshot in table.metadata.snapshots
        if snapshot.summary.get(WAP_ID) == wap_id
    ]
    if len(staged) > 1:
        raise InvalidStatementError(
            f"table {table.name}: snapshots {', '.join(map(str, staged))} are all staged as "
            f"{wap_id!r}; choose one with cherrypick_snapshot"
        )
    with table.manage_snapshots() as manage:
        manage.publish_changes(wap_id)
    return [(*staged, _current(table))]


def fast_forward(call: Call) -> Rows:
    table, branch = table_of(call), call["branch"]
    before = table.snapshot_by_name(branch)
    with table.manage_snapshots() as manage:
        manage.fast_forward(branch, call["to"])
    after = table.snapshot_by_name(branch)
    assert after is not None, "the branch exists now"
    return [(branch, None if before is None else before.snapshot_id, after.snapshot_id)]


def ancestors_of(call: Call) -> Rows:
    table, snapshot_id = table_of(call), call.get("snapshot_id")
    newest = table.current_snapshot()
    if snapshot_id is not None:
        newest = table.snapshot_by_id(snapshot_id)
        if newest is None:
            raise NoSuchSnapshotError(f"table {table.name}: snapshot {snapshot_id} does not exist")
    if newest is None:
        return []
    lineage = table.metadata.lineage(newest)
    return [(snapshot.snapshot_id, snapshot.timestamp_ms) for snapshot in lineage]


def create_changelog_view(call: Call) -> Rows:
    identifier = call.get("identifier_columns")
    computes_updates = call.get("compute_updates", identifier is not None)
    changes = table_of(call).changes(
        net_changes=call.get("net_changes", False),
        compute_updates=computes_updates,
        # Passed to the API, these would ask for updates.
        identifier_columns=identifier if computes_updates else None,
        options=call.get("options"),
    )
    view: str = call.get("changelog_view", in_backticks([f"{name_of(call).parts[-1]}_changes"]))
    changes.to_df(call.scope.spark).createOrReplaceTempView(view)
    return [(view,)]


def _current(table: Table) -> int | None:
    current = table.current_snapshot()
    return None if current is None else current.snapshot_id
