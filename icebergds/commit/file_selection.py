"""Selects listed files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from icebergds.commit.base import CommitBase
from icebergds.commit.partition_selection import PartitionSelection, partitions_of
from icebergds.commit.removed_files import RemovedEntries, RemovedFiles
from icebergds.commit.selection import Mask
from icebergds.errors import ValidationError
from icebergds.formats.manifests.packed_entries import PackedEntries
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.spec.manifest import DataFile, FileContent, ManifestFile

FileKey: TypeAlias = tuple[str, int | None]
"""Identity of a file or deletion vector: path and content offset."""


class FilesGoneError(ValidationError):
    """Files to replace are not in the branch (any more), or not as they were read.

    Attributes:
        paths: the paths of these files.
    """

    def __init__(self, message: str, paths: frozenset[str]) -> None:
        super().__init__(message)
        self.paths = paths


@dataclass(frozen=True, slots=True)
class FileSelection:
    """Selects listed files; distinguishes deletion vectors in one Puffin file."""

    keys: frozenset[FileKey]
    partitions: PartitionSelection

    @property
    def stats_ids(self) -> frozenset[int]:
        return frozenset()

    def may_select(self, manifest: ManifestFile) -> bool:
        return self.partitions.may_select(manifest)

    def select(self, columns: EntryColumns) -> Mask:
        # Looks up the entries among the keys: there may be far more keys than entries.
        found = (key in self.keys for key in file_keys(columns))
        return np.fromiter(found, np.bool_, len(columns))


def file_key(file: DataFile) -> FileKey:
    """The identity of a file in a table."""
    return file.file_path, file.content_offset


def file_keys(columns: EntryColumns) -> Iterator[FileKey]:
    """The identities of the files of entries."""
    return zip(columns.file_path.to_pylist(), columns.content_offset.to_pylist(), strict=True)


def these_files(base: CommitBase, files: Sequence[DataFile]) -> FileSelection:
    """Selects `files`, looking for them only in manifests that may have their partitions."""
    return FileSelection(frozenset(map(file_key, files)), partitions_of(base, files))


def require_removed(
    base: CommitBase, files: Sequence[DataFile], removed: Iterable[DataFile]
) -> None:
    """Checks that all files that a commit was to remove have been found, each data file once.

    Invariants (docs/commit-model.md): NoRowTwice and NoRowResurrected, as other files may have the
    rows of a file that is gone.

    Args:
        removed: the files that were found and removed.

    Raises:
        FilesGoneError: one of `files` is not among them; or a data file is listed several times,
            so that more rows were removed than those that were read.
    """
    removed = tuple(removed)
    found = set(map(file_key, removed))
    missing = [file.file_path for file in files if file_key(file) not in found]
    counts = Counter(file.file_path for file in removed if file.content is FileContent.DATA)
    _refuse(base, missing, [file.file_path for file in files if counts[file.file_path] > 1])


def require_each_removed(
    base: CommitBase, files: PackedEntries, removed: Iterable[RemovedFiles]
) -> None:
    """Checks the same for data files whose paths are distinct.

    Args:
        removed: for data files, these are `RemovedEntries` of `files`.

    Errors are those of `require_removed`.
    """
    counts = np.zeros(len(files.columns.path), np.int64)
    for part in removed:
        if isinstance(part, RemovedEntries):
            np.add.at(counts, part.entries.rows, 1)
    found = counts[files.rows]
    missing, copies = (
        files.take(np.flatnonzero(mask)).paths.to_pylist() for mask in (found == 0, found > 1)
    )
    _refuse(base, missing, copies)


def _refuse(base: CommitBase, missing: Sequence[str], copies: Sequence[str]) -> None:
    """Raises FilesGoneError if files to remove were not found, or several times."""
    if missing:
        raise FilesGoneError(
            f"table {base.name}: {len(missing)} of the files to replace are not in branch "
            f"{base.branch!r} (or no longer), such as {missing[0]}; read the table again and "
            "repeat the operation",
            frozenset(missing),
        )
    if copies:
        raise FilesGoneError(
            f"table {base.name}: {len(set(copies))} of the files to replace are listed several "
            f"times in branch {base.branch!r}, such as {min(copies)}, so their rows cannot be "
            "replaced; overwrite them as a whole",
            frozenset(copies),
        )
