"""Builds small real tables on the local disk, commit by commit, for tests of readers.

It writes whatever it is told, even what no engine would: deletes that match nothing, missing
metrics, files of several specs.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from built.data_files import write_file
from built.files import Row, write_parquet_file
from built.keys import keys_of_list, write_stream
from built.manifests import ManifestWriter, with_row_ids
from built.rows import record_batch
from icebergds.commit.operations import TableState
from icebergds.encryption.key_metadata import data_key_length
from icebergds.formats.deletes.deletion_vector import encode_deletion_vector
from icebergds.formats.deletes.positions import PositionSet
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests, write_manifest_list
from icebergds.formats.puffin import NewBlob, encode_puffin
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import serialise_metadata
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestFile,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS, POS
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import RefType, Snapshot, SnapshotLogEntry, SnapshotRef
from icebergds.spec.sort import SortOrder

_FIRST_TIMESTAMP_MS = 1_700_000_000_000


class TableBuilder:
    """A table under construction; `metadata_location` is current after every commit.

    Args:
        location: the table's root directory, which is created.
        schema: the table's schema.
        spec: the partition spec; unpartitioned by default.
        format_version: 1, 2 or 3.
        properties: table properties; with `encryption.key-id`, all files are encrypted.
    """

    def __init__(
        self,
        location: Path | str,
        schema: Schema,
        *,
        spec: PartitionSpec | None = None,
        format_version: int = 2,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.location = Path(location)
        spec = spec or PartitionSpec()
        for directory in ("data", "metadata"):
            (self.location / directory).mkdir(parents=True, exist_ok=True)
        self.metadata = TableMetadata(
            format_version=format_version,
            table_uuid=str(uuid.uuid4()),
            location=str(self.location),
            last_updated_ms=_FIRST_TIMESTAMP_MS,
            last_column_id=schema.highest_field_id,
            schemas=(schema,),
            current_schema_id=schema.schema_id,
            partition_specs=(spec,),
            default_spec_id=spec.spec_id,
            last_partition_id=spec.last_field_id,
            sort_orders=(SortOrder(),),
            default_sort_order_id=0,
            properties=dict(properties or {}),
        )
        self.version = 0
        self._write_metadata()

    @property
    def schema(self) -> Schema:
        return self.metadata.schema()

    @property
    def io(self) -> FileIO:
        """The local disk, with the keys of the table."""
        return TableState("the table", self.metadata_location, self.metadata, FileIO()).io

    @property
    def metadata_location(self) -> str:
        return str(self.location / "metadata" / f"v{self.version}.metadata.json")

    def evolve(self, schema: Schema | None = None, spec: PartitionSpec | None = None) -> None:
        """Adds a schema or a partition spec with a new id and makes it current."""
        metadata = self.metadata
        if schema is not None:
            metadata = replace(
                metadata,
                schemas=(*metadata.schemas, schema),
                current_schema_id=schema.schema_id,
                last_column_id=max(metadata.last_column_id, schema.highest_field_id),
            )
        if spec is not None:
            metadata = replace(
                metadata,
                partition_specs=(*metadata.partition_specs, spec),
                default_spec_id=spec.spec_id,
                last_partition_id=max(metadata.last_partition_id, spec.last_field_id),
            )
        self._replace_metadata(metadata)

    def upgrade(self, format_version: int) -> None:
        """Upgrades the format version; snapshots, manifests and files stay as they are."""
        self._replace_metadata(replace(self.metadata, format_version=format_version))

    def data_file(
        self,
        rows: Sequence[Row],
        *,
        partition: tuple[Any, ...] = (),
        spec_id: int | None = None,
        schema: Schema | None = None,
        row_group_size: int | None = None,
        with_metrics: bool = True,
        file_format: FileFormat = FileFormat.PARQUET,
    ) -> DataFile:
        """Writes a data file of rows in `schema` (the current one by default).

        How many rows a row group has, and whether there are metrics, can be chosen for Parquet.
        """
        schema = schema or self.schema
        path = self._path("data", file_format)
        if file_format is FileFormat.PARQUET:
            written = write_parquet_file(
                path, schema, rows, row_group_size, with_metrics, self._key_length
            )
        else:
            written = self._written(path, schema, rows, file_format, FileContent.DATA)
        return replace(written, partition=partition, spec_id=self._spec_id(spec_id))

    def position_deletes(
        self,
        positions: Mapping[str, Sequence[int]],
        *,
        partition: tuple[Any, ...] = (),
        spec_id: int | None = None,
        file_format: FileFormat = FileFormat.PARQUET,
    ) -> DataFile:
        """Writes a position delete file with the deleted positions of each data file path."""
        rows = [(path, position) for path in sorted(positions) for position in positions[path]]
        schema = Schema((DELETE_FILE_PATH, DELETE_POS))
        path = self._path("deletes", file_format)
        if file_format is FileFormat.PARQUET:
            written = write_parquet_file(path, schema, rows, key_length=self._key_length)
        else:
            written = self._written(path, schema, rows, file_format, FileContent.POSITION_DELETES)
        return replace(
            written,
            content=FileContent.POSITION_DELETES,
            partition=partition,
            spec_id=self._spec_id(spec_id),
        )

    def equality_deletes(
        self,
        columns: Sequence[str],
        keys: Sequence[Row],
        *,
        partition: tuple[Any, ...] = (),
        spec_id: int | None = None,
        schema: Schema | None = None,
        with_metrics: bool = True,
        equality_ids: Sequence[int] | None = None,
        file_format: FileFormat = FileFormat.PARQUET,
    ) -> DataFile:
        """Writes an equality delete file with keys of top-level columns.

        `equality_ids` are the fields to compare, at any depth of structs, in order; by default all
        of the columns.
        """
        schema = schema or self.schema
        fields = tuple(
            replace(field, required=False)
            for name in columns
            for field in schema.fields
            if field.name == name
        )
        key_schema = Schema(fields)
        path = self._path("keys", file_format)
        if file_format is FileFormat.PARQUET:
            written = write_parquet_file(
                path, key_schema, keys, None, with_metrics, self._key_length
            )
        else:
            written = self._written(
                path, key_schema, keys, file_format, FileContent.EQUALITY_DELETES
            )
        return replace(
            written,
            content=FileContent.EQUALITY_DELETES,
            equality_ids=tuple(
                (field.field_id for field in fields) if equality_ids is None else equality_ids
            ),
            partition=partition,
            spec_id=self._spec_id(spec_id),
        )

    def deletion_vectors(
        self, positions: Sequence[tuple[DataFile, Sequence[int]]]
    ) -> list[DataFile]:
        """Writes one Puffin file with a deletion vector for each data file."""
        blobs = [
            NewBlob(
                "deletion-vector-v1",
                (POS.field_id,),
                encode_deletion_vector(PositionSet.of(deleted)),
                properties={
                    "referenced-data-file": data_file.file_path,
                    "cardinality": str(len(set(deleted))),
                },
            )
            for data_file, deleted in positions
        ]
        data, placed = encode_puffin(blobs)
        path = self._path("vectors", "puffin")
        length, key = write_stream(path, data, self._key_length)
        return [
            DataFile(
                content=FileContent.POSITION_DELETES,
                file_path=str(path),
                file_format=FileFormat.PUFFIN,
                spec_id=data_file.spec_id,
                partition=data_file.partition,
                record_count=len(set(deleted)),
                file_size_in_bytes=length,
                referenced_data_file=data_file.file_path,
                content_offset=blob.offset,
                content_size_in_bytes=blob.length,
                key_metadata=None if key is None else key.serialized(),
            )
            for (data_file, deleted), blob in zip(positions, placed, strict=True)
        ]

    def commit(
        self,
        *files: DataFile,
        removed: Sequence[DataFile] = (),
        branch: str = "main",
        operation: str = "append",
        with_summaries: bool = False,
        data_sequence_numbers: Mapping[str, int] | None = None,
    ) -> int:
        """Commits files as one snapshot on a branch and returns its id.

        Args:
            files: data and delete files to add.
            removed: files of earlier commits to remove; of several deletion vectors in one Puffin
                file, only the given ones.
            with_summaries: whether to write partition summaries to the manifest list.
            data_sequence_numbers: data sequence numbers by path, of added files that do not inherit
                this commit's because they hold rows of earlier commits.
        """
        metadata = self.metadata
        parent = metadata.snapshot_by_ref(branch)
        number = metadata.last_sequence_number + 1 if metadata.format_version > 1 else 0
        snapshot_id = len(metadata.snapshots) + 1001
        writer = ManifestWriter(
            self.io,
            self.location / "metadata",
            metadata,
            snapshot_id,
            number,
            with_summaries,
        )
        gone = {(file.file_path, file.content_offset) for file in removed}
        before = () if parent is None else read_snapshot_manifests(self.io, parent)
        manifests = [
            *(writer.without(manifest, gone) for manifest in before),
            *writer.added(files, data_sequence_numbers or {}),
        ]
        next_row_id = metadata.next_row_id
        if metadata.format_version >= 3:
            manifests, next_row_id = with_row_ids(manifests, next_row_id)
        return self._add_snapshot(
            manifests, snapshot_id, parent, number, branch, operation, next_row_id
        )

    def tag(self, name: str, snapshot_id: int) -> None:
        """Tags a snapshot."""
        refs = {**self.metadata.refs, name: SnapshotRef(snapshot_id, RefType.TAG)}
        self._replace_metadata(replace(self.metadata, refs=refs))

    def branch(self, name: str, snapshot_id: int) -> None:
        """Creates a branch at a snapshot."""
        refs = {**self.metadata.refs, name: SnapshotRef(snapshot_id, RefType.BRANCH)}
        self._replace_metadata(replace(self.metadata, refs=refs))

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Replaces the table's properties."""
        self._replace_metadata(replace(self.metadata, properties=dict(properties)))

    def set_snapshots(self, snapshots: Sequence[Snapshot]) -> None:
        """Replaces the table's snapshots, as they are listed."""
        self._replace_metadata(replace(self.metadata, snapshots=tuple(snapshots)))

    def set_ref(self, name: str, ref: SnapshotRef) -> None:
        """Creates or moves a branch or tag; moving main back rolls the table back."""
        metadata = replace(self.metadata, refs={**self.metadata.refs, name: ref})
        if name == "main":
            entry = SnapshotLogEntry(metadata.last_updated_ms, ref.snapshot_id)
            log = (*metadata.snapshot_log, entry)
            metadata = replace(metadata, current_snapshot_id=ref.snapshot_id, snapshot_log=log)
        self._replace_metadata(metadata)

    def _spec_id(self, spec_id: int | None) -> int:
        return self.metadata.default_spec_id if spec_id is None else spec_id

    def _path(self, kind: str, suffix: str) -> Path:
        return self.location / "data" / f"{kind}-{uuid.uuid4()}.{suffix}"

    def _add_snapshot(
        self,
        manifests: Sequence[ManifestFile],
        snapshot_id: int,
        parent: Snapshot | None,
        number: int,
        branch: str,
        operation: str,
        next_row_id: int,
    ) -> int:
        metadata = self.metadata
        version = metadata.format_version
        parent_id = None if parent is None else parent.snapshot_id
        path = self.location / "metadata" / f"snap-{snapshot_id}-{uuid.uuid4()}.avro"
        data = write_manifest_list(
            manifests,
            format_version=version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=number,
            first_row_id=metadata.next_row_id if version >= 3 else None,
        )
        _, list_key = write_stream(path, data, self._key_length)
        keys = keys_of_list(metadata, list_key)
        timestamp_ms = metadata.last_updated_ms + 1000
        snapshot = Snapshot(
            snapshot_id=snapshot_id,
            timestamp_ms=timestamp_ms,
            sequence_number=number,
            parent_snapshot_id=parent_id,
            manifest_list=str(path),
            summary={"operation": operation},
            schema_id=metadata.current_schema_id,
            first_row_id=metadata.next_row_id if version >= 3 else None,
            added_rows=next_row_id - metadata.next_row_id if version >= 3 else None,
            key_id=keys[-1].key_id if keys else None,
        )
        on_main = branch == "main"
        log = metadata.snapshot_log
        self._replace_metadata(
            replace(
                metadata,
                last_sequence_number=number,
                last_updated_ms=timestamp_ms,
                snapshots=(*metadata.snapshots, snapshot),
                current_snapshot_id=snapshot_id if on_main else metadata.current_snapshot_id,
                snapshot_log=(*log, SnapshotLogEntry(timestamp_ms, snapshot_id))
                if on_main
                else log,
                refs={**metadata.refs, branch: SnapshotRef(snapshot_id, RefType.BRANCH)},
                next_row_id=next_row_id,
                encryption_keys=(*metadata.encryption_keys, *keys),
            )
        )
        return snapshot_id

    @property
    def _key_length(self) -> int | None:
        return data_key_length(self.metadata.properties)

    def _written(
        self,
        path: Path,
        schema: Schema,
        rows: Sequence[Row],
        file_format: FileFormat,
        content: FileContent,
    ) -> DataFile:
        """A file as write tasks of a format write it."""
        batch = record_batch(schema, rows)
        given = self.metadata.properties if self._key_length is not None else None
        return write_file(path, schema, [batch], given, file_format=file_format, content=content)

    def _replace_metadata(self, metadata: TableMetadata) -> None:
        self.metadata = metadata
        self._write_metadata()

    def _write_metadata(self) -> None:
        self.version += 1
        Path(self.metadata_location).write_bytes(serialise_metadata(self.metadata))
        hint = self.location / "metadata" / "version-hint.text"
        hint.write_text(str(self.version))
