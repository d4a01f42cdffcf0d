"""Rewrites manifests and manifest lists, for the copy of a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from icebergds.commit.new_manifests import manifest_compression
from icebergds.formats.manifests.columns import EntryColumns
from icebergds.formats.manifests.manifest import entry_columns
from icebergds.formats.manifests.manifest_list import write_manifest_list
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.manifests.writer import write_manifest_columns
from icebergds.io.fileio import FileIO
from icebergds.operations.imports.moved_deletes import MovedDeletes
from icebergds.operations.imports.moved_paths import MovedPaths
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.table_properties import MANIFEST_COMPRESSION


@dataclass(frozen=True, slots=True)
class ListedEntries:
    """The entries of a manifest of the table."""

    manifest: ManifestFile
    columns: EntryColumns

    def live_position_deletes(self) -> list[DataFile]:
        """The position delete files and deletion vectors that have not been deleted."""
        live = self._live()
        mask = live.content == FileContent.POSITION_DELETES.value
        return [entry.data_file for entry in live.filter(mask).entries()]

    def files_to_copy(self, snapshot_ids: Collection[int] | None) -> list[str]:
        """Paths of files that contain no paths, and so are copied as they are.

        Args:
            snapshot_ids: the snapshots that added the files; None for all files.
        """
        live = self._live()
        mask = live.content != FileContent.POSITION_DELETES.value
        if snapshot_ids is not None:
            mask = mask & np.isin(live.snapshot_id, list(snapshot_ids))
        paths: list[str] = live.filter(mask).file_path.to_pylist()
        return paths

    def _live(self) -> EntryColumns:
        return self.columns.filter(self.columns.status != ManifestEntryStatus.DELETED.value)


def read_listed(io: FileIO, metadata: TableMetadata, manifest: ManifestFile) -> ListedEntries:
    """Reads all entries of a manifest, with their statistics."""
    columns = read_manifest_columns(
        io,
        manifest,
        metadata.specs_by_id,
        metadata.schema(),
        history=metadata.schema_history,
        live_only=False,
    )
    return ListedEntries(manifest, columns)


def moved_manifest(
    listed: ListedEntries,
    metadata: TableMetadata,
    paths: MovedPaths,
    deletes: Mapping[str, MovedDeletes],
) -> tuple[ManifestFile, bytes]:
    """A manifest for the copy: its entry in manifest lists, and its bytes.

    Sequence numbers and row ids are written out, so that all entries keep theirs.

    Args:
        deletes: the delete files that were written for the copy, by their paths in the table.

    Raises:
        InvalidOptionError: a path does not begin with the source prefix.
    """
    manifest, columns = listed.manifest, listed.columns
    if manifest.content is ManifestContent.DATA:
        moved = replace(columns, file_path=_moved(columns.file_path, paths.moved))
    else:
        moved = _moved_deletes(columns, paths, deletes)
    codec, level = manifest_compression(metadata.properties)
    data = write_manifest_columns(
        [moved],
        metadata.specs_by_id[manifest.partition_spec_id],
        metadata.schema(),
        partition=columns.partition_type,
        format_version=metadata.format_version,
        content=manifest.content,
        inherit=(),
        codec=codec,
        level=level,
    )
    path = paths.moved(manifest.manifest_path)
    return replace(_counted(listed), manifest_path=path, manifest_length=len(data)), data


def moved_list(
    snapshot: Snapshot,
    manifests: Sequence[ManifestFile],
    metadata: TableMetadata,
    paths: MovedPaths,
    moved: Mapping[str, ManifestFile],
) -> bytes:
    """A manifest list for the copy.

    Args:
        moved: the manifests that were written for the copy, by their paths in the table. Others are
            in the copy already; their recorded lengths stay, on which no reader depends.
    """
    listed = [
        moved.get(manifest.manifest_path)
        or replace(manifest, manifest_path=paths.moved(manifest.manifest_path))
        for manifest in manifests
    ]
    return write_manifest_list(
        listed,
        format_version=metadata.format_version,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
        codec=MANIFEST_COMPRESSION.of(metadata.properties),
    )


def _moved(column: pa.StringArray, move: Callable[[str], str]) -> pa.StringArray:
    texts = (None if text is None else move(text) for text in column.to_pylist())
    return pa.array(texts, column.type)


def _moved_deletes(
    columns: EntryColumns, paths: MovedPaths, deletes: Mapping[str, MovedDeletes]
) -> EntryColumns:
    """Entries of delete files, which are few: their bounds have paths, too."""
    entries = []
    for entry in columns.entries():
        file = entry.data_file
        written = deletes.get(file.file_path)
        is_dead = entry.status is ManifestEntryStatus.DELETED
        if written is None or is_dead:
            # For a deleted file, only the path matters.
            file = replace(file, file_path=paths.moved(file.file_path))
        else:
            file = written.entry(file, paths)
        entries.append(replace(entry, data_file=file))
    return entry_columns(entries, columns.spec_id, columns.partition_type)


def _counted(listed: ListedEntries) -> ManifestFile:
    """A manifest with its counts, which lists of version 1 may leave out."""
    status, rows = listed.columns.status, listed.columns.record_count

    def files(kind: ManifestEntryStatus) -> int:
        return int((status == kind.value).sum())

    def records(kind: ManifestEntryStatus) -> int:
        return int(rows[status == kind.value].sum())

    return replace(
        listed.manifest,
        added_files_count=files(ManifestEntryStatus.ADDED),
        existing_files_count=files(ManifestEntryStatus.EXISTING),
        deleted_files_count=files(ManifestEntryStatus.DELETED),
        added_rows_count=records(ManifestEntryStatus.ADDED),
        existing_rows_count=records(ManifestEntryStatus.EXISTING),
        deleted_rows_count=records(ManifestEntryStatus.DELETED),
    )
