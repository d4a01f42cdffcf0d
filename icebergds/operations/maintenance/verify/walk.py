"""Reads the manifest lists and manifests of all kept snapshots, each once, damaged ones apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from icebergds.commit.operations import TableState
from icebergds.encryption.list_keys import no_service
from icebergds.errors import (
    FormatError,
    InvalidDataError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.formats.data_file.encryption import NoKeyError
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.side_by_side import manifest_readers
from icebergds.io.fileio import FileIO
from icebergds.io.near import readers_of
from icebergds.operations.maintenance.verify.findings import (
    EXPIRE,
    Finding,
    FindingKind,
    Severity,
)
from icebergds.reporting import advancing, expect
from icebergds.spec.manifest import ManifestEntryStatus, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

READ_ERRORS = (FormatError, InvalidDataError, MissingFileError)
"""What is told of a file that cannot be read; failures of the storage end a verification."""


@dataclass(frozen=True, slots=True, eq=False)
class WalkedManifest:
    """A manifest with all its entries, removed files too.

    Attributes:
        listed: what manifest lists say of it; several if they differ.
        of_heads: those of them that the lists of branches and tags have.
        columns: with statistics if a branch or tag has the manifest.
        length: in bytes.
    """

    listed: tuple[ManifestFile, ...]
    of_heads: frozenset[ManifestFile]
    columns: EntryColumns
    length: int

    @property
    def path(self) -> str:
        return self.listed[0].manifest_path

    def live(self) -> EntryColumns:
        """The entries of files that are not removed."""
        return self.columns.filter(self.columns.status != ManifestEntryStatus.DELETED.value)


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The metadata of a table, as far as it can be read.

    Attributes:
        lists: the manifests of each snapshot, by its id, without those of damaged lists.
        manifests: by path, without damaged ones.
        heads: the snapshots of branches and tags by id.
        damage: what could not be read.
    """

    lists: Mapping[int, tuple[ManifestFile, ...]]
    manifests: Mapping[str, WalkedManifest]
    heads: Mapping[int, Snapshot]
    damage: tuple[Finding, ...] = field(default=())

    def of_snapshot(self, snapshot_id: int) -> list[WalkedManifest]:
        """The manifests of a snapshot that could be read, in order."""
        listed = self.lists.get(snapshot_id, ())
        paths = (manifest.manifest_path for manifest in listed)
        return [self.manifests[path] for path in paths if path in self.manifests]

    def is_whole(self, snapshot_id: int) -> bool:
        """Whether all manifests of a snapshot could be read."""
        listed = self.lists.get(snapshot_id)
        return listed is not None and all(m.manifest_path in self.manifests for m in listed)

    def of_heads(self) -> list[WalkedManifest]:
        """The manifests that branches and tags have, each once."""
        found = {m.path: m for snapshot_id in self.heads for m in self.of_snapshot(snapshot_id)}
        return list(found.values())


def walk_metadata(state: TableState) -> Walk:
    """Reads the metadata of all snapshots.

    Raises:
        UnsupportedFeatureError: the table is encrypted, and its catalog has no key service.
        StorageError: the storage fails.
    """
    io, metadata = state.io, state.metadata
    if state.keys is None and any(s.key_id is not None for s in metadata.snapshots):
        # Nothing could be verified, and no finding would say that anything is wrong.
        raise no_service(state.name, metadata)
    heads = _heads(metadata)
    snapshots = sorted(metadata.snapshots, key=lambda each: each.sequence_number)
    damage: list[Finding] = []
    readers = readers_of(io, (snapshot.manifest_list for snapshot in snapshots))
    lists: dict[int, tuple[ManifestFile, ...]] = {}
    for snapshot, listed in _side_by_side(lambda each: _listed(io, each), snapshots, readers):
        if isinstance(listed, Finding):
            damage.append(listed)
        else:
            lists[snapshot.snapshot_id] = listed
    # The newest list has the first row ids that later commits assigned.
    by_path: dict[str, dict[ManifestFile, None]] = {}
    for snapshot in reversed(snapshots):
        for manifest in lists.get(snapshot.snapshot_id, ()):
            by_path.setdefault(manifest.manifest_path, {})[manifest] = None
    of_heads = {manifest for each in heads for manifest in lists.get(each, ())}
    all_listed = [tuple(listed) for listed in by_path.values()]
    manifests: dict[str, WalkedManifest] = {}
    readers = manifest_readers(io, [listed[0] for listed in all_listed])
    read = _ManifestReader(io, metadata, of_heads)
    for listed_as, found in _side_by_side(read, all_listed, readers):
        if isinstance(found, Finding):
            damage.append(found)
        else:
            manifests[listed_as[0].manifest_path] = found
    return Walk(lists, manifests, heads, tuple(damage))


def unreadable(error: Exception, file: str, effect: str, remedy: str = EXPIRE) -> Finding:
    """The finding that a file is missing, damaged, or of a kind that is not read here."""
    if isinstance(error, UnsupportedFeatureError) and not isinstance(error, NoKeyError):
        return Finding(
            FindingKind.UNVERIFIED_FILE,
            file,
            None,
            None,
            str(error),
            "it was not verified",
            "verify it with an engine that reads it",
            severity=Severity.NOTE,
        )
    if isinstance(error, MissingFileError):
        return Finding(FindingKind.MISSING_FILE, file, None, "a file", "no file", effect, remedy)
    return Finding(FindingKind.DAMAGED_FILE, file, None, None, str(error), effect, remedy)


@dataclass(frozen=True, slots=True)
class _ManifestReader:
    """Reads one manifest after the other.

    Attributes:
        of_heads: those of branches and tags, whose statistics are read.
    """

    io: FileIO
    metadata: TableMetadata
    of_heads: set[ManifestFile]

    def __call__(self, listed: tuple[ManifestFile, ...]) -> WalkedManifest | Finding:
        path = listed[0].manifest_path
        of_heads = self.of_heads.intersection(listed)
        try:
            # The second read is of what this one keeps.
            io = self.io.keeping_reads()
            length = len(io.read_bytes(path))
            # Counts are compared elsewhere: here a difference would be an error.
            uncounted = replace(
                listed[0],
                manifest_length=length,
                added_files_count=None,
                existing_files_count=None,
                added_rows_count=None,
                existing_rows_count=None,
            )
            columns = read_manifest_columns(
                io,
                uncounted,
                self.metadata.specs_by_id,
                self.metadata.schema(),
                history=self.metadata.schema_history,
                stats_ids=None if of_heads else frozenset(),
                live_only=False,
            )
        except READ_ERRORS as error:
            return unreadable(error, path, "reads of the snapshots that have it fail")
        return WalkedManifest(listed, frozenset(of_heads), columns, length)


def _heads(metadata: TableMetadata) -> dict[int, Snapshot]:
    found = [metadata.snapshot_by_ref(name) for name in metadata.refs]
    found.append(metadata.current_snapshot())
    return {snapshot.snapshot_id: snapshot for snapshot in found if snapshot is not None}


def _listed(io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...] | Finding:
    try:
        return read_snapshot_manifests(io, snapshot)
    except READ_ERRORS as error:
        file = snapshot.manifest_list or f"snapshot {snapshot.snapshot_id}"
        return unreadable(error, file, f"reads of snapshot {snapshot.snapshot_id} fail")


def _side_by_side(
    read: Callable[[_Item], _Result], items: Iterable[_Item], readers: int
) -> Iterator[tuple[_Item, _Result]]:
    items = list(items)
    expect(len(items))
    with ThreadPoolExecutor(readers) as pool:
        yield from zip(items, advancing(pool.map(read, items)), strict=True)
