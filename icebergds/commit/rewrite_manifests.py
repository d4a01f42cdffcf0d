"""Rewrites the manifests of a branch in a commit of its own, which changes no file of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from icebergds.commit.base import CommitBase, require_branch
from icebergds.commit.cluster_manifests import ClusteredManifests, cluster_manifests
from icebergds.commit.merge_manifests import can_merge, merge_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.options import NothingToCommitError
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.spec.manifest import ManifestContent, ManifestFile
from icebergds.spec.table_properties import MANIFEST_TARGET_SIZE_BYTES

_ManifestKey: TypeAlias = tuple[str, int | None]
"""A manifest and the first row id of its entries, which a later commit may have assigned."""


@dataclass(frozen=True, slots=True)
class MergeManifests:
    """Merges small manifests as the properties `commit.manifest.*` say, for fast appends."""

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Writes the merged manifests.

        Raises:
            ValidationError: there is nothing to merge, as another commit has done it.
        """
        kinds = [base.manifests_of(content) for content in ManifestContent]
        if not any(can_merge(base.metadata.properties, manifests) for manifests in kinds):
            raise ValidationError(f"table {base.name} has no manifests to merge")
        merged = [one for manifests in kinds for one in merge_manifests(work, base, manifests)]
        return NewSnapshot("replace", merged, {})


@dataclass(frozen=True, slots=True)
class RewriteManifests:
    """Rewrites all manifests of a partition spec, with their entries clustered by partition.

    Manifests that other commits have added since the first attempt stay as they are. If one of
    the rewritten manifests is gone, those of the table are rewritten again.

    Attributes:
        leading: ids of the partition fields to cluster by first.
        drop_removed: rewrite manifests that list removed files, with the bounds of their columns,
            even if there is only one.
    """

    spec_id: int
    leading: tuple[int, ...] = ()
    drop_removed: bool = False

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Writes the new manifests.

        Raises:
            NothingToCommitError: there is at most one manifest of each content type, and it is
                below the target size or cannot be split.
        """
        require_branch(base)
        kinds = (self._rewritten(work, base, content) for content in ManifestContent)
        rewritten = [found for found in kinds if found is not None]
        leaves_out = self.drop_removed and not all(map(_is_live, base.manifests))
        if not rewritten and not leaves_out:
            raise NothingToCommitError(base.state)
        sources = frozenset[_ManifestKey]().union(*(one.sources for one in rewritten))
        manifests = [
            *(manifest for one in rewritten for manifest in one.clustered.manifests),
            *(m for m in base.manifests if _is_live(m) and _key(m) not in sources),
        ]
        entries = sum(one.clustered.entries for one in rewritten)
        return NewSnapshot("replace", manifests, {"entries-processed": str(entries)})

    def _rewritten(
        self, work: Workspace, base: CommitBase, content: ManifestContent
    ) -> _Rewritten | None:
        version = base.metadata.format_version
        done = work.once(("rewritten", content, version), list[_Rewritten])
        present = {_key(manifest) for manifest in base.manifests}
        for earlier in done:
            if earlier.sources <= present:
                return earlier
        manifests = [
            manifest
            for manifest in base.manifests_of(content)
            if manifest.partition_spec_id == self.spec_id and _is_live(manifest)
        ]
        drops = self.drop_removed and any(m.deleted_files_count != 0 for m in manifests)
        if _is_small(base, manifests) and not drops:
            return None
        clustered = cluster_manifests(work, base, manifests, self.leading)
        if len(manifests) == len(clustered.manifests) == 1 and not manifests[0].deleted_files_count:
            # It is above the target size only by its header.
            return None
        done.append(_Rewritten(frozenset(map(_key, manifests)), clustered))
        return done[-1]


@dataclass(frozen=True, slots=True)
class _Rewritten:
    """Manifests of one kind of content, and what replaces them."""

    sources: frozenset[_ManifestKey]
    clustered: ClusteredManifests


def _key(manifest: ManifestFile) -> _ManifestKey:
    return manifest.manifest_path, manifest.first_row_id


def _is_live(manifest: ManifestFile) -> bool:
    return bool(manifest.added_files_count or manifest.existing_files_count)


def _is_small(base: CommitBase, manifests: Sequence[ManifestFile]) -> bool:
    """Whether there is at most one manifest, and rewriting would leave one."""
    target = MANIFEST_TARGET_SIZE_BYTES.of(base.metadata.properties)
    return len(manifests) < 2 and all(m.manifest_length <= target for m in manifests)
