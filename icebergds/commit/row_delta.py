"""Adds data files and delete files in one commit: merge-on-read (spec: Row-level Deletes)."""

from __future__ import annotations

from collections.abc import Hashable
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
    check_row_ids,
)
from icebergds.commit.workspace import Workspace
from icebergds.errors import InvalidDataError, UnsupportedFeatureError, ValidationError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.spec.manifest import DataFile, DataFileRef, FileContent, ManifestContent

_NO_ISOLATION = Isolation()


@dataclass(frozen=True, slots=True)
class RowDelta:
    """Adds data files and delete files.

    Equality deletes apply to older rows only, position deletes also to rows of the same commit.
    Delete files that the new ones replace, such as an older deletion vector of the same data file,
    are removed. The commit fails with a ValidationError if one of them is no longer in the branch,
    or if a concurrent commit
    - removed a data file whose rows this commit deletes by position,
    - added a deletion vector for a data file that gets one here,
    - added files of another partition spec than that of partitioned equality deletes,
    - deleted rows of a data file in which this commit replaces rows (a deleted row could come
      back),
    - gave ids to rows that this commit replaces, after an upgrade to version 3, or,
    - with serializable isolation, added rows that may match the conflict filter.

    Attributes:
        files: data files.
        deletes: delete files and deletion vectors.
        replaced: delete files and deletion vectors whose deletes are also in `deletes`.
        referenced: data files of earlier commits whose rows `deletes` delete by position.
        isolation: the level, and the snapshot that was read.
        conflict_filter: the rows that the operation read, by column name; TRUE for all rows.
        attempt: what `deletes` and `replaced` depend on, if attempts to commit have other ones.
        had_ids: whether the rows of the snapshot that was read have row ids.
    """

    files: tuple[DataFile, ...]
    deletes: tuple[DataFile, ...]
    replaced: tuple[DataFile, ...] = ()
    referenced: tuple[DataFileRef, ...] = ()
    isolation: Isolation = _NO_ISOLATION
    conflict_filter: Expr = TRUE
    case_sensitive: bool = True
    attempt: Hashable = None
    had_ids: bool = True

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_data_files(base, self.files)
        self._check_deletes(base)
        self._check_equality_delete_specs(base)
        self._check_conflicts(base)
        merged = merged_manifests(
            work,
            base,
            added=(*self.files, *self.deletes),
            removed=these_files(base, self.replaced) if self.replaced else None,
            key=("row delta", self.attempt),
            added_key=self.attempt,
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
            check_files_exist(base, start, self.referenced, skip_deletes=not replaces_rows)
            vectors = [file for file in self.deletes if file.is_deletion_vector]
            older = {file.file_path for file in self.referenced}
            check_new_vectors(base, start, [v for v in vectors if v.referenced_data_file in older])
            if replaces_rows:
                check_row_ids(base, had_ids=self.had_ids)
                check_new_deletes(base, start, self.referenced, ignore_equality=False)
        rows = rows_matching(base, self.conflict_filter, self.case_sensitive)
        check_added_data(base, self.isolation, rows)

    def _check_equality_delete_specs(self, base: CommitBase) -> None:
        """Partitioned equality deletes do not apply to data files of other partition specs.

        Invariant (docs/commit-model.md): NoRowResurrected; partition specs are not in the model.
        """
        specs = {f.spec_id for f in self.deletes if f.content is FileContent.EQUALITY_DELETES}
        partitioned = {spec_id for spec_id in specs if not base.spec(spec_id).is_unpartitioned}
        for manifest in base.manifests_of(ManifestContent.DATA) if partitioned else ():
            is_live = manifest.added_files_count or manifest.existing_files_count
            if is_live and partitioned != {manifest.partition_spec_id}:
                raise ValidationError(
                    f"table {base.name} has files of partition spec {manifest.partition_spec_id}, "
                    f"to which equality deletes of spec {min(partitioned)} do not apply; read the "
                    "table again and repeat the operation"
                )

    def _check_deletes(self, base: CommitBase) -> None:
        version = base.metadata.format_version
        if self.deletes and version < 2:
            raise UnsupportedFeatureError(
                f"table {base.name} has format version 1, which does not support delete files; "
                "upgrade it to version 2 or 3"
            )
        with_vector: set[str | None] = set()
        for file in self.deletes:
            if file.content is FileContent.DATA:
                raise InvalidDataError(
                    f"table {base.name}: {file.file_path} is a data file, expected delete files"
                )
            by_position = file.content is FileContent.POSITION_DELETES
            if by_position and file.is_deletion_vector != (version >= 3):
                # Another writer may have upgraded the table since the deletes were written.
                expected = "deletion vectors" if version >= 3 else "position delete files"
                raise ValidationError(
                    f"table {base.name} has format version {version}, which requires {expected}, "
                    f"not {file.file_path}; read the table again and repeat the operation"
                )
            for field_id in file.equality_ids:
                # Another writer may have dropped the column, and an expiry the schemas with it.
                if all(schema.find_field(field_id) is None for schema in base.metadata.schemas):
                    raise ValidationError(
                        f"table {base.name} has no schema with field {field_id}, by which "
                        f"{file.file_path} deletes rows, or no longer; read the table again and "
                        "repeat the operation"
                    )
            if file.is_deletion_vector and file.referenced_data_file in with_vector:
                raise InvalidDataError(
                    f"table {base.name}: {file.referenced_data_file} gets two deletion vectors in "
                    "one commit; one task must write all deletes of a data file"
                )
            if file.is_deletion_vector:
                with_vector.add(file.referenced_data_file)
