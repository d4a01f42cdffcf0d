"""Removes delete files that apply to no data file any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.nothing_to_commit import NothingToCommitError
from icebergds.commit.operations import TableState
from icebergds.commit.remove_delete_files import RemoveDeleteFiles
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.display import html_result
from icebergds.operations.maintenance.deletes.suspected_deletes import removable_deletes
from icebergds.operations.maintenance.maintained_branch import maintained_branch


@dataclass(frozen=True, slots=True)
class RemovedDanglingDeletes:
    """How many delete files were removed from a table, in all and of each kind.

    Attributes:
        removed_delete_files_count: all of them.
        removed_position_delete_files_count: without deletion vectors.
        removed_equality_delete_files_count: also those that apply to all partitions.
        removed_dvs_count: deletion vectors, of which a file may hold many.
    """

    removed_delete_files_count: int = 0
    removed_position_delete_files_count: int = 0
    removed_equality_delete_files_count: int = 0
    removed_dvs_count: int = 0

    def _repr_html_(self) -> str:
        return html_result("Removed dangling deletes", self)


def remove_dangling_deletes(
    table: LoadedTable,
    *,
    branch: Any = None,
    snapshot_properties: Mapping[str, str] | None = None,
) -> tuple[RemovedDanglingDeletes, TableState]:
    """Removes the delete files of a branch that apply to none of its data files.

    Raises:
        InvalidOptionError: the table has no such branch.
        CorruptFileError, MissingFileError: a manifest or delete file cannot be read.
        CommitConflictError, CommitStateUnknownError: as for other commits.
    """
    options = maintained_branch(table, branch, snapshot_properties)
    action = RemoveDeleteFiles(removable_deletes)
    try:
        committed = commit_snapshot(table.operations, action, options, table.state)
    except NothingToCommitError as nothing:
        return RemovedDanglingDeletes(), nothing.state
    summary = committed.snapshot.summary
    kinds = ("delete-files", "position-delete-files", "equality-delete-files", "dvs")
    counts = (int(summary.get(f"removed-{kind}", 0)) for kind in kinds)
    return RemovedDanglingDeletes(*counts), committed.state
