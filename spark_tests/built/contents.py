"""Says what a table has: its newest snapshot, its live files, and the files in its directories."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from icebergds.api.table import Table, load_table
from icebergds.formats.manifests.manifest import read_manifest
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, ManifestEntry
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot


def snapshot_entries(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, *, live_only: bool = False
) -> list[ManifestEntry]:
    """The entries of a snapshot's manifests; without those of removed files if `live_only`."""
    return [
        entry
        for manifest in read_snapshot_manifests(io, snapshot)
        for entry in read_manifest(
            io, manifest, metadata.specs_by_id, metadata.schema(), live_only=live_only
        )
    ]


def used_files(io: FileIO, metadata: TableMetadata, *, live_only: bool = False) -> set[str]:
    """The manifest lists, manifests, data and delete files that any snapshot names.

    Without those that it names as removed if `live_only`: these may be deleted already.
    """
    used: set[str] = set()
    seen: set[str] = set()
    for snapshot in metadata.snapshots:
        used.add(snapshot.manifest_list or "")
        for manifest in read_snapshot_manifests(io, snapshot):
            used.add(manifest.manifest_path)
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            entries = read_manifest(
                io, manifest, metadata.specs_by_id, metadata.schema(), live_only=live_only
            )
            used |= {entry.data_file.file_path for entry in entries}
    return used


def head(table: Table) -> Snapshot:
    """The newest snapshot of the main branch, as the table is now."""
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return snapshot


def live_entries(table: Table) -> list[ManifestEntry]:
    """The entries of the live files of the newest snapshot."""
    metadata = table.refresh().metadata
    return snapshot_entries(table.io, metadata, head(table), live_only=True)


def live_files(location: Path | str) -> list[DataFile]:
    """The data and delete files of the current snapshot; none if there is no snapshot."""
    table = load_table(location)
    snapshot = table.metadata.current_snapshot()
    if snapshot is None:
        return []
    entries = snapshot_entries(table.io, table.metadata, snapshot, live_only=True)
    return [entry.data_file for entry in entries]


def history(table: Table, branch: str = "main") -> list[Snapshot]:
    """The snapshots of a branch from its first to its newest, by their parents."""
    snapshot = table.metadata.snapshot_by_ref(branch)
    found: list[Snapshot] = []
    while snapshot is not None:
        found.append(snapshot)
        snapshot = table.metadata.snapshot_by_id(snapshot.parent_snapshot_id or 0)
    return found[::-1]


def unused_files(table: Table) -> set[str]:
    """Data files, manifests and manifest lists in a table's directories that no snapshot names."""
    root = Path(table.location())
    found = _files_of([*root.glob("data/**/*"), *root.glob("metadata/*.avro")])
    return set(map(str, found)) - used_files(table.io, table.metadata)


def data_files(location: Path | str) -> list[Path]:
    """The files below a table's data directory."""
    return _files_of(Path(location, "data").rglob("*"))


def metadata_files(location: Path | str) -> list[str]:
    """The names of a table's metadata files, in the order of their versions."""
    names = [path.name for path in Path(location, "metadata").glob("*.metadata.json")]
    return sorted(names, key=lambda name: (len(name), name))


def files_besides_metadata(location: Path | str) -> set[str]:
    """The files of a table that are not in its metadata directory, relative to its location."""
    root = Path(location)
    relative = [path.relative_to(root) for path in _files_of(root.rglob("*"))]
    return {str(path) for path in relative if path.parts[0] != "metadata"}


def _files_of(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file())
