"""Merges the manifests of a branch in a commit of its own, which changes no file of the table."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.commit.base import CommitBase
from icebergds.commit.merge_manifests import can_merge, merge_manifests
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.workspace import Workspace
from icebergds.errors import ValidationError
from icebergds.spec.manifest import ManifestContent


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
