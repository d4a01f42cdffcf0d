"""Deletes rows by delete files, and adds others, in one commit (spec: Row-level Deletes)."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.commit.base import CommitBase
from icebergds.commit.file_selection import require_removed, these_files
from icebergds.commit.merging import merged_manifests, require_data_files
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.row_selection import rows_matching
from icebergds.commit.validation import (
    Isolation,
    check_added_data,
    check_files_exist,
    check_new_deletes,
    check_new_vectors,
)
from icebergds.commit.workspace import Workspace
from icebergds.errors import InvalidDataError, UnsupportedFeatureError, ValidationError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.spec.manifest import DataFile, DataFileRef, FileContent, ManifestContent

_NO_ISOLATION = Isolation()


@dataclass(frozen=True, slots=True)
class RowDelta:
    """Adds data files and delete files.

    Deletes by equality apply to older rows alone, deletes by position also to those that the same
    commit adds. Delete files that the new ones replace, such as an older vector of the same data
    file, go in the same commit; that one of them is not there (any more) is an error
    (ValidationError), as are concurrent commits that
    - removed a data file whose rows are deleted by position here,
    - gave one a deletion vector that gets one here,
    - added files of another partition spec than that of equality deletes with a partition,
    - deleted rows of one, where rows are replaced here (lest a deleted row come back), and,
    - if the isolation is serializable, added rows that the filter may match.

    Attributes:
        files: data files.
        deletes: delete files and deletion vectors.
        replaced: delete files and deletion vectors whose deletes are in `deletes` too.
        referenced: the data files of earlier commits that `deletes` delete rows of by position.
        isolation: from which snapshot on, and at which level.
        conflict_filter: what the operation looked at, by names; TRUE for all rows.
    """

    files: tuple[DataFile, ...]
    deletes: tuple[DataFile, ...]
    replaced: tuple[DataFile, ...] = ()
    referenced: tuple[DataFileRef, ...] = ()
    isolation: Isolation = _NO_ISOLATION
    conflict_filter: Expr = TRUE
    case_sensitive: bool = True

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_data_files(base, self.files)
        self._refuse_unfit_deletes(base)
        self._check_reach(base)
        self._check_conflicts(base)
        merged = merged_manifests(
            work,
            base,
            added=(*self.files, *self.deletes),
            removed=these_files(base, self.replaced) if self.replaced else None,
            key="row delta",
        )
        require_removed(base, self.replaced, merged.removed)
        return NewSnapshot(self._operation(), merged.manifests, merged.changes)

    def _operation(self) -> str:
        if not self.deletes:
            return "append"
        return "overwrite" if self.files else "delete"

    def _check_conflicts(self, base: CommitBase) -> None:
        start = self.isolation.from_snapshot_id
        if self.referenced:
            replaces_rows = bool(self.files)
            check_files_exist(base, start, self.referenced, moved=not replaces_rows)
            vectors = [file for file in self.deletes if file.is_deletion_vector]
            older = {file.file_path for file in self.referenced}
            check_new_vectors(base, start, [v for v in vectors if v.referenced_data_file in older])
            if replaces_rows:
                check_new_deletes(base, start, self.referenced, ignore_equality=False)
        rows = rows_matching(base, self.conflict_filter, self.case_sensitive)
        check_added_data(base, self.isolation, rows)

    def _check_reach(self, base: CommitBase) -> None:
        """Deletes of keys in a partition do not reach files of other specs."""
        specs = {f.spec_id for f in self.deletes if f.content is FileContent.EQUALITY_DELETES}
        partitioned = {spec_id for spec_id in specs if not base.spec(spec_id).is_unpartitioned}
        for manifest in base.manifests_of(ManifestContent.DATA) if partitioned else ():
            is_live = manifest.added_files_count or manifest.existing_files_count
            if is_live and partitioned != {manifest.partition_spec_id}:
                raise ValidationError(
                    f"table {base.name} has files of partition spec {manifest.partition_spec_id}, "
                    f"which deletes of keys in partitions of spec {min(partitioned)} do not reach; "
                    "read the table again and repeat the operation"
                )

    def _refuse_unfit_deletes(self, base: CommitBase) -> None:
        version = base.metadata.format_version
        if self.deletes and version < 2:
            raise UnsupportedFeatureError(
                f"table {base.name} has format version 1, which knows no delete files; upgrade it "
                "to version 2 or 3"
            )
        with_vector: set[str | None] = set()
        for file in self.deletes:
            if file.content is FileContent.DATA:
                raise InvalidDataError(
                    f"table {base.name}: {file.file_path} is a data file, expected delete files"
                )
            by_position = file.content is FileContent.POSITION_DELETES
            if by_position and file.is_deletion_vector != (version >= 3):
                # Also where another writer has upgraded the table meanwhile.
                expected = "deletion vectors" if version >= 3 else "position delete files"
                raise ValidationError(
                    f"table {base.name} has format version {version}, which takes {expected}, not "
                    f"{file.file_path}; read the table again and repeat the operation"
                )
            if file.is_deletion_vector and file.referenced_data_file in with_vector:
                raise InvalidDataError(
                    f"table {base.name}: {file.referenced_data_file} gets two deletion vectors in "
                    "one commit; its deletes must meet in one task"
                )
            if file.is_deletion_vector:
                with_vector.add(file.referenced_data_file)
