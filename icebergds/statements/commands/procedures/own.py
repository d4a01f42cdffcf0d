"""Implements procedures that Java Iceberg does not have."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from icebergds.api.delete_files import delete_reachable_files as delete_files
from icebergds.catalog.address import properties_at_location
from icebergds.expr.names import in_backticks
from icebergds.operations.maintenance.policy import MaintenancePolicy
from icebergds.statements.commands.procedures.signature import Call, Rows
from icebergds.statements.commands.procedures.targets import branch_of, table_of
from icebergds.statements.commands.procedures.where import where_of
from icebergds.statements.queries.query import run_query
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import cursor_of

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")


def upsert(call: Call) -> Rows:
    found = branch_of(call)
    source = cursor_of(_source_query(call))
    done = found.table.upsert(
        run_query(call.scope, source, Arguments()),
        call.get("keys"),
        order_by=call.get("order_by"),
        branch=call.get("branch", found.branch),
        options=call.get("options"),
    )
    # It is not always known which of them were there.
    return [(done.inserted + done.updated + done.upserted, done.snapshot_id)]


def convert_equality_deletes(call: Call) -> Rows:
    found = branch_of(call)
    done = found.table.convert_equality_deletes(
        where_of(call, found.table),
        branch=call.get("branch", found.branch),
        options=call.get("options"),
        spark=call.scope.spark,
    )
    return [
        (
            done.converted_equality_delete_files_count,
            done.remaining_equality_delete_files_count,
            done.added_delete_files_count,
            done.deleted_rows_count,
        )
    ]


def remove_dangling_deletes(call: Call) -> Rows:
    found = branch_of(call)
    done = found.table.remove_dangling_deletes(branch=call.get("branch", found.branch))
    return [
        (
            done.removed_delete_files_count,
            done.removed_position_delete_files_count,
            done.removed_equality_delete_files_count,
            done.removed_dvs_count,
        )
    ]


def delete_reachable_files(call: Call) -> Rows:
    properties = properties_at_location(call.scope.catalog(call.catalog).properties)
    done = delete_files(call["metadata_file"], properties=properties)
    return [
        (
            done.deleted_data_files_count,
            done.deleted_position_delete_files_count,
            done.deleted_equality_delete_files_count,
            done.deleted_manifests_count,
            done.deleted_manifest_lists_count,
            done.deleted_other_files_count,
            done.failed_files_count,
        )
    ]


def maintain(call: Call) -> Rows:
    found = branch_of(call)
    named = {field.name for field in fields(MaintenancePolicy)}
    policy: dict[str, Any] = {name: call.values[name] for name in named if name in call.values}
    report = found.table.maintain(
        branch=call.get("branch", found.branch),
        dry_run=call.get("dry_run", False),
        spark=call.scope.spark,
        **policy,
    )
    steps = [
        (
            step.action,
            step.state.value,
            step.reason,
            str(step.gain),
            step.note,
            step.size_in_bytes,
            step.seconds,
        )
        for step in report.steps
    ]
    if not report.purge_deleted:
        return steps
    state = "purged" if report.is_purged else "kept"
    left = [("purge_deleted", state, reason, "", note, 0, 0.0) for reason, note in report.left()]
    return [*steps, *left]


def find_stored_rows(call: Call) -> Rows:
    found = table_of(call).find_stored_rows(call["where"], spark=call.scope.spark)
    rows: list[tuple[Any, ...]] = [
        (
            file.file_path,
            file.content.name.lower(),
            file.rows,
            list(file.snapshot_ids),
            list(file.refs),
            "",
        )
        for file in found.files
    ]
    unread = "no snapshot refers to it; it was not read"
    unreferenced = found.unreferenced.orphan_file_locations
    rows += [(path, "unreferenced", None, [], [], unread) for path in unreferenced]
    if found.not_listed:
        rows.append((None, "unreferenced", None, [], [], f"not listed: {found.not_listed}"))
    return rows


def health(call: Call) -> Rows:
    found = branch_of(call)
    told = found.table.health(call.get("branch", found.branch))
    files, deletes = told.files, told.deletes
    advice = [f"{each.action}: {each.reason}" for each in told.advice]
    return [
        (
            told.is_healthy,
            advice,
            files.count,
            files.rows,
            files.size_in_bytes,
            files.small,
            files.large,
            deletes.position_delete_files,
            deletes.deletion_vectors,
            deletes.equality_delete_files,
            deletes.dangling,
            deletes.size_in_bytes,
            deletes.deleted_rows,
            told.manifests.count,
            told.manifests.size_in_bytes,
            told.metadata.snapshots,
            told.metadata.expirable_snapshots,
        )
    ]


def _source_query(call: Call) -> str:
    """A query for the rows of a source: a query, or the name of a table or view."""
    text = call["source"]
    read = cursor_of(text)
    if read.is_at_sign("(") or any(read.is_at(word) for word in _QUERIES):
        # In parentheses, it can only be a query.
        return f"SELECT * FROM ({text}\n)"
    parts = read.name("the name of a table or view, or a query")
    read.expect_end()
    return f"SELECT * FROM {in_backticks(parts)}"
