"""Replaces data files with rewritten ones: copy-on-write."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.commit.base import CommitBase
from icebergds.commit.file_selection import require_removed, these_files
from icebergds.commit.merging import merged_manifests, require_data_files
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.row_selection import rows_matching
from icebergds.commit.validation import Isolation, check_added_data, check_new_deletes
from icebergds.commit.workspace import Workspace
from icebergds.expr.nodes import TRUE, Expr
from icebergds.spec.manifest import DataFile


@dataclass(frozen=True, slots=True)
class RewriteRows:
    """Removes data files and adds others with their remaining, changed and new rows.

    The commit fails with a ValidationError if a file to remove is no longer in the branch, if
    others deleted rows of it since it was read or, with serializable isolation, if others added
    rows that may match the conflict filter.

    Attributes:
        removed: data files, as manifests describe them.
        isolation: the level, and the snapshot that was read.
        conflict_filter: the rows that the operation read, by column name; TRUE for all rows.
    """

    removed: tuple[DataFile, ...]
    added: tuple[DataFile, ...]
    isolation: Isolation
    conflict_filter: Expr = TRUE
    case_sensitive: bool = True

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_data_files(base, (*self.removed, *self.added))
        start = self.isolation.from_snapshot_id
        if self.removed:
            check_new_deletes(base, start, self.removed, ignore_equality=False)
        rows = rows_matching(base, self.conflict_filter, self.case_sensitive)
        check_added_data(base, self.isolation, rows)
        merged = merged_manifests(
            work,
            base,
            added=self.added,
            removed=these_files(base, self.removed) if self.removed else None,
            key="rewrite",
        )
        require_removed(base, self.removed, merged.removed)
        return NewSnapshot(self._operation(), merged.manifests, merged.changes)

    def _operation(self) -> str:
        if not self.removed:
            return "append"
        return "overwrite" if self.added else "delete"
