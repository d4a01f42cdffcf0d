"""Removes delete files that apply to no data file any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.base import CommitBase
from icebergds.commit.operations import TableState
from icebergds.commit.options import NothingToCommitError
from icebergds.commit.remove_delete_files import RemoveDeleteFiles
from icebergds.commit.selection import Mask, read_columns
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.display import html_result
from icebergds.formats.deletes.key_hash import Hashes, distinct_hashes, new_seed
from icebergds.formats.deletes.position_deletes import position_batches
from icebergds.formats.manifests.side_by_side import MANIFEST_READERS
from icebergds.formats.wrong_counts import Recorded
from icebergds.operations.maintenance.deletes.dangling_deletes import (
    find_dangling_deletes,
    live_manifests,
)
from icebergds.operations.maintenance.deletes.live_files import hash_paths
from icebergds.operations.maintenance.maintained_branch import maintained_branch
from icebergds.reporting import stage
from icebergds.spec.manifest import DataFile, ManifestContent

# The size of the delete files that are read in this process.
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class RemovedDanglingDeletes:
    """How many delete files were removed from a table, in all and of each kind.

    Attributes:
        removed_delete_files_count: all of them.
        removed_position_delete_files_count: without deletion vectors.
        removed_equality_delete_files_count: also those that apply to all partitions.
        removed_dvs_count: deletion vectors, of which a file may hold many.
    """

    removed_delete_files_count: int = 0
    removed_position_delete_files_count: int = 0
    removed_equality_delete_files_count: int = 0
    removed_dvs_count: int = 0

    def _repr_html_(self) -> str:
        return html_result("Removed dangling deletes", self)


def remove_dangling_deletes(
    table: LoadedTable,
    *,
    branch: Any = None,
    snapshot_properties: Mapping[str, str] | None = None,
) -> tuple[RemovedDanglingDeletes, TableState]:
    """Removes the delete files of a branch that apply to none of its data files.

    Raises:
        InvalidOptionError: the table has no such branch.
        CorruptFileError, MissingFileError: a manifest or delete file cannot be read.
        CommitConflictError, CommitStateUnknownError: as for other commits.
    """
    options = maintained_branch(table, branch, snapshot_properties)
    action = RemoveDeleteFiles(removable_deletes)
    try:
        with stage("read manifests"):
            committed = commit_snapshot(table.operations, action, options, table.state)
    except NothingToCommitError as nothing:
        return RemovedDanglingDeletes(), nothing.state
    summary = committed.snapshot.summary
    kinds = ("delete-files", "position-delete-files", "equality-delete-files", "dvs")
    counts = (int(summary.get(f"removed-{kind}", 0)) for kind in kinds)
    return RemovedDanglingDeletes(*counts), committed.state


def removable_deletes(base: CommitBase) -> dict[str, Mask]:
    """Marks the delete files that change no row: dangling ones, and suspected ones once read.

    Suspected ones are read up to 256 MB together, small ones first.

    Returns:
        A mask of the live entries of each delete manifest, by the manifest's path.

    Raises:
        MissingFileError, CorruptFileError: a manifest or delete file cannot be read.
        InvalidMetadataError: an equality delete file has no key columns.
    """
    found = find_dangling_deletes(base)
    masks = {path: mask.copy() for path, mask in found.dangling.items()}
    suspected = list(_suspected(base, found.suspected))
    for one, is_dangling in zip(suspected, _name_no_live_file(base, suspected), strict=True):
        masks[one.manifest_path][one.row] |= is_dangling
    return masks


@dataclass(frozen=True, slots=True)
class _Suspected:
    """A delete file, and its position among the live entries of its manifest."""

    manifest_path: str
    row: int
    file: DataFile


def _suspected(base: CommitBase, masks: Mapping[str, Mask]) -> Iterator[_Suspected]:
    found = [
        _Suspected(manifest.manifest_path, row, entry.data_file)
        for manifest in live_manifests(base, ManifestContent.DELETES)
        if (mask := masks.get(manifest.manifest_path)) is not None and mask.any()
        for row, entry in zip(
            np.flatnonzero(mask).tolist(),
            read_columns(base, manifest, ()).filter(mask).entries(),
            strict=True,
        )
    ]
    left = _MOST_BYTES
    for one in sorted(found, key=lambda one: one.file.file_size_in_bytes):
        left -= one.file.file_size_in_bytes
        if left < 0:
            return
        yield one


def _name_no_live_file(base: CommitBase, suspected: Sequence[_Suspected]) -> list[bool]:
    """Reads position delete files; returns for each whether it names no live data file."""
    if not suspected:
        return []
    # A path that is not live may have the hash of one that is: then its deletes are kept.
    seed = new_seed()

    def named(one: _Suspected) -> Hashes:
        file = one.file
        recorded = Recorded(file.record_count, file.file_size_in_bytes)
        batches = position_batches(
            base.io,
            file.file_path,
            file.file_format,
            recorded=recorded,
            key_metadata=file.key_metadata,
        )
        hashes = [hash_paths(pa.array(batch.paths, pa.string()), seed) for batch in batches]
        return distinct_hashes(hashes)

    with ThreadPoolExecutor(MANIFEST_READERS) as pool:
        by_file = list(pool.map(named, suspected))
        wanted = distinct_hashes(by_file)
        live = [np.empty(0, np.uint64)]
        for manifest in live_manifests(base, ManifestContent.DATA):
            hashes = hash_paths(read_columns(base, manifest, ()).file_path, seed)
            live.append(hashes[np.isin(hashes, wanted)])
    are_live = np.concatenate(live)
    return [not np.isin(hashes, are_live).any() for hashes in by_file]
