"""Writes the manifests of one commit of a table under construction."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from built.keys import write_stream
from icebergds.encryption.key_metadata import data_key_length
from icebergds.formats.manifests.manifest import INHERITED, read_manifest, write_manifest
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import (
    DataFile,
    FieldSummary,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.values.binary import to_bytes

FileKey = tuple[str, int | None]
"""A file, or one of the deletion vectors in it: path and content offset."""


@dataclass(frozen=True, slots=True)
class ManifestWriter:
    """Writes manifests into a table's metadata directory.

    Attributes:
        metadata: the table's metadata before the commit.
        sequence_number: the sequence number of the commit.
        with_summaries: whether to write partition summaries.
    """

    io: FileIO
    directory: Path
    metadata: TableMetadata
    snapshot_id: int
    sequence_number: int
    with_summaries: bool

    def added(
        self, files: Iterable[DataFile], data_sequence_numbers: Mapping[str, int]
    ) -> list[ManifestFile]:
        """Writes manifests of new files, one per spec and content type.

        Args:
            data_sequence_numbers: data sequence numbers by path, of files that do not inherit the
                commit's.
        """
        groups: dict[tuple[int, ManifestContent], list[ManifestEntry]] = {}
        for file in files:
            is_data = file.content is FileContent.DATA
            content = ManifestContent.DATA if is_data else ManifestContent.DELETES
            number = data_sequence_numbers.get(file.file_path, self.sequence_number)
            entry = ManifestEntry(
                ManifestEntryStatus.ADDED, self.snapshot_id, number, self.sequence_number, file
            )
            groups.setdefault((file.spec_id, content), []).append(entry)
        return [self._write(groups[key], *key) for key in sorted(groups)]

    def without(self, manifest: ManifestFile, gone: Collection[FileKey]) -> ManifestFile:
        """A manifest of the parent snapshot, rewritten without the files if it has any of them."""
        if not gone:
            return manifest

        def is_gone(entry: ManifestEntry) -> bool:
            return (entry.data_file.file_path, entry.data_file.content_offset) in gone

        metadata = self.metadata
        entries = read_manifest(
            self.io,
            manifest,
            metadata.specs_by_id,
            metadata.schema(),
            history=metadata.schema_history,
            live_only=True,
        )
        if not any(map(is_gone, entries)):
            return manifest
        deleted, existing = ManifestEntryStatus.DELETED, ManifestEntryStatus.EXISTING
        kept = [replace(entry, status=deleted if is_gone(entry) else existing) for entry in entries]
        return self._write(kept, manifest.partition_spec_id, manifest.content)

    def _write(
        self, entries: Sequence[ManifestEntry], spec_id: int, content: ManifestContent
    ) -> ManifestFile:
        metadata, number = self.metadata, self.sequence_number
        spec = metadata.specs_by_id[spec_id]
        all_inherit = all(
            entry.data_sequence_number == number
            for entry in entries
            if entry.status is ManifestEntryStatus.ADDED
        )
        data = write_manifest(
            entries,
            spec,
            metadata.schema(),
            format_version=metadata.format_version,
            content=content,
            inherit=INHERITED if all_inherit else INHERITED - {"sequence_number"},
            history=metadata.schema_history,
        )
        path = self.directory / f"{uuid.uuid4()}-m0.avro"
        length, key = write_stream(path, data, data_key_length(metadata.properties))

        def of(status: ManifestEntryStatus) -> list[DataFile]:
            return [entry.data_file for entry in entries if entry.status is status]

        added = of(ManifestEntryStatus.ADDED)
        existing = of(ManifestEntryStatus.EXISTING)
        deleted = of(ManifestEntryStatus.DELETED)
        return ManifestFile(
            manifest_path=str(path),
            manifest_length=length,
            partition_spec_id=spec_id,
            content=content,
            sequence_number=number,
            min_sequence_number=min(entry.data_sequence_number for entry in entries),
            added_snapshot_id=self.snapshot_id,
            added_files_count=len(added),
            existing_files_count=len(existing),
            deleted_files_count=len(deleted),
            added_rows_count=sum(file.record_count for file in added),
            existing_rows_count=sum(file.record_count for file in existing),
            deleted_rows_count=sum(file.record_count for file in deleted),
            partitions=self._summaries(spec, [*added, *existing]) if self.with_summaries else (),
            key_metadata=None if key is None else key.serialized(),
        )

    def _summaries(
        self, spec: PartitionSpec, files: Sequence[DataFile]
    ) -> tuple[FieldSummary, ...]:
        summaries = []
        for index, part in enumerate(self.metadata.partition_type(spec).fields):
            values = [file.partition[index] for file in files]
            ordered = sorted(v for v in values if v is not None and v == v)
            summaries.append(
                FieldSummary(
                    any(v is None for v in values),
                    any(v != v for v in values),
                    to_bytes(part.field_type, ordered[0]) if ordered else None,
                    to_bytes(part.field_type, ordered[-1]) if ordered else None,
                )
            )
        return tuple(summaries)


def with_row_ids(
    manifests: Iterable[ManifestFile], next_row_id: int
) -> tuple[list[ManifestFile], int]:
    """Assigns first row ids to data manifests without one; returns the next row id, too."""
    assigned = []
    for manifest in manifests:
        if manifest.content is ManifestContent.DATA and manifest.first_row_id is None:
            manifest = replace(manifest, first_row_id=next_row_id)
            next_row_id += (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
        assigned.append(manifest)
    return assigned, next_row_id
