"""Replaces files with others that hold the same rows: compaction and delete rewriting."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.commit.base import CommitBase
from icebergds.commit.file_selection import require_removed, these_files
from icebergds.commit.merging import merged_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.validation import check_new_deletes
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.spec.manifest import DataFile, FileContent


@dataclass(frozen=True, slots=True)
class ReplaceFiles:
    """Removes files and adds others that hold the same rows.

    The commit fails with a ValidationError if a file to remove is no longer in the branch, or if
    others have committed position deletes or deletion vectors for removed data files since they
    were read, or equality deletes when no `data_sequence_number` is given. Deletion vectors of
    removed data files are removed too.

    Attributes:
        removed: data files and delete files, as manifests describe them.
        from_snapshot_id: the snapshot that the removed files were read from.
        data_sequence_number: for the added files: the sequence number of that snapshot, so that
            newer equality deletes still apply to them. None assigns the new snapshot's number.
    """

    removed: tuple[DataFile, ...]
    added: tuple[DataFile, ...]
    from_snapshot_id: int
    data_sequence_number: int | None = None

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        self._refuse_more_rows(base)
        replaced = [file for file in self.removed if file.content is FileContent.DATA]
        check_new_deletes(
            base,
            self.from_snapshot_id,
            replaced,
            ignore_equality=self.data_sequence_number is not None,
        )
        merged = merged_manifests(
            work,
            base,
            added=self.added,
            removed=these_files(base, self.removed),
            key="files",
            data_sequence_number=self.data_sequence_number,
        )
        require_removed(base, self.removed, merged.removed)
        return NewSnapshot("replace", merged.manifests, merged.changes)

    def _refuse_more_rows(self, base: CommitBase) -> None:
        before, after = _rows(self.removed), _rows(self.added)
        if after > before:
            raise ValidationError(
                f"table {base.name}: files with {after} rows cannot replace files with {before}; "
                "replacements must hold the same rows"
            )


def _rows(files: tuple[DataFile, ...]) -> int:
    return sum(file.record_count for file in files if file.content is FileContent.DATA)
