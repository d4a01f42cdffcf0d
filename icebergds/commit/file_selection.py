"""Files by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.base import CommitBase
from icebergds.commit.partition_selection import PartitionSelection, partitions_of
from icebergds.commit.selection import Mask
from icebergds.errors import ValidationError
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.spec.manifest import DataFile, ManifestFile

FileKey: TypeAlias = tuple[str, int | None]
"""A file, or one of the deletion vectors in it: path and content offset."""


@dataclass(frozen=True, slots=True)
class FileSelection:
    """The files that are listed, and no others; deletion vectors one by one."""

    keys: frozenset[FileKey]
    partitions: PartitionSelection

    @property
    def stats_ids(self) -> frozenset[int]:
        return frozenset()

    def may_select(self, manifest: ManifestFile) -> bool:
        return self.partitions.may_select(manifest)

    def select(self, columns: EntryColumns) -> Mask:
        paths = pa.array([path for path, _ in self.keys], pa.string())
        mask: Mask = pc.is_in(columns.file_path, paths).to_numpy(zero_copy_only=False).copy()
        near = np.flatnonzero(mask)
        chosen = columns.take(near)
        offsets = chosen.content_offset.to_pylist()
        keys = zip(chosen.file_path.to_pylist(), offsets, strict=True)
        mask[near] = np.fromiter((key in self.keys for key in keys), np.bool_, len(near))
        return mask


def file_key(file: DataFile) -> FileKey:
    """What names a file of a table."""
    return file.file_path, file.content_offset


def these_files(base: CommitBase, files: Sequence[DataFile]) -> FileSelection:
    """The selection of files that are known; they are looked for in their partitions."""
    return FileSelection(frozenset(map(file_key, files)), partitions_of(base, files))


def require_removed(
    base: CommitBase, files: Sequence[DataFile], removed: Iterable[DataFile]
) -> None:
    """Refuses a commit that was to remove files, where some of them are not there to be removed.

    Args:
        removed: the files that were found and removed.

    Raises:
        ValidationError: one of the files is not among them.
    """
    found = set(map(file_key, removed))
    missing = [file.file_path for file in files if file_key(file) not in found]
    if missing:
        raise ValidationError(
            f"table {base.name}: {len(missing)} of the files to replace are not in branch "
            f"{base.branch!r} (any more), the first is {missing[0]}; read the table again and "
            "repeat the operation"
        )
