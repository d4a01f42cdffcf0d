"""Replaces data files with others that hold the same rows, although others delete some meanwhile.

Deletes by key that are newer than the rows apply to the new files too, since these keep the
sequence number. Deletes by position must be moved: the error that finds them has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icebergds.commit.base import CommitBase, require_branch
from icebergds.commit.file_selection import (
    FileKey,
    FilesGoneError,
    file_key,
    require_removed,
    these_files,
)
from icebergds.commit.merging import merged_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.selection import Mask, read_columns
from icebergds.commit.validation import history_since
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from icebergds.spec.partition_keys import PartitionKey, partition_of
from icebergds.spec.reserved import DELETE_FILE_PATH

_PATH_IDS = frozenset({DELETE_FILE_PATH.field_id})


class NewDeletesError(ValidationError):
    """Rows of data files that are being replaced were deleted by position meanwhile.

    Attributes:
        deletes: all position deletes that may apply to such a data file now, by its path.
        snapshot_id: the snapshot that has them.
    """

    def __init__(
        self, message: str, deletes: Mapping[str, tuple[DataFile, ...]], snapshot_id: int
    ) -> None:
        super().__init__(message)
        self.deletes = deletes
        self.snapshot_id = snapshot_id


class BranchMovedError(ValidationError):
    """The snapshot that was read is not known to be in the branch's history any more.

    After a rollback, deletes that the new files have regard to may not be in the branch. The error
    also says that the table was upgraded, to a version that does not allow the moved deletes.
    """


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

    The commit fails with a FilesGoneError if a data file to replace is no longer in the branch as
    it was read, with a NewDeletesError if others have deleted rows of one by position, and with a
    BranchMovedError if the branch was rolled back.

    Attributes:
        replaced: entries of the data files to replace, as they were read.
        added: data files with their rows.
        moved: delete files for `added`, with the deletes of a NewDeletesError.
        least_rows: how many rows `added` has at least, as far as the deletes tell.
        applied: the deletes that `added` and `moved` have regard to.
        snapshot_id: the newest snapshot whose deletes `applied` has, which must not be rolled back.
        sequence_number: of the snapshot that was read.
        keeps_sequence_number: whether the new files have it too. If not, deletes by key that came
            meanwhile are a ValidationError.
    """

    replaced: tuple[ManifestEntry, ...]
    added: tuple[DataFile, ...]
    moved: tuple[DataFile, ...]
    least_rows: int
    applied: AppliedDeletes
    snapshot_id: int
    sequence_number: int
    keeps_sequence_number: bool = True

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_branch(base)
        self._refuse_other_rows(base)
        try:
            history_since(base, self.snapshot_id)
        except ValidationError as error:
            raise BranchMovedError(str(error)) from None
        self._refuse_position_delete_files(base)
        self._check_deletes(base)
        merged = merged_manifests(
            work,
            base,
            added=(*self.added, *self.moved),
            removed=_Replaced(base, self.replaced),
            key="compact",
            data_sequence_number=self.sequence_number if self.keeps_sequence_number else None,
        )
        require_removed(base, [entry.data_file for entry in self.replaced], merged.removed)
        return NewSnapshot("replace", merged.manifests, merged.changes)

    def _check_deletes(self, base: CommitBase) -> None:
        deletes = list(self._unknown_deletes(base))
        if not deletes:
            return
        targets = _Targets(self.replaced)
        found: dict[str, list[DataFile]] = {}
        for delete in deletes:
            file = delete.data_file
            if file.content is FileContent.EQUALITY_DELETES:
                entries = self._not_followed(base, delete, targets)
            else:
                entries = targets.of(file)
            for entry in entries:
                if entry.data_sequence_number <= delete.data_sequence_number:
                    found.setdefault(entry.data_file.file_path, []).append(file)
        if not found:
            return
        assert base.parent is not None, "a snapshot has the deletes"
        raise NewDeletesError(
            f"table {base.name}: rows of {len(found)} of the files that this operation replaces "
            f"were deleted meanwhile, such as of {next(iter(found))}; repeat the operation",
            {path: tuple(deletes) for path, deletes in found.items()},
            base.parent.snapshot_id,
        )

    def _unknown_deletes(self, base: CommitBase) -> Iterator[ManifestEntry]:
        """Delete files that are newer than the snapshot, or take the place of older ones."""
        for manifest in base.manifests_of(ManifestContent.DELETES):
            if manifest.manifest_path in self.applied.manifests:
                continue
            for entry in read_columns(base, manifest, _PATH_IDS).entries():
                by_key = entry.data_file.content is FileContent.EQUALITY_DELETES
                is_old = by_key and entry.data_sequence_number <= self.sequence_number
                if not is_old and file_key(entry.data_file) not in self.applied.deletes:
                    yield entry

    def _not_followed(
        self, base: CommitBase, delete: ManifestEntry, targets: _Targets
    ) -> list[ManifestEntry]:
        """Replaced files whose rows a newer delete by key treats otherwise in the new files."""
        spec_id = delete.data_file.spec_id
        is_global = base.spec(spec_id).is_unpartitioned
        entries = self.replaced if is_global else targets.of(delete.data_file)
        if entries and not self.keeps_sequence_number:
            raise ValidationError(
                f"table {base.name}: {delete.data_file.file_path} deletes rows of files that this "
                "operation replaces; repeat it, with the option 'use-starting-sequence-number' = "
                "'true'"
            )
        if is_global or not self.keeps_sequence_number:
            return []
        # Deletes of a partition apply to files of its own spec only.
        new_specs = {file.spec_id for file in self.added}
        found = [entry for entry in entries if new_specs - {entry.data_file.spec_id}]
        if partition_of(delete.data_file) in set(map(partition_of, self.added)):
            found += [entry for entry in self.replaced if entry.data_file.spec_id != spec_id]
        return found

    def _refuse_other_rows(self, base: CommitBase) -> None:
        most = sum(entry.data_file.record_count for entry in self.replaced)
        rows = sum(file.record_count for file in self.added)
        if not self.least_rows <= rows <= most:
            raise ValidationError(
                f"table {base.name}: files with {rows} rows cannot replace files with {most}, of "
                f"which at least {self.least_rows} are not deleted; replacements must hold the "
                "same rows"
            )

    def _refuse_position_delete_files(self, base: CommitBase) -> None:
        version = base.metadata.format_version
        if version >= 3 and not all(file.is_deletion_vector for file in self.moved):
            raise BranchMovedError(
                f"table {base.name} was upgraded to format version {version}, which requires "
                "deletion vectors instead of position delete files; repeat the operation"
            )


class _Replaced:
    """Selects the files to replace; raises FilesGoneError if one is not as it was read."""

    def __init__(self, base: CommitBase, entries: Sequence[ManifestEntry]) -> None:
        self._base = base
        self._files = these_files(base, [entry.data_file for entry in entries])
        self._known = {entry.data_file.file_path: _numbers(entry) for entry in entries}

    @property
    def stats_ids(self) -> frozenset[int]:
        return self._files.stats_ids

    def may_select(self, manifest: ManifestFile) -> bool:
        return self._files.may_select(manifest)

    def select(self, columns: EntryColumns) -> Mask:
        mask = self._files.select(columns)
        found = columns.take(np.flatnonzero(mask))
        paths, row_ids = found.file_path.to_pylist(), found.first_row_id.to_pylist()
        numbers = zip(found.data_sequence_number.tolist(), row_ids, strict=True)
        now = zip(paths, numbers, strict=True)
        changed = frozenset(path for path, known in now if self._known[path] != known)
        if changed:
            # Other deletes apply to a file that was added again. After an upgrade, other commits
            # give ids to rows that had none when they were read.
            raise FilesGoneError(
                f"table {self._base.name}: since they were read, {len(changed)} of the files to "
                f"replace were added again, or their rows got ids, such as {min(changed)}; read "
                "the table again and repeat the operation",
                changed,
            )
        return mask


def _numbers(entry: ManifestEntry) -> tuple[int, int | None]:
    return entry.data_sequence_number, entry.data_file.first_row_id


class _Targets:
    """The replaced data files that a delete file may apply to."""

    def __init__(self, entries: Sequence[ManifestEntry]) -> None:
        self._by_path = {entry.data_file.file_path: entry for entry in entries}
        self._by_partition: dict[PartitionKey, list[ManifestEntry]] = {}
        for entry in entries:
            self._by_partition.setdefault(partition_of(entry.data_file), []).append(entry)

    def of(self, delete: DataFile) -> list[ManifestEntry]:
        """Those of its data file, if it tells which, or else of its partition."""
        path = None
        if delete.content is FileContent.POSITION_DELETES:
            path = only_data_path(delete)
        if path is None:
            return self._by_partition.get(partition_of(delete), [])
        return [self._by_path[path]] if path in self._by_path else []
