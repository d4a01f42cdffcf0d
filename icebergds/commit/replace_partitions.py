"""Replaces the partitions of new files: dynamic overwrite."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.commit.base import CommitBase
from icebergds.commit.merging import merged_manifests, require_data_files
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.partition_selection import PartitionSelection, partitions_of
from icebergds.commit.row_selection import RowSelection
from icebergds.commit.validation import Isolation, check_isolation
from icebergds.commit.workspace import Workspace
from icebergds.expr.nodes import TRUE
from icebergds.spec.manifest import DataFile

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

    def _replaced(self, base: CommitBase) -> PartitionSelection | RowSelection:
        specs = {file.spec_id for file in self.files}
        if any(base.spec(spec_id).is_unpartitioned for spec_id in specs):
            return RowSelection(base, TRUE, "all rows")
        return partitions_of(base, self.files)
