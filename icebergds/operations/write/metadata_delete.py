"""Deletes rows by removing whole files, when metadata alone shows which rows match."""

from __future__ import annotations

from collections.abc import Sequence

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.data_files import Delete, can_delete_by_metadata
from icebergds.commit.snapshot_commit import Committed, commit_snapshot
from icebergds.errors import AlreadyCommittedError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import Expr
from icebergds.operations.write.commit_options import check_target_branch, commit_options
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.row_counts import RowCounts
from icebergds.scan.plan.files import PlannedFile, plan_files
from icebergds.spec.snapshot import Snapshot


def is_metadata_delete(table: LoadedTable, row_filter: Expr, options: WriteOptions) -> bool:
    """Whether metadata shows that each file matches a filter with all of its rows or with none.

    Args:
        row_filter: a condition from `plannable_condition`.

    Raises:
        InvalidFilterError: the filter does not fit the table's schema.
        InvalidOptionError: the branch does not exist.
        UnsupportedFeatureError: the table's catalog restricts what may be read.
    """
    table.io.require_rows()
    check_target_branch(table.state, options)
    return can_delete_by_metadata(
        table.state, row_filter, branch=options.branch, case_sensitive=False
    )


def delete_by_metadata(
    table: LoadedTable, row_filter: Expr, options: WriteOptions
) -> tuple[Committed | None, RowCounts]:
    """Removes the files all of whose rows match a filter; check `is_metadata_delete` first.

    Returns:
        None if no file can have a matching row, or if the table already has this idempotent write;
        and how many rows were deleted.

    Raises:
        ValidationError: a concurrent commit added a file of which only some rows match.
        CommitConflictError, CommitStateUnknownError: as for every commit.
    """
    metadata = table.metadata
    snapshot = metadata.head_of(options.branch)
    bound = bind(row_filter, metadata.schema(), case_sensitive=False)
    planned = plan_files(table.io, metadata, snapshot, metadata.schema(), bound).files
    if not planned:
        return None, RowCounts()
    action = Delete(row_filter, case_sensitive=False)
    options_of_commit = commit_options(options, metadata.table_uuid)
    try:
        committed = commit_snapshot(table.operations, action, options_of_commit, table.state)
    except AlreadyCommittedError:
        return None, RowCounts()
    return committed, _counts(committed, snapshot, planned)


def _counts(
    committed: Committed, planned_for: Snapshot | None, planned: Sequence[PlannedFile]
) -> RowCounts:
    """Counts the rows of the removed files, without those that deletion vectors had deleted.

    How many rows other deletes had deleted is known only from the files themselves: position
    deletes may name a row twice, and equality deletes rows that do not exist.
    """
    summary = committed.snapshot.summary
    in_files = int(summary.get("deleted-records", 0))
    before = None if planned_for is None else planned_for.snapshot_id
    of_planned = sum(file.entry.data_file.record_count for file in planned)
    if committed.snapshot.parent_snapshot_id != before or of_planned != in_files:
        # Another commit came first, so the removed files may not be the planned ones.
        return RowCounts(deleted=in_files, is_exact=False)
    by_position = [x.data_file for file in planned for x in file.deletes.position_deletes]
    vectors = [delete for delete in by_position if delete.is_deletion_vector]
    has_others = len(vectors) < len(by_position) or any(
        file.deletes.equality_deletes for file in planned
    )
    deleted = in_files - sum(vector.record_count for vector in vectors)
    return RowCounts(deleted=deleted, is_exact=not has_others)
