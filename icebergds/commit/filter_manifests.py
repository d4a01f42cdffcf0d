"""Takes files out of the manifests of a commit's parent (spec: Manifests, entry status).

Manifests that cannot hold what is removed are not opened, those that do not hold it stay as they
are, and only the others are written anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from icebergds.commit.base import CommitBase
from icebergds.commit.new_manifests import write_entries
from icebergds.commit.selection import Selection, read_columns
from icebergds.commit.workspace import Workspace
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.spec.manifest import DataFile, ManifestEntryStatus, ManifestFile

# Manifests are fetched side by side: stores answer slowly, and decoding lets go of the lock.
_READERS = 8


@dataclass(frozen=True, slots=True)
class FilteredManifests:
    """The parent's manifests without the files that a commit removes.

    Attributes:
        manifests: in their order; those without live files are left out, but for new ones.
        removed: the files, as the manifests describe them.
        replaced: how many manifests were written anew.
    """

    manifests: tuple[ManifestFile, ...]
    removed: tuple[DataFile, ...]
    replaced: int


def filter_manifests(
    work: Workspace,
    base: CommitBase,
    manifests: Sequence[ManifestFile],
    selections: Sequence[Selection],
    key: Hashable,
) -> FilteredManifests:
    """Marks the files of any of the selections as deleted.

    Args:
        key: what the selections depend on: manifests that were filtered under the same key by an
            earlier attempt are not looked at again.

    Raises:
        ValidationError: metadata does not tell of some file whether it is selected.
        MissingFileError, CorruptFileError: of manifests.
    """

    def filtered(manifest: ManifestFile) -> tuple[ManifestFile, Sequence[DataFile]]:
        # Row ids that another commit has assigned meanwhile must not be assigned again.
        source = (manifest.manifest_path, manifest.first_row_id)
        own_key = ("filtered", source, base.metadata.format_version, key)
        return work.once(own_key, lambda: _filter(work, base, manifest, selections))

    live = [m for m in manifests if m.added_files_count or m.existing_files_count]
    near = [m for m in live if any(selection.may_select(m) for selection in selections)]
    if len(near) > 1:
        with ThreadPoolExecutor(_READERS) as pool:
            found = dict(zip(_paths(near), pool.map(filtered, near), strict=True))
    else:
        found = dict(zip(_paths(near), map(filtered, near), strict=True))
    return FilteredManifests(
        tuple(found[m.manifest_path][0] if m.manifest_path in found else m for m in live),
        tuple(file for _, removed in found.values() for file in removed),
        sum(1 for _, removed in found.values() if removed),
    )


def _paths(manifests: Iterable[ManifestFile]) -> list[str]:
    return [manifest.manifest_path for manifest in manifests]


def _filter(
    work: Workspace, base: CommitBase, manifest: ManifestFile, selections: Sequence[Selection]
) -> tuple[ManifestFile, Sequence[DataFile]]:
    selections = [selection for selection in selections if selection.may_select(manifest)]
    stats_ids = frozenset[int]().union(*(selection.stats_ids for selection in selections))
    columns = read_columns(base, manifest, stats_ids)
    gone = np.zeros(len(columns), np.bool_)
    for selection in selections:
        gone |= selection.select(columns)
    if not gone.any():
        return manifest, ()
    metadata = base.metadata
    entries = read_manifest(
        base.io,
        manifest,
        metadata.specs_by_id,
        metadata.schema(),
        history=base.schema_history,
        live_only=True,
    )
    removed = []
    for place, is_gone in enumerate(gone.tolist()):
        entry = entries[place]
        if is_gone:
            removed.append(entry.data_file)
            entries[place] = replace(
                entry, status=ManifestEntryStatus.DELETED, snapshot_id=work.snapshot_id
            )
        else:
            entries[place] = replace(entry, status=ManifestEntryStatus.EXISTING)
    written = write_entries(work, base, entries, manifest.partition_spec_id, manifest.content)
    return written, removed
