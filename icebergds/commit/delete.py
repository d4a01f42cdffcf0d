"""Deletes by metadata alone: removes whole files whose rows all match a filter."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.commit.base import CommitBase, commit_base
from icebergds.commit.merging import merged_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.operations import TableState
from icebergds.commit.row_selection import rows_matching
from icebergds.commit.selection import read_columns
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.expr.nodes import Expr
from icebergds.spec.manifest import ManifestContent
from icebergds.spec.snapshot import MAIN_BRANCH


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes the files whose rows all match a filter.

    The commit fails with a ValidationError if metadata proves neither that all rows of a file
    match nor that none does; `can_delete_by_metadata` tells beforehand.

    Attributes:
        row_filter: by column name; bound to the current schema at each attempt.
    """

    row_filter: Expr
    case_sensitive: bool = True

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        rows = rows_matching(base, self.row_filter, self.case_sensitive)
        merged = merged_manifests(
            work, base, removed=rows, key=(rows.row_filter, base.metadata.current_schema_id)
        )
        return NewSnapshot("delete", merged.manifests, merged.changes)


def can_delete_by_metadata(
    state: TableState,
    row_filter: Expr,
    *,
    branch: str = MAIN_BRANCH,
    case_sensitive: bool = True,
) -> bool:
    """Whether `Delete` would succeed on the table in this state.

    Raises:
        InvalidFilterError: the filter does not fit the table's schema.
        MissingFileError, CorruptFileError: a manifest cannot be read.
    """
    base = commit_base(state, branch)
    rows = rows_matching(base, row_filter, case_sensitive)
    try:
        for manifest in filter(rows.may_select, base.manifests_of(ManifestContent.DATA)):
            rows.select(read_columns(base, manifest, rows.stats_ids))
    except ValidationError:
        return False
    return True
