"""Removes delete files that change no row of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from icebergds.commit.base import CommitBase, require_branch
from icebergds.commit.column_manifests import write_columns
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.options import NothingToCommitError
from icebergds.commit.selection import Mask, read_columns
from icebergds.commit.summary import changes_summary
from icebergds.commit.workspace import Workspace
from icebergds.formats.manifests.side_by_side import manifest_readers
from icebergds.spec.manifest import ManifestEntryStatus, ManifestFile


@dataclass(frozen=True, slots=True)
class RemoveDeleteFiles:
    """Removes the delete files that a function finds in the table, at each attempt.

    Each attempt looks again, because concurrent commits may add data files with old sequence
    numbers, to which the deletes apply.

    Attributes:
        find: marks them among the live entries of each delete manifest, by the manifest's path.
    """

    find: Callable[[CommitBase], Mapping[str, Mask]]

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Writes the manifests without the delete files.

        Raises:
            NothingToCommitError: no delete file is found.
        """
        require_branch(base)
        found = {path: mask for path, mask in self.find(base).items() if mask.any()}
        if not found:
            raise NothingToCommitError(base.state)
        affected = [m for m in base.manifests if m.manifest_path in found]
        with ThreadPoolExecutor(manifest_readers(base.io, affected)) as pool:
            written = pool.map(lambda m: _without(work, base, m, found[m.manifest_path]), affected)
            by_path = dict(zip((m.manifest_path for m in affected), written, strict=True))
        manifests = [
            by_path.get(manifest.manifest_path, manifest)
            for manifest in base.manifests
            if manifest.added_files_count or manifest.existing_files_count
        ]
        removed = (
            entry.data_file
            for manifest in affected
            for entry in read_columns(base, manifest, ())
            .filter(found[manifest.manifest_path])
            .entries()
        )
        return NewSnapshot("replace", manifests, changes_summary(base, (), removed))


def _without(work: Workspace, base: CommitBase, manifest: ManifestFile, mask: Mask) -> ManifestFile:
    key = ("without", manifest.manifest_path, base.metadata.format_version, mask.tobytes())

    def write() -> ManifestFile:
        columns = read_columns(base, manifest, None)
        deleted, existing = ManifestEntryStatus.DELETED.value, ManifestEntryStatus.EXISTING.value
        changed = replace(
            columns,
            status=np.where(mask, deleted, existing),
            snapshot_id=np.where(mask, work.snapshot_id, columns.snapshot_id),
        )
        return write_columns(work, base, manifest, changed)

    return work.once(key, write)
