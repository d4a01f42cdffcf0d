"""Reads and writes manifest lists: the manifests of a snapshot (spec: Manifest Lists)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from icebergds.encryption.gcm_stream import decrypt_bytes
from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.encryption.list_keys import manifest_list_key
from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.formats.avro.container import parse_container
from icebergds.formats.avro.container_writer import write_container
from icebergds.formats.avro.records import read_records, record_schema
from icebergds.formats.avro.schema import (
    AvroArray,
    AvroRecord,
    parse_avro_schema,
    without_null,
)
from icebergds.formats.manifests.avro_schemas import manifest_list_schema
from icebergds.formats.manifests.header import header_content, header_spec
from icebergds.formats.manifests.layout import known_id
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FieldSummary, ManifestContent, ManifestFile
from icebergds.spec.snapshot import Snapshot

_IDS = {
    "manifest_path": 500,
    "manifest_length": 501,
    "partition_spec_id": 502,
    "added_snapshot_id": 503,
    "added_files_count": 504,
    "existing_files_count": 505,
    "deleted_files_count": 506,
    "partitions": 507,
    "added_rows_count": 512,
    "existing_rows_count": 513,
    "deleted_rows_count": 514,
    "sequence_number": 515,
    "min_sequence_number": 516,
    "content": 517,
    "key_metadata": 519,
    "first_row_id": 520,
}
_OLD_NAMES = {
    "added_data_files_count": 504,
    "existing_data_files_count": 505,
    "deleted_data_files_count": 506,
}
_SUMMARY_IDS = {
    "contains_null": 509,
    "lower_bound": 510,
    "upper_bound": 511,
    "contains_nan": 518,
}
_COUNTS = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
)
_REQUIRED = ("manifest_path", "manifest_length", "partition_spec_id")


def read_snapshot_manifests(io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
    """Reads the manifests of a snapshot: from its list, or by the paths in old snapshots.

    Raises:
        MissingFileError: the list or a manifest does not exist.
        CorruptFileError: it is damaged.
        UnsupportedFeatureError: it is encrypted, and the storage does not have the table's keys.
        StorageError: a file cannot be read, or the key management service fails.
    """
    if snapshot.manifest_list is not None:
        return read_manifest_list(io, snapshot.manifest_list, manifest_list_key(io, snapshot))
    return manifests_from_paths(io, snapshot.manifests, snapshot.snapshot_id)


def read_manifest_list(
    io: FileIO, location: str, key: KeyMetadata | None = None
) -> tuple[ManifestFile, ...]:
    """Reads a manifest list of any format version, in its order.

    Fields are matched by id, or by name if the file has no ids. Errors are those of
    `read_snapshot_manifests`.

    Args:
        key: of the list, if it is encrypted.
    """
    what = f"manifest list {location!r}"
    data = io.read_bytes(location)
    if key is not None:
        data = decrypt_bytes(data, key, what)
    container = parse_container(data, what, io.max_block_bytes)
    try:
        layout = _layout(container.schema_json)
    except ValueError as error:
        raise CorruptFileError(f"{what}: {error}") from error
    return tuple(
        _manifest_file(record, layout, what)
        for count, plain in container.decompressed()
        for record in read_records(count, plain, layout.record_schema, what)
    )


def manifests_from_paths(
    io: FileIO, paths: Iterable[str], snapshot_id: int
) -> tuple[ManifestFile, ...]:
    """Reads the headers of the manifests that a version 1 snapshot lists by path.

    Errors are those of `read_snapshot_manifests`.
    """
    return tuple(_manifest_from_path(io, path, snapshot_id) for path in paths)


def write_manifest_list(
    manifests: Iterable[ManifestFile],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None = None,
    sequence_number: int = 0,
    first_row_id: int | None = None,
    codec: str = "deflate",
) -> bytes:
    """Encodes a manifest list of format version 1, 2 or 3; the manifests are listed as they are.

    The snapshot's ids and sequence number go into the file's header. `codec` is that of
    `write_manifest`, at its default level.

    Raises:
        InvalidDataError: a manifest lacks a field that the version requires, or holds deletes in
            version 1.
    """
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "format-version": str(format_version),
    }
    if format_version >= 2:
        metadata["sequence-number"] = str(sequence_number)
    if format_version >= 3 and first_row_id is not None:
        metadata["first-row-id"] = str(first_row_id)
    records = [_record(manifest, format_version) for manifest in manifests]
    return write_container(manifest_list_schema(format_version), records, metadata, codec, None)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The file's Avro names of the fields of `ManifestFile` and `FieldSummary`."""

    manifest: Mapping[str, str]
    summary: Mapping[str, str]
    record_schema: Any


@lru_cache(maxsize=32)
def _layout(schema_json: str) -> _Layout:
    root = parse_avro_schema(schema_json)
    if not isinstance(root, AvroRecord):
        raise ValueError("the Avro schema is not a record")
    manifest = _avro_names(root, _IDS, _OLD_NAMES)
    if missing := [name for name in _REQUIRED if name not in manifest]:
        raise ValueError(f"the Avro schema lacks {', '.join(missing)}")
    summary: Mapping[str, str] = {}
    for field in root.fields:
        inner = without_null(field.node)
        if field.avro_name == manifest.get("partitions") and isinstance(inner, AvroArray):
            items = without_null(inner.items)
            if isinstance(items, AvroRecord):
                summary = _avro_names(items, _SUMMARY_IDS, {})
    return _Layout(manifest, summary, record_schema(schema_json))


def _avro_names(
    record: AvroRecord, ids: Mapping[str, int], old_names: Mapping[str, int]
) -> dict[str, str]:
    """The record's Avro names by current field name."""
    names = {field_id: name for name, field_id in ids.items()}
    found = ((known_id(f, record, {**ids, **old_names}), f.avro_name) for f in record.fields)
    return {names[field_id]: avro_name for field_id, avro_name in found if field_id is not None}


def _manifest_file(record: Mapping[str, Any], layout: _Layout, what: str) -> ManifestFile:
    values = {name: record[avro_name] for name, avro_name in layout.manifest.items()}
    for name in _REQUIRED:
        if values[name] is None:
            raise CorruptFileError(f"{what}: an entry has no {name}")
    content = values.get("content") or 0
    if content not in (0, 1):
        raise CorruptFileError(f"{what}: an entry has content {content}, expected 0 or 1")
    values["content"] = ManifestContent(content)
    values["sequence_number"] = values.get("sequence_number") or 0
    values["min_sequence_number"] = values.get("min_sequence_number") or 0
    values["partitions"] = tuple(
        _field_summary(summary, layout) for summary in values.get("partitions") or ()
    )
    return ManifestFile(**values)


def _field_summary(record: Mapping[str, Any], layout: _Layout) -> FieldSummary:
    values = {name: record[avro_name] for name, avro_name in layout.summary.items()}
    # What is not stored must not prune.
    values["contains_null"] = values.get("contains_null") is not False
    return FieldSummary(**values)


def _manifest_from_path(io: FileIO, path: str, snapshot_id: int) -> ManifestFile:
    data = io.read_bytes(path)
    container = parse_container(data, f"manifest {path!r}")
    spec = header_spec(container)
    return ManifestFile(
        manifest_path=path,
        manifest_length=len(data),
        partition_spec_id=0 if spec is None else spec.spec_id,
        content=header_content(container),
        added_snapshot_id=snapshot_id,
    )


def _record(manifest: ManifestFile, format_version: int) -> dict[str, Any]:
    if format_version == 1 and manifest.content is ManifestContent.DELETES:
        raise InvalidDataError(f"{manifest.manifest_path}: version 1 has no delete files")
    record = {name: getattr(manifest, name) for name in _IDS}
    required = ("added_snapshot_id", *(_COUNTS if format_version >= 2 else ()))
    if missing := [name for name in required if record[name] is None]:
        raise InvalidDataError(
            f"{manifest.manifest_path}: a manifest list of version {format_version} needs "
            f"{', '.join(missing)}"
        )
    record["content"] = manifest.content.value
    record["partitions"] = [
        {name: getattr(summary, name) for name in _SUMMARY_IDS} for summary in manifest.partitions
    ]
    return record
