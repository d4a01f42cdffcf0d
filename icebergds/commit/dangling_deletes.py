"""Selects dangling deletes: delete files that no longer apply to any data file."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from icebergds.commit.base import CommitBase
from icebergds.commit.partition_selection import PartitionSelection, partitions_of
from icebergds.commit.removed_files import RemovedFiles, index_of
from icebergds.commit.selection import Mask
from icebergds.formats.manifests.packed_entries import PathIndex
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.spec.manifest import FileFormat, ManifestFile


@dataclass(frozen=True, slots=True)
class DanglingDeletes:
    """Delete files older than all data files, and deletion vectors of removed data files.

    Attributes:
        oldest_data: the lowest data sequence number of the remaining data files.
        removed: the data files that the commit removes, if the table has deletion vectors.
        removed_paths: finds them.
        partitions: the partitions of those files.
    """

    oldest_data: int
    removed: tuple[RemovedFiles, ...]
    removed_paths: PathIndex
    partitions: PartitionSelection

    @property
    def stats_ids(self) -> frozenset[int]:
        return frozenset()

    def may_select(self, manifest: ManifestFile) -> bool:
        if manifest.min_sequence_number < self.oldest_data:
            return True
        return len(self.removed_paths) > 0 and self.partitions.may_select(manifest)

    def select(self, columns: EntryColumns) -> Mask:
        numbers = columns.data_sequence_number
        # Files from version 1 have sequence number 0, which says nothing about their age.
        mask: Mask = (numbers > 0) & (numbers < self.oldest_data)
        if len(self.removed_paths):
            mask |= self._vectors(columns)
        return mask

    def _vectors(self, columns: EntryColumns) -> Mask:
        is_vector = pc.equal(columns.file_format, FileFormat.PUFFIN.value)
        mask: Mask = self.removed_paths.find(columns.referenced_data_file) >= 0
        mask &= is_vector.to_numpy(zero_copy_only=False)
        return mask


def dangling_deletes(
    base: CommitBase, oldest_data: int, removed: tuple[RemovedFiles, ...]
) -> DanglingDeletes:
    """The deletes that dangle once `removed` data files are gone."""
    # Tables have deletion vectors only from version 3.
    removed = removed if base.metadata.format_version >= 3 else ()
    return DanglingDeletes(
        oldest_data,
        removed,
        index_of(removed),
        partitions_of(base, (file for part in removed for file in part)),
    )
