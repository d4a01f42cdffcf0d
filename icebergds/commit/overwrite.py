"""Replaces the rows that a filter selects."""

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

    A file of which it is not certain that all of its rows match, or that none does, is an error
    (ValidationError), since whole files are removed.

    Attributes:
        row_filter: by the names that columns have when the commit is tried; TRUE for all rows.
        isolation: which concurrent commits are refused; they are looked for where the filter may
            match.
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
