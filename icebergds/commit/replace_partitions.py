"""Replaces the partitions of new files: dynamic overwrite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from icebergds.commit.base import CommitBase
from icebergds.commit.merging import merged_manifests, require_data_files
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.partition_selection import PartitionSelection, partitions_of
from icebergds.commit.row_selection import RowSelection
from icebergds.commit.selection import Mask
from icebergds.commit.validation import Isolation, check_isolation
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.expr.nodes import TRUE
from icebergds.formats.manifests.contradicted import contradicted
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.spec.manifest import DataFile, FileContent, ManifestFile
from icebergds.spec.partition import identity_columns

_NO_ISOLATION = Isolation()


@dataclass(frozen=True, slots=True)
class ReplacePartitions:
    """Adds data files and removes all earlier ones of the same partitions.

    Partitions belong to each file's own spec. An unpartitioned file replaces the whole table; no
    files replace nothing.

    Attributes:
        isolation: which concurrent commits to the replaced partitions fail validation.
    """

    files: tuple[DataFile, ...]
    isolation: Isolation = _NO_ISOLATION

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        require_data_files(base, self.files)
        replaced = self._replaced(base)
        check_isolation(base, self.isolation, replaced)
        merged = merged_manifests(work, base, added=self.files, removed=replaced, key="partitions")
        changes = {**merged.changes, "replace-partitions": "true"}
        return NewSnapshot("overwrite", merged.manifests, changes)

    def _replaced(self, base: CommitBase) -> _ReplacedPartitions | RowSelection:
        specs = {file.spec_id for file in self.files}
        if any(base.spec(spec_id).is_unpartitioned for spec_id in specs):
            return RowSelection(base, TRUE, "all rows")
        return _ReplacedPartitions(base, partitions_of(base, self.files))


@dataclass(frozen=True, slots=True)
class _ReplacedPartitions:
    """Selects the files of some partitions, unless that removes rows of other ones."""

    base: CommitBase
    partitions: PartitionSelection

    @property
    def stats_ids(self) -> frozenset[int]:
        return identity_columns(self.base.metadata.specs_by_id)

    def may_select(self, manifest: ManifestFile) -> bool:
        return self.partitions.may_select(manifest)

    def select(self, columns: EntryColumns) -> Mask:
        """Marks the files of the partitions.

        Raises:
            ValidationError: the partition columns of a data file have other values than its
                partition.
        """
        mask = self.partitions.select(columns)
        odd = mask & (columns.content == FileContent.DATA.value)
        if odd.any():
            odd &= contradicted(columns, self.base.spec(columns.spec_id))
        if odd.any():
            path = columns.file_path[int(np.flatnonzero(odd)[0])].as_py()
            raise ValidationError(
                f"table {self.base.name}: {path} stores other values in partition columns than its "
                "partition, which the write replaces, so that rows of other partitions would be "
                "lost; nothing was written. Delete or update these rows first, or overwrite by a "
                "filter"
            )
        return mask

    def overlap(self, columns: EntryColumns) -> Mask:
        return self.partitions.overlap(columns)
