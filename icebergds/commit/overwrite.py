"""Replaces the rows that match a filter."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.commit.base import CommitBase
from icebergds.commit.merging import merged_manifests, require_data_files
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.row_selection import rows_matching
from icebergds.commit.validation import Isolation, check_isolation
from icebergds.commit.workspace import Workspace
from icebergds.expr.nodes import Expr
from icebergds.spec.manifest import DataFile

_NO_ISOLATION = Isolation()


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Removes the files whose rows all match a filter, and adds others in the same commit.

    Only whole files are removed: the commit fails with a ValidationError if metadata proves neither
    that all rows of a file match nor that none does.

    Attributes:
        row_filter: by column name, bound to the current schema at each attempt; TRUE for all rows.
        isolation: which concurrent commits to rows that may match the filter fail validation.
    """

    files: tuple[DataFile, ...]
    row_filter: Expr
    case_sensitive: bool = True
    isolation: Isolation = _NO_ISOLATION

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_data_files(base, self.files)
        rows = rows_matching(base, self.row_filter, self.case_sensitive)
        check_isolation(base, self.isolation, rows)
        merged = merged_manifests(
            work,
            base,
            added=self.files,
            removed=rows,
            key=(rows.row_filter, base.metadata.current_schema_id),
        )
        operation = "overwrite" if self.files else "delete"
        return NewSnapshot(operation, merged.manifests, merged.changes)
