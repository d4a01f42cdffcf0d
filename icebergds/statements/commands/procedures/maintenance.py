"""Implements procedures that rewrite and delete files and manifests, or compute statistics."""

from __future__ import annotations

import pyarrow as pa

from icebergds.errors import InvalidStatementError
from icebergds.expr.names import in_backticks
from icebergds.spark.job_descriptions import describing
from icebergds.statements.commands.procedures.signature import Call, Rows
from icebergds.statements.commands.procedures.targets import branch_of, parts_of, table_of
from icebergds.statements.commands.procedures.where import where_of
from icebergds.statements.queries.query import run_query
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import cursor_of


def expire_snapshots(call: Call) -> Rows:
    done = table_of(call).expire_snapshots(
        call.moment("older_than"),
        call.get("retain_last"),
        call.get("snapshot_ids"),
        clean_expired_metadata=call.get("clean_expired_metadata", False),
        max_concurrent_deletes=call.get("max_concurrent_deletes"),
    )
    return [
        (
            done.deleted_data_files_count,
            done.deleted_position_delete_files_count,
            done.deleted_equality_delete_files_count,
            done.deleted_manifest_files_count,
            done.deleted_manifest_lists_count,
            done.deleted_statistics_files_count,
        )
    ]


def remove_orphan_files(call: Call) -> Rows:
    done = table_of(call).remove_orphan_files(
        call.moment("older_than"),
        call.get("location"),
        dry_run=call.get("dry_run", False),
        max_concurrent_deletes=call.get("max_concurrent_deletes"),
        file_list=_file_list(call),
        equal_schemes=call.get("equal_schemes"),
        equal_authorities=call.get("equal_authorities"),
        prefix_mismatch_mode=call.get("prefix_mismatch_mode", "error").lower(),
        options={"stream-results": "true"} if call.get("stream_results") else None,
    )
    return [(location,) for location in done.orphan_file_locations]


def rewrite_data_files(call: Call) -> Rows:
    found = branch_of(call)
    order = call.get("sort_order")
    strategy = call.get("strategy", "binpack" if order is None else "sort").lower()
    done = found.table.rewrite_data_files(
        strategy,
        where_of(call, found.table),
        order,
        branch=call.get("branch", found.branch),
        options=call.get("options"),
        spark=call.scope.spark,
    )
    return [
        (
            done.rewritten_data_files_count,
            done.added_data_files_count,
            done.rewritten_bytes_count,
            done.failed_data_files_count,
            done.removed_delete_files_count,
        )
    ]


def rewrite_manifests(call: Call) -> Rows:
    found, sort_by = branch_of(call), call.get("sort_by")
    if sort_by is not None and not sort_by:
        raise InvalidStatementError("sort_by = array(): expected names of partition fields")
    done = found.table.rewrite_manifests(call.get("spec_id"), sort_by, branch=found.branch)
    return [(done.rewritten_manifests_count, done.added_manifests_count)]


def rewrite_position_delete_files(call: Call) -> Rows:
    found = branch_of(call)
    done = found.table.rewrite_position_delete_files(
        where_of(call, found.table),
        options=call.get("options"),
        branch=found.branch,
        spark=call.scope.spark,
    )
    return [
        (
            done.rewritten_delete_files_count,
            done.added_delete_files_count,
            done.rewritten_bytes_count,
            done.added_bytes_count,
        )
    ]


def _file_list(call: Call) -> pa.Table | None:
    """The files that a view lists."""
    if call.get("file_list_view") is None:
        return None
    view = in_backticks(parts_of(call, "file_list_view"))
    query = cursor_of(f"SELECT file_path, last_modified FROM {view}")
    with describing(f"remove_orphan_files, read {view}"):
        return run_query(call.scope, query, Arguments()).toArrow()


def compute_table_stats(call: Call) -> Rows:
    file = table_of(call).compute_table_stats(
        call.get("columns"), call.get("snapshot_id"), spark=call.scope.spark
    )
    return [] if file is None else [(file.statistics_path,)]


def compute_partition_stats(call: Call) -> Rows:
    file = table_of(call).compute_partition_stats(call.get("snapshot_id"))
    return [] if file is None else [(file.statistics_path,)]
