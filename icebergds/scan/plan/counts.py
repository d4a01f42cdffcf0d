"""Counts the manifests and files that planning read, kept and skipped (`PlanCounts`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from icebergds.scan.plan.partition_filters import has_live_files
from icebergds.spec.manifest import ManifestContent, ManifestFile


@dataclass(frozen=True, slots=True)
class ManifestCounts:
    """How many manifests a snapshot lists, and how many of them planning read.

    Attributes:
        by_summaries: skipped by the partition summaries in the manifest list.
        without_files: skipped because all their files are deleted.
    """

    listed: int = 0
    read: int = 0
    by_summaries: int = 0
    without_files: int = 0

    @property
    def skipped(self) -> int:
        """How many manifests were not read."""
        return self.listed - self.read


@dataclass(frozen=True, slots=True)
class FileCounts:
    """How many live data files were kept, and how many were skipped and why.

    Attributes:
        by_summaries: in manifests that were skipped; None if the manifest list does not say.
        by_partition: by their partition values.
        by_metrics: by the counts and bounds of their columns.
        empty: they have no rows.
    """

    kept: int = 0
    by_summaries: int | None = 0
    by_partition: int = 0
    by_metrics: int = 0
    empty: int = 0

    @property
    def skipped(self) -> int:
        """How many files were skipped, as far as known for those in skipped manifests."""
        return (self.by_summaries or 0) + self.by_partition + self.by_metrics + self.empty


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """What planning read and skipped.

    Attributes:
        written_with: the table schemas recorded in the manifests that were read, as JSON; contains
            None if a manifest has none.
    """

    data_manifests: ManifestCounts = ManifestCounts()
    delete_manifests: ManifestCounts = ManifestCounts()
    files: FileCounts = FileCounts()
    written_with: frozenset[bytes | None] = field(default=frozenset(), compare=False, repr=False)


def count_plan(
    listed: Sequence[ManifestFile], read: Sequence[ManifestFile], files: Iterable[FileCounts]
) -> PlanCounts:
    """The counts of a whole plan.

    Args:
        listed: the snapshot's manifests.
        read: those of them that were read.
        files: the counts of each data manifest that was read.
    """
    found = list(files)
    paths = {manifest.manifest_path for manifest in read}
    skipped = [m for m in listed if m.manifest_path not in paths and has_live_files(m)]
    return PlanCounts(
        _manifests(ManifestContent.DATA, listed, read, skipped),
        _manifests(ManifestContent.DELETES, listed, read, skipped),
        FileCounts(
            kept=sum(counts.kept for counts in found),
            by_summaries=_live_files(m for m in skipped if m.content is ManifestContent.DATA),
            by_partition=sum(counts.by_partition for counts in found),
            by_metrics=sum(counts.by_metrics for counts in found),
            empty=sum(counts.empty for counts in found),
        ),
    )


def _manifests(content: ManifestContent, *groups: Collection[ManifestFile]) -> ManifestCounts:
    listed, read, skipped = (sum(m.content is content for m in group) for group in groups)
    return ManifestCounts(listed, read, skipped, listed - read - skipped)


def _live_files(manifests: Iterable[ManifestFile]) -> int | None:
    total = 0
    for manifest in manifests:
        if manifest.added_files_count is None or manifest.existing_files_count is None:
            return None
        total += manifest.added_files_count + manifest.existing_files_count
    return total
