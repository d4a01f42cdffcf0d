"""Removes files from the parent snapshot's manifests (spec: Manifests, entry status).

Manifests that cannot contain a removed file are not opened, and only those that do contain one are
rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from icebergds.commit.base import CommitBase
from icebergds.commit.column_manifests import write_columns
from icebergds.commit.removed_files import RemovedColumns, RemovedFiles
from icebergds.commit.selection import Mask, Selection, read_columns
from icebergds.commit.workspace import Workspace
from icebergds.formats.manifests.reader import EntryColumns
from icebergds.formats.manifests.side_by_side import manifest_readers
from icebergds.spec.manifest import ManifestEntryStatus, ManifestFile

# Size of the manifests whose entries are decoded, changed and encoded at a time.
_BYTES_AT_A_TIME = 8 << 20
_RemovedFiles: TypeAlias = Callable[[EntryColumns, Mask], RemovedFiles]


@dataclass(frozen=True, slots=True)
class FilteredManifests:
    """The parent's manifests without the files that a commit removes.

    Attributes:
        manifests: in their order, without earlier manifests that have no live files.
        removed: the removed files of each rewritten manifest.
    """

    manifests: tuple[ManifestFile, ...]
    removed: tuple[RemovedFiles, ...]


def filter_manifests(
    work: Workspace,
    base: CommitBase,
    manifests: Sequence[ManifestFile],
    selections: Sequence[Selection],
    key: Hashable,
    removed_files: _RemovedFiles = RemovedColumns.of,
) -> FilteredManifests:
    """Marks the files of any of the selections as deleted.

    Args:
        key: what the selections depend on; a manifest that an earlier attempt filtered under the
            same key is reused.
        removed_files: keeps the files of the entries of a manifest for which a mask is true.

    Raises:
        ValidationError: metadata does not prove whether some file is selected.
        MissingFileError, CorruptFileError: a manifest cannot be read.
    """

    def filtered(manifest: ManifestFile) -> tuple[ManifestFile, RemovedFiles | None]:
        # The first row id is in the key: a concurrent commit may have assigned it meanwhile.
        source = (manifest.manifest_path, manifest.first_row_id)
        own_key = ("filtered", source, base.metadata.format_version, key)
        return work.once(own_key, lambda: _filter(work, base, manifest, selections, removed_files))

    live = [m for m in manifests if m.added_files_count or m.existing_files_count]
    candidates = [m for m in live if any(selection.may_select(m) for selection in selections)]
    if len(candidates) > 1:
        with ThreadPoolExecutor(manifest_readers(base.io, candidates, _BYTES_AT_A_TIME)) as pool:
            found = dict(zip(_paths(candidates), pool.map(filtered, candidates), strict=True))
    else:
        found = dict(zip(_paths(candidates), map(filtered, candidates), strict=True))
    return FilteredManifests(
        tuple(found[m.manifest_path][0] if m.manifest_path in found else m for m in live),
        tuple(removed for _, removed in found.values() if removed is not None),
    )


def _paths(manifests: Iterable[ManifestFile]) -> list[str]:
    return [manifest.manifest_path for manifest in manifests]


def _filter(
    work: Workspace,
    base: CommitBase,
    manifest: ManifestFile,
    selections: Sequence[Selection],
    removed_files: _RemovedFiles,
) -> tuple[ManifestFile, RemovedFiles | None]:
    selections = [selection for selection in selections if selection.may_select(manifest)]
    stats_ids = frozenset[int]().union(*(selection.stats_ids for selection in selections))
    columns = read_columns(base, manifest, stats_ids)
    is_removed = np.zeros(len(columns), np.bool_)
    for selection in selections:
        is_removed |= selection.select(columns)
    if not is_removed.any():
        return manifest, None
    deleted, existing = ManifestEntryStatus.DELETED.value, ManifestEntryStatus.EXISTING.value
    whole = read_columns(base, manifest, None)
    changed = replace(
        whole,
        status=np.where(is_removed, deleted, existing),
        snapshot_id=np.where(is_removed, work.snapshot_id, whole.snapshot_id),
    )
    removed = removed_files(columns, is_removed)
    return write_columns(work, base, manifest, changed), removed
