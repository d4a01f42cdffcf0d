"""Compares the files that metadata lists with those that are stored, and finds orphans.

The table's directories are listed in bulk; files that are not found so, because they are elsewhere
or hidden, are looked up one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.catalog.metadata_files import VERSION_HINT
from icebergds.commit.operations import TableState
from icebergds.errors import IcebergError, MissingFileError
from icebergds.io.fileio import FileIO
from icebergds.io.near import readers_of
from icebergds.io.recursive_listing import FILE_SCHEMA
from icebergds.operations.maintenance.unused_files.candidates import HiddenPaths, is_metadata
from icebergds.operations.maintenance.unused_files.file_identity import Aliases, FileKeys
from icebergds.operations.maintenance.unused_files.other_tables import nested_directories
from icebergds.operations.maintenance.unused_files.reachable_files import (
    manifest_lists,
    metadata_files,
    statistics_files,
)
from icebergds.operations.maintenance.unused_files.remove_orphan_files import own_directories
from icebergds.operations.maintenance.verify.findings import (
    EXPIRE,
    REPAIR,
    Finding,
    FindingKind,
    of_the_past,
)
from icebergds.operations.maintenance.verify.verification import Orphans
from icebergds.operations.maintenance.verify.walk import Walk
from icebergds.reporting import advancing, stage
from icebergds.spec.metadata import metadata_directory
from icebergds.spec.table_properties import GC_ENABLED
from icebergds.spec.values.dates import now_ms

_YOUNG_MS = 3 * 24 * 60 * 60 * 1000
_MOST_ORPHANS = 1_000
_NOT_KNOWN = -2

MISSING = -1
"""The size of a file that is missing."""

_Sizes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ListedFiles:
    """Files that the manifests of kept snapshots list as live, each once.

    Attributes:
        paths: as in manifests.
        of_heads: whether a branch or tag has the file.
        places, recorded: the size that manifests say of the file at a place, and whether those of a
            branch or tag say it, `by_heads`.
    """

    paths: pa.StringArray
    of_heads: npt.NDArray[np.bool_]
    places: npt.NDArray[np.int64]
    recorded: _Sizes
    by_heads: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, walk: Walk) -> ListedFiles:
        heads = {manifest.path for manifest in walk.of_heads()}
        # Heads come first: what they say is not said of earlier snapshots, too.
        parts = sorted(walk.manifests.values(), key=lambda manifest: manifest.path not in heads)
        live = [(manifest.live(), manifest.path in heads) for manifest in parts]
        paths = pa.chunked_array([columns.file_path for columns, _ in live], pa.string())
        sizes = [columns.file_size_in_bytes for columns, _ in live]
        encoded = paths.combine_chunks().dictionary_encode()
        places = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        recorded = np.concatenate([np.empty(0, np.int64), *sizes])
        by_heads = np.concatenate(
            [np.empty(0, np.bool_), *(np.full(len(columns), of_head) for columns, of_head in live)]
        )
        _, first = np.unique(places, return_index=True)
        order = np.lexsort((recorded, places))
        pairs = places[order], recorded[order]
        is_new = np.ones(len(order), np.bool_)
        is_new[1:] = (pairs[0][1:] != pairs[0][:-1]) | (pairs[1][1:] != pairs[1][:-1])
        told = order[is_new]
        return cls(
            encoded.dictionary, by_heads[first], places[told], recorded[told], by_heads[told]
        )

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True, slots=True, eq=False)
class StoredFiles:
    """What is stored.

    Attributes:
        sizes: the true size of each of `ListedFiles`; -1 if it is missing, -2 if not known.
    """

    sizes: _Sizes
    findings: tuple[Finding, ...]
    orphans: Orphans

    def size_of(self, at: int) -> int | None:
        """The size of a file, if it is there and its size is known."""
        return int(self.sizes[at]) if self.sizes[at] >= 0 else None


def look_up(state: TableState, walk: Walk, files: ListedFiles) -> StoredFiles:
    """Compares the listed files with the stored ones.

    Raises:
        StorageError: the storage fails.
    """
    aliases = Aliases()
    with stage("list files"):
        listing, skipped = _listing(state)
    sizes, referenced = _found(state.io, files.paths, listing, aliases)
    orphans = Orphans(skipped=skipped)
    if skipped is None:
        rest = _metadata_locations(state, walk)
        referenced |= _referenced(rest, listing, state.io, aliases)
        orphans = _orphans(state, listing, referenced, aliases)
    return StoredFiles(sizes, tuple(_differing(files, sizes)), orphans)


@dataclass(frozen=True, slots=True, eq=False)
class _Listing:
    """The files below the table's directories, and their keys."""

    files: pa.Table
    hidden: npt.NDArray[np.bool_]
    keys: FileKeys


def _listing(state: TableState) -> tuple[_Listing, str | None]:
    """The files of the table's directories; a reason if they do not show all orphans."""
    metadata, hidden = state.metadata, HiddenPaths.of(state.metadata)
    skipped = None
    if not GC_ENABLED.of(metadata.properties):
        skipped = f"the table property {GC_ENABLED.name} is false, so that others may share files"
    files, masks = list[pa.RecordBatch](), [np.empty(0, np.bool_)]
    for directory in own_directories(metadata):
        location = metadata.location if directory is None else directory
        try:
            start = len(state.io.resolve(location).rstrip("/"))
            for part in state.io.list_recursively(location):
                inside = pc.utf8_slice_codeunits(part.files["location"], start)
                files.append(part.files)
                masks.append(hidden.of_paths(inside).to_numpy(zero_copy_only=False))
        except IcebergError as error:
            skipped = skipped or f"{location} cannot be listed: {error}"
    table = pa.Table.from_batches(files, FILE_SCHEMA)
    keys = Aliases().keys(table["location"], state.io.without_map())
    return _Listing(table, np.concatenate(masks), keys), skipped


def _found(
    io: FileIO, paths: pa.StringArray, listing: _Listing, aliases: Aliases
) -> tuple[_Sizes, npt.NDArray[np.bool_]]:
    """The size of each path, and which of the listed files they are."""
    wanted = aliases.keys(paths, io)
    sizes = np.full(len(paths), _NOT_KNOWN)
    is_referenced = np.zeros(len(listing.files), np.bool_)
    stored = listing.files["size_in_bytes"].fill_null(_NOT_KNOWN).to_numpy()
    for mine, theirs in _same_storage(wanted, listing.keys):
        own = np.flatnonzero(mine)
        there = np.flatnonzero(theirs)
        places = pc.index_in(
            wanted.paths.take(pa.array(own)), listing.keys.paths.take(pa.array(there))
        )
        hits = places.is_valid().to_numpy(zero_copy_only=False) if len(own) else np.empty(0, bool)
        found = there[places.drop_null().to_numpy().astype(np.int64)]
        sizes[own[hits]] = stored[found]
        is_referenced[found] = True
    unseen = np.flatnonzero(sizes == _NOT_KNOWN)
    if len(unseen):
        locations = paths.take(pa.array(unseen)).to_pylist()
        with (
            stage("look up files", len(locations)),
            ThreadPoolExecutor(readers_of(io, locations)) as pool,
        ):
            sizes[unseen] = list(
                advancing(pool.map(lambda location: _size(io, location), locations))
            )
    return sizes, is_referenced


def _same_storage(
    wanted: FileKeys, listed: FileKeys
) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
    for at, prefix in enumerate(wanted.distinct):
        for number, known in enumerate(listed.distinct):
            if prefix[0] == known[0] and prefix[1] in ("", known[1]):
                yield wanted.prefixes == at, listed.prefixes == number


def _size(io: FileIO, location: str) -> int:
    try:
        return io.size(location)
    except MissingFileError:
        return MISSING
    except IcebergError:
        return _NOT_KNOWN


def _differing(files: ListedFiles, sizes: _Sizes) -> Iterator[Finding]:
    for at in np.flatnonzero(sizes == MISSING).tolist():
        yield _missing(files.paths[at].as_py(), bool(files.of_heads[at]))
    known = sizes[files.places]
    for at in np.flatnonzero((known != files.recorded) & (known >= 0)).tolist():
        found = Finding(
            FindingKind.FILE_SIZE,
            files.paths[files.places[at]].as_py(),
            "file_size_in_bytes",
            f"{files.recorded[at]:,} bytes",
            f"{known[at]:,} bytes",
            "readers that look for the footer by this size fail, or read another file than "
            "the one that was written",
            f"if the file is whole, {REPAIR} and a depth of footers or rows; else restore it",
            # That the file is whole, its footer shows.
            is_repairable=True,
        )
        if files.by_heads[at]:
            yield found
        elif files.of_heads[files.places[at]]:
            yield of_the_past(found)
        else:
            # It may have been cut off, and only earlier snapshots have its rows.
            effect = f"{found.effect}; in earlier snapshots alone"
            yield replace(found, effect=effect, remedy=EXPIRE, is_repairable=False)


def _missing(path: str, of_head: bool) -> Finding:
    whose = "the table" if of_head else "earlier snapshots"
    return Finding(
        FindingKind.MISSING_FILE,
        path,
        None,
        "a file",
        "no file",
        f"reads of {whose} fail",
        "restore it from a backup, or delete its rows with delete_files" if of_head else EXPIRE,
    )


def _metadata_locations(state: TableState, walk: Walk) -> Sequence[str]:
    metadata = state.metadata
    return [
        *metadata_files(state),
        f"{metadata_directory(metadata.location)}/{VERSION_HINT}",
        *statistics_files(metadata),
        *manifest_lists(metadata.snapshots),
        *(m.manifest_path for listed in walk.lists.values() for m in listed),
    ]


def _referenced(
    locations: Sequence[str], listing: _Listing, io: FileIO, aliases: Aliases
) -> npt.NDArray[np.bool_]:
    keys = aliases.keys(pa.array(dict.fromkeys(locations), pa.string()), io)
    flags: npt.NDArray[np.bool_] = pc.is_in(listing.keys.paths, keys.paths).to_numpy()
    return flags


def _orphans(
    state: TableState, listing: _Listing, referenced: npt.NDArray[np.bool_], aliases: Aliases
) -> Orphans:
    files = listing.files
    left = ~(referenced | listing.hidden)
    for directory in nested_directories(state, files.filter(is_metadata(files)), aliases):
        inside = pc.starts_with(listing.keys.paths, directory)
        left &= ~inside.to_numpy().astype(np.bool_)
    unused = files.filter(pa.array(left))
    is_young = pc.fill_null(pc.greater(unused["modified_ms"], now_ms() - _YOUNG_MS), True)
    old = unused.filter(pc.invert(is_young))
    return Orphans(
        tuple(old["location"][:_MOST_ORPHANS].to_pylist()),
        len(old),
        int(pc.sum(old["size_in_bytes"]).as_py() or 0),
        len(unused) - len(old),
    )
