"""Replaces data files with others that hold the same rows, although others delete some meanwhile.

Deletes by key that are newer than the rows apply to the new files too, since these keep the
sequence number. Deletes by position must be moved: the error that finds them has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.commit.base import CommitBase
from icebergds.commit.file_selection import FileKey, file_key, require_removed, these_files
from icebergds.commit.merging import merged_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.selection import read_columns
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
)
from icebergds.spec.partition_keys import PartitionKey, partition_of
from icebergds.spec.reserved import DELETE_FILE_PATH

_PATH_IDS = frozenset({DELETE_FILE_PATH.field_id})


class NewDeletesError(ValidationError):
    """Rows of data files that are being replaced were deleted by position meanwhile.

    Attributes:
        deletes: all position deletes that may apply to such a data file now, by its path.
    """

    def __init__(self, message: str, deletes: Mapping[str, tuple[DataFile, ...]]) -> None:
        super().__init__(message)
        self.deletes = deletes


@dataclass(frozen=True, slots=True)
class AppliedDeletes:
    """The deletes that the replaced data files were read with.

    Attributes:
        manifests: paths of all delete manifests of the snapshot that was read.
        deletes: position delete files and deletion vectors that are known since then.
    """

    manifests: frozenset[str]
    deletes: frozenset[FileKey]

    def with_deletes(self, deletes: Mapping[str, tuple[DataFile, ...]]) -> AppliedDeletes:
        """With more known deletes."""
        more = {file_key(file) for files in deletes.values() for file in files}
        return AppliedDeletes(self.manifests, self.deletes | more)


@dataclass(frozen=True, slots=True)
class CompactFiles:
    """Removes data files and adds others with the same rows.

    The commit fails with a FilesGoneError if a data file to replace is no longer in the branch,
    and with a NewDeletesError if others have deleted rows of one by position.

    Attributes:
        replaced: entries of the data files to replace, as they were read.
        added: data files with their rows.
        moved: delete files for `added`, with the deletes of a NewDeletesError.
        applied: the deletes that `added` and `moved` have regard to.
        sequence_number: of the snapshot that was read.
        keeps_sequence_number: whether the new files have it too. If not, deletes by key that came
            meanwhile are a ValidationError.
    """

    replaced: tuple[ManifestEntry, ...]
    added: tuple[DataFile, ...]
    moved: tuple[DataFile, ...]
    applied: AppliedDeletes
    sequence_number: int
    keeps_sequence_number: bool = True

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        self._refuse_more_rows(base)
        self._check_deletes(base)
        removed = [entry.data_file for entry in self.replaced]
        merged = merged_manifests(
            work,
            base,
            added=(*self.added, *self.moved),
            removed=these_files(base, removed),
            key="compact",
            data_sequence_number=self.sequence_number if self.keeps_sequence_number else None,
        )
        require_removed(base, removed, merged.removed)
        return NewSnapshot("replace", merged.manifests, merged.changes)

    def _check_deletes(self, base: CommitBase) -> None:
        by_path = {entry.data_file.file_path: entry for entry in self.replaced}
        by_partition: dict[PartitionKey, list[ManifestEntry]] = {}
        for entry in self.replaced:
            by_partition.setdefault(partition_of(entry.data_file), []).append(entry)
        found: dict[str, list[DataFile]] = {}
        for delete in self._unknown_deletes(base):
            path = only_data_path(delete.data_file)
            if path is None:
                targets = by_partition.get(partition_of(delete.data_file), [])
            else:
                targets = [by_path[path]] if path in by_path else []
            for entry in targets:
                if entry.data_sequence_number <= delete.data_sequence_number:
                    found.setdefault(entry.data_file.file_path, []).append(delete.data_file)
        if found:
            raise NewDeletesError(
                f"table {base.name}: rows of {len(found)} of the files that this operation "
                f"replaces were deleted meanwhile, such as of {next(iter(found))}; repeat the "
                "operation",
                {path: tuple(deletes) for path, deletes in found.items()},
            )

    def _unknown_deletes(self, base: CommitBase) -> list[ManifestEntry]:
        """Position deletes that are not known, in manifests that are not known."""
        unknown = []
        for manifest in base.manifests_of(ManifestContent.DELETES):
            if manifest.manifest_path in self.applied.manifests:
                continue
            for entry in read_columns(base, manifest, _PATH_IDS).entries():
                if entry.data_file.content is FileContent.EQUALITY_DELETES:
                    self._check_keys(base, entry)
                elif file_key(entry.data_file) not in self.applied.deletes:
                    unknown.append(entry)
        return unknown

    def _check_keys(self, base: CommitBase, delete: ManifestEntry) -> None:
        """Refuses newer deletes by key, if the new files do not keep the sequence number."""
        if self.keeps_sequence_number or delete.data_sequence_number <= self.sequence_number:
            return
        is_global = base.spec(delete.data_file.spec_id).is_unpartitioned
        for entry in self.replaced:
            if is_global or partition_of(entry.data_file) == partition_of(delete.data_file):
                raise ValidationError(
                    f"table {base.name}: {delete.data_file.file_path} deletes rows of files that "
                    "this operation replaces; repeat it, with the option "
                    "'use-starting-sequence-number' = 'true'"
                )

    def _refuse_more_rows(self, base: CommitBase) -> None:
        before = sum(entry.data_file.record_count for entry in self.replaced)
        after = sum(file.record_count for file in self.added)
        if after > before:
            raise ValidationError(
                f"table {base.name}: files with {after} rows cannot replace files with {before}; "
                "replacements must hold the same rows"
            )
