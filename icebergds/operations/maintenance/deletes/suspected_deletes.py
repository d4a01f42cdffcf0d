"""Reads position delete files to prove that they name no live data file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebergds.commit.base import CommitBase
from icebergds.commit.selection import Mask, read_columns
from icebergds.formats.deletes.key_hash import Hashes, new_seed
from icebergds.formats.deletes.position_deletes import position_batches
from icebergds.formats.manifests.side_by_side import MANIFEST_READERS
from icebergds.formats.wrong_counts import Recorded
from icebergds.operations.maintenance.deletes.dangling_deletes import (
    find_dangling_deletes,
    live_manifests,
)
from icebergds.operations.maintenance.deletes.live_files import hash_paths
from icebergds.spec.manifest import DataFile, ManifestContent

# Read here, in this process.
_MOST_BYTES = 256 << 20


def removable_deletes(base: CommitBase) -> dict[str, Mask]:
    """Marks the delete files that change no row: dangling ones, and suspected ones once read.

    Of the latter, small ones of up to 256 MB together are read.

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
    """A delete file, and which live entry of which manifest it is."""

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
    if not suspected:
        return []
    # A path that is not live may have the hash of one that is: then its deletes are kept.
    seed = new_seed()

    def named(one: _Suspected) -> Hashes:
        file = one.file
        recorded = Recorded(file.record_count, file.file_size_in_bytes)
        batches = position_batches(base.io, file.file_path, file.file_format, recorded=recorded)
        hashes = [hash_paths(pa.array(batch.paths, pa.string()), seed) for batch in batches]
        return np.unique(np.concatenate([np.empty(0, np.uint64), *hashes]))

    with ThreadPoolExecutor(MANIFEST_READERS) as pool:
        by_file = list(pool.map(named, suspected))
        wanted = np.unique(np.concatenate(by_file))
        live = [np.empty(0, np.uint64)]
        for manifest in live_manifests(base, ManifestContent.DATA):
            hashes = hash_paths(read_columns(base, manifest, ()).file_path, seed)
            live.append(hashes[np.isin(hashes, wanted)])
    are_live = np.concatenate(live)
    return [not np.isin(hashes, are_live).any() for hashes in by_file]
