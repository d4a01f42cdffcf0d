"""Replaces data files with others that hold the same rows, even if some are deleted meanwhile.

Newer equality deletes apply to the new files too, since these keep the sequence number. Position
deletes must be moved: the error that reports them holds them. Otherwise deleted rows come back: the
invariant NoRowResurrected of docs/commit-model.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebergds.commit.base import CommitBase, require_branch
from icebergds.commit.deletes_by_file import DeleteCollector, DeletesByFile
from icebergds.commit.file_selection import (
    FileKey,
    FilesGoneError,
    file_key,
    require_each_removed,
)
from icebergds.commit.merging import merged_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.partition_selection import partitions_of
from icebergds.commit.removed_files import RemovedEntries, RemovedFiles
from icebergds.commit.selection import Mask, read_columns
from icebergds.commit.validation import history_since
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.manifests.packed_entries import Int64s, PackedEntries, PathIndex
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    partition_of,
)
from icebergds.spec.reserved import DELETE_FILE_PATH

_PATH_IDS = frozenset({DELETE_FILE_PATH.field_id})
_NONE = np.empty(0, np.int64)


class NewDeletesError(ValidationError):
    """Rows of data files that are being replaced were deleted by position meanwhile.

    Attributes:
        deletes: all position deletes that may apply to such data files now.
        snapshot_id: the snapshot that has them.
    """

    def __init__(self, message: str, deletes: DeletesByFile, snapshot_id: int) -> None:
        super().__init__(message)
        self.deletes = deletes
        self.snapshot_id = snapshot_id


class BranchMovedError(ValidationError):
    """The snapshot that was read is not known to be in the branch's history any more.

    After a rollback, the branch may lack deletes that the new files already account for. The error
    is also raised if the table was upgraded to a version that does not allow the moved deletes.
    """


@dataclass(frozen=True, slots=True)
class AppliedDeletes:
    """The deletes that the replaced data files were read with.

    Attributes:
        manifests: paths of all delete manifests of the snapshot that was read.
        deletes: position delete files and deletion vectors that were found since then.
    """

    manifests: frozenset[str]
    deletes: frozenset[FileKey]

    def with_deletes(self, deletes: DeletesByFile) -> AppliedDeletes:
        """A copy with more known deletes."""
        more = {file_key(file) for files in deletes.deletes for file in files}
        return AppliedDeletes(self.manifests, self.deletes | more)


@dataclass(frozen=True, slots=True)
class CompactFiles:
    """Removes data files and adds others with the same rows.

    The commit fails with a FilesGoneError if a data file to replace is no longer in the branch as
    it was read, with a NewDeletesError if others have deleted rows of one by position, and with a
    BranchMovedError if the branch was rolled back.

    Attributes:
        replaced: the data files to replace, as they were read; none is listed twice.
        added: data files with their rows.
        moved: delete files for `added`, with the deletes of a NewDeletesError.
        least_rows: how many rows `added` must have at least, judging by the deletes.
        applied: the deletes that `added` and `moved` account for.
        snapshot_id: the newest snapshot whose deletes `applied` has, which must not be rolled back.
        sequence_number: the number of the snapshot that was read.
        keeps_sequence_number: whether the new files have it too. If not, concurrent equality
            deletes are a ValidationError.
    """

    replaced: PackedEntries
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
        index = self.replaced.index()
        self._check_deletes(base, index)
        replaced = _Replaced(base, self.replaced, index)
        merged = merged_manifests(
            work,
            base,
            added=(*self.added, *self.moved),
            removed=replaced,
            key="compact",
            data_sequence_number=self.sequence_number if self.keeps_sequence_number else None,
            removed_data=replaced.removed,
        )
        require_each_removed(base, self.replaced, merged.removed_of)
        return NewSnapshot("replace", merged.manifests, merged.changes)

    def _check_deletes(self, base: CommitBase, index: PathIndex) -> None:
        deletes = list(self._unknown_deletes(base))
        if not deletes:
            return
        targets = _Targets(self.replaced, index)
        collector = DeleteCollector(len(self.replaced), tuple.__add__)
        numbers = self.replaced.data_sequence_number
        for delete in deletes:
            file = delete.data_file
            if file.content is FileContent.EQUALITY_DELETES:
                rows = self._not_followed(base, delete, targets)
            else:
                rows = targets.of(file)
            rows = rows[numbers[rows] <= delete.data_sequence_number]
            collector.add(rows, np.zeros(len(rows), np.int32), ((file,),))
        found = collector.collected(self.replaced)
        if not len(found):
            return
        assert base.parent is not None, "a snapshot has the deletes"
        raise NewDeletesError(
            f"table {base.name}: rows of {len(found)} of the files that this operation replaces "
            f"were deleted meanwhile, such as of {found.files.paths[0]}; repeat the operation",
            found,
            base.parent.snapshot_id,
        )

    def _unknown_deletes(self, base: CommitBase) -> Iterator[ManifestEntry]:
        """Delete files that are newer than the snapshot, or replace older ones."""
        for manifest in base.manifests_of(ManifestContent.DELETES):
            if manifest.manifest_path in self.applied.manifests:
                continue
            for entry in read_columns(base, manifest, _PATH_IDS).entries():
                by_key = entry.data_file.content is FileContent.EQUALITY_DELETES
                is_old = by_key and entry.data_sequence_number <= self.sequence_number
                if not is_old and file_key(entry.data_file) not in self.applied.deletes:
                    yield entry

    def _not_followed(self, base: CommitBase, delete: ManifestEntry, targets: _Targets) -> Int64s:
        """Replaced files that a newer equality delete affects differently than the new files."""
        spec_id = delete.data_file.spec_id
        is_global = base.spec(spec_id).is_unpartitioned
        rows = np.arange(len(self.replaced)) if is_global else targets.of(delete.data_file)
        if len(rows) and not self.keeps_sequence_number:
            raise ValidationError(
                f"table {base.name}: {delete.data_file.file_path} deletes rows of files that this "
                "operation replaces; repeat it, with the option 'use-starting-sequence-number' = "
                "'true'"
            )
        if is_global or not self.keeps_sequence_number:
            return _NONE
        # Partitioned deletes apply only to files of their own spec.
        new_specs = {file.spec_id for file in self.added}
        found = [rows if new_specs - {spec_id} else _NONE]
        if partition_of(delete.data_file) in set(map(partition_of, self.added)):
            found.append(np.flatnonzero(self.replaced.spec_ids != spec_id))
        return np.concatenate(found)

    def _refuse_other_rows(self, base: CommitBase) -> None:
        most = int(self.replaced.record_count.sum())
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

    def __init__(self, base: CommitBase, entries: PackedEntries, index: PathIndex) -> None:
        self._base, self._entries, self._index = base, entries, index
        self._partitions = partitions_of(base, entries.partitions())

    @property
    def stats_ids(self) -> frozenset[int]:
        return frozenset()

    def may_select(self, manifest: ManifestFile) -> bool:
        is_data = manifest.content is ManifestContent.DATA
        return is_data and self._partitions.may_select(manifest)

    def select(self, columns: EntryColumns) -> Mask:
        rows = self._index.find(columns.file_path)
        mask: Mask = rows >= 0
        known, now = self._entries.take(rows[mask]), columns.filter(mask)
        is_same = known.data_sequence_number == now.data_sequence_number
        is_same &= _row_ids(known.first_row_id) == _row_ids(now.first_row_id)
        if not is_same.all():
            # A file that was added again has other deletes. After an upgrade, other commits assign
            # row ids to rows that had none when they were read.
            changed = frozenset(now.filter(~is_same).file_path.to_pylist())
            raise FilesGoneError(
                f"table {self._base.name}: since they were read, {len(changed)} of the files to "
                f"replace were added again, or their rows got ids, such as {min(changed)}; read "
                "the table again and repeat the operation",
                changed,
            )
        return mask

    def removed(self, columns: EntryColumns, is_removed: Mask) -> RemovedFiles:
        """The files that were selected, as they were read."""
        rows = self._index.find(columns.file_path)
        return RemovedEntries(self._entries.take(rows[is_removed]))


def _row_ids(first_row_ids: pa.Int64Array) -> Int64s:
    """The row ids, which are never negative; -1 for none."""
    ids: Int64s = first_row_ids.fill_null(-1).to_numpy()
    return ids


class _Targets:
    """The numbers of the replaced data files that a delete file may apply to."""

    def __init__(self, entries: PackedEntries, index: PathIndex) -> None:
        self._index = index
        self._partitions = entries.by_partition()

    def of(self, delete: DataFile) -> Int64s:
        """The number of its data file, if it names one; otherwise those of its partition."""
        path = None
        if delete.content is FileContent.POSITION_DELETES:
            path = only_data_path(delete)
        if path is None:
            return self._partitions.get(partition_of(delete), _NONE)
        rows = self._index.find(pa.array([path], pa.string()))
        return rows[rows >= 0]
