"""Adds data files to a table, deletes whole ones, and replaces files or the rows of a filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from icebergds.commit.base import CommitBase, commit_base
from icebergds.commit.file_selection import require_removed, these_files
from icebergds.commit.merging import merged_manifests, require_data_files
from icebergds.commit.new_manifests import new_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.operations import TableState
from icebergds.commit.row_selection import rows_matching
from icebergds.commit.selection import read_columns
from icebergds.commit.summary import changes_summary
from icebergds.commit.validation import (
    Isolation,
    check_added_data,
    check_isolation,
    check_new_deletes,
    check_row_ids,
)
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.spec.manifest import DataFile, ManifestContent
from icebergds.spec.snapshot import MAIN_BRANCH


@dataclass(frozen=True, slots=True)
class RewriteRows:
    """Removes data files and adds others with their remaining, changed and new rows.

    The commit fails with a ValidationError if a file to remove is no longer in the branch, if
    others deleted rows of it since it was read, if its rows got ids since then or, with
    serializable isolation, if others added rows that may match the conflict filter.

    Attributes:
        removed: data files, as manifests describe them.
        isolation: the level, and the snapshot that was read.
        conflict_filter: the rows that the operation read, by column name; TRUE for all rows.
        had_ids: whether the rows of the snapshot that was read have row ids.
    """

    removed: tuple[DataFile, ...]
    added: tuple[DataFile, ...]
    isolation: Isolation
    conflict_filter: Expr = TRUE
    case_sensitive: bool = True
    had_ids: bool = True

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_data_files(base, (*self.removed, *self.added))
        start = self.isolation.from_snapshot_id
        if self.removed:
            check_row_ids(base, had_ids=self.had_ids)
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


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes the files whose rows all match a filter.

    The commit fails with a ValidationError if metadata proves neither that all rows of a file match
    nor that none does; `can_delete_by_metadata` checks this beforehand.

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


@dataclass(frozen=True, slots=True)
class Append:
    """Adds data files, and merges small manifests as the properties `commit.manifest.*` say.

    An append needs no validation: a concurrent commit only makes it retry.

    Attributes:
        may_be_plain: whether an encrypted table may get files that are not encrypted.
    """

    files: tuple[DataFile, ...]
    may_be_plain: bool = False
    depends_on_rows: ClassVar[bool] = False

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_data_files(base, self.files)
        merged = merged_manifests(work, base, added=self.files, may_be_plain=self.may_be_plain)
        return NewSnapshot("append", merged.manifests, merged.changes)


@dataclass(frozen=True, slots=True)
class FastAppend:
    """Adds data files in new manifests and keeps the existing manifests as they are.

    The cost does not depend on the size of the table; merging manifests is left to other commits.
    """

    files: tuple[DataFile, ...]
    depends_on_rows: ClassVar[bool] = False

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_data_files(base, self.files)
        new = new_manifests(work, base, self.files)
        return NewSnapshot("append", (*new, *base.manifests), changes_summary(base, self.files, ()))
