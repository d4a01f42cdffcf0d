"""Deletes of rows that are all the rows of files, which metadata alone tells."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.catalog.address import TableAddress
from icebergds.commit.delete import Delete, can_delete_by_metadata
from icebergds.commit.operations import TableState
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.errors import AlreadyCommittedError, InvalidFilterError
from icebergds.expr.bind import bind
from icebergds.expr.nodes import Expr
from icebergds.expr.rounding import compares_exactly
from icebergds.expr.sql import parse_filter
from icebergds.operations.write.commit_options import commit_options
from icebergds.operations.write.options import WriteOptions, parse_write_options
from icebergds.operations.write.row_counts import RowCounts
from icebergds.scan.plan.files import plan_files


def delete_by_metadata(
    address: TableAddress, state: TableState, condition: str, options: Mapping[str, str]
) -> RowCounts | None:
    """Removes the files all of whose rows match a condition, if these are all rows that match.

    Args:
        state: the table as it is.
        condition: SQL.
        options: of the write, without those of the address.

    Returns:
        How many rows the removed files had; None where the condition takes more than metadata to
        tell, and nothing was done.

    Raises:
        InvalidOptionError: an unknown option.
        ValidationError: rows were added meanwhile to files that match only in part.
        CommitConflictError, CommitStateUnknownError: as for every commit.
    """
    parsed = parse_write_options({**options, "path": address.path}, address)
    row_filter = _metadata_delete_filter(state, condition, parsed)
    if row_filter is None:
        return None
    metadata = state.metadata
    snapshot = metadata.head_of(parsed.branch)
    bound = bind(row_filter, metadata.schema(), case_sensitive=False)
    if not plan_files(state.io, metadata, snapshot, metadata.schema(), bound):
        return RowCounts()
    action = Delete(row_filter, case_sensitive=False)
    options_of_commit = commit_options(parsed, metadata.table_uuid)
    try:
        done = commit_snapshot(address.operations(), action, options_of_commit)
    except AlreadyCommittedError:
        return RowCounts()
    return RowCounts(deleted=int(done.snapshot.summary.get("deleted-records", 0)))


def is_metadata_delete(
    address: TableAddress, state: TableState, condition: str, options: Mapping[str, str]
) -> bool:
    """Whether all rows that match a condition are all the rows of files, as far as metadata tells.

    Arguments and errors are those of `delete_by_metadata`.
    """
    parsed = parse_write_options({**options, "path": address.path}, address)
    return _metadata_delete_filter(state, condition, parsed) is not None


def _metadata_delete_filter(
    state: TableState, condition: str, options: WriteOptions
) -> Expr | None:
    schema = state.metadata.schema()
    try:
        row_filter = parse_filter(condition, time_zone=options.time_zone)
        can_delete = can_delete_by_metadata(
            state, row_filter, branch=options.branch, case_sensitive=False
        ) and compares_exactly(row_filter, schema, case_sensitive=False)
    except InvalidFilterError:
        # Spark reads more conditions than scans are planned with.
        return None
    return row_filter if can_delete else None
