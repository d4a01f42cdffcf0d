"""Manifests as objects, one an entry, read and written (spec: Manifests)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any

from icebergds.errors import InvalidDataError
from icebergds.formats.avro_writing import write_container
from icebergds.formats.manifest_columns import read_manifest_columns
from icebergds.formats.manifest_schema import avro_name, decimal_size, manifest_schema
from icebergds.io.fileio import FileIO
from icebergds.spec.decimals import unscaled
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icebergds.spec.partition import PartitionSpec, partition_type
from icebergds.spec.partition_json import partition_fields_to_json
from icebergds.spec.schema import Schema
from icebergds.spec.schema_json import schema_to_json
from icebergds.spec.types import DecimalType, StructType

INHERITED = frozenset({"sequence_number", "file_sequence_number", "first_row_id"})
"""What entries of added files leave to be inherited, so that a commit can be tried again."""


def read_manifest(
    io: FileIO,
    manifest: ManifestFile,
    specs: Mapping[int, PartitionSpec] | None = None,
    schema: Schema | None = None,
    *,
    history: Iterable[Schema] = (),
    live_only: bool = False,
) -> list[ManifestEntry]:
    """Every entry of a manifest, with all statistics; for many entries, read columns instead.

    Arguments and errors are those of `read_manifest_columns`.
    """
    return read_manifest_columns(
        io, manifest, specs, schema, history=history, live_only=live_only
    ).entries()


def write_manifest(
    entries: Iterable[ManifestEntry],
    spec: PartitionSpec,
    schema: Schema,
    *,
    format_version: int,
    content: ManifestContent = ManifestContent.DATA,
    inherit: Collection[str] = INHERITED,
    history: Iterable[Schema] = (),
    codec: str = "deflate",
    level: int | None = None,
) -> bytes:
    """A manifest of format version 1, 2 or 3.

    Args:
        entries: all of the spec `spec`.
        schema: the table's schema at this time; columns it lacks are looked for in `history`.
        inherit: fields that entries of added files leave null: those of `INHERITED`, or
            `snapshot_id`. Other entries hold all of them.
        codec, level: as in `write.manifest.compression-codec` and `-level`; Avro's names too.

    Raises:
        InvalidDataError: a file cannot be listed in such a manifest.
        UnsupportedFeatureError: a partition value's type cannot be stored.
    """
    partition = partition_type(spec, schema, history)
    records = []
    for entry in entries:
        _check(entry.data_file, partition, content, format_version)
        records.append(_inheriting(entry_record(entry, partition), entry.status, inherit))
    metadata = {
        "schema": json.dumps(schema_to_json(schema)),
        "schema-id": str(schema.schema_id),
        "partition-spec": json.dumps(partition_fields_to_json(spec.fields)),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
    }
    if format_version >= 2:
        metadata["content"] = content.name.lower()
    avro_schema = manifest_schema(partition, format_version)
    return write_container(avro_schema, records, metadata, codec, level)


def entry_record(entry: ManifestEntry, partition: StructType) -> dict[str, Any]:
    """An entry as an Avro record with the fields of all versions, its values as stored."""
    return {
        "status": entry.status.value,
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.data_sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": _data_file(entry.data_file, partition),
    }


def _check(
    file: DataFile, partition: StructType, content: ManifestContent, format_version: int
) -> None:
    if format_version == 1 and content is ManifestContent.DELETES:
        raise InvalidDataError(f"{file.file_path}: version 1 has no delete files")
    if (file.content is FileContent.DATA) is not (content is ManifestContent.DATA):
        raise InvalidDataError(
            f"{file.file_path}: a file of {file.content.name} has no place in a manifest of "
            f"{content.name.lower()}"
        )
    if len(file.partition) != len(partition.fields):
        raise InvalidDataError(
            f"{file.file_path} has {len(file.partition)} partition values, its spec has "
            f"{len(partition.fields)} fields"
        )


def _inheriting(
    record: dict[str, Any], status: ManifestEntryStatus, inherit: Collection[str]
) -> dict[str, Any]:
    if status is ManifestEntryStatus.ADDED:
        for name in inherit:
            (record if name in record else record["data_file"])[name] = None
    return record


def _data_file(file: DataFile, partition: StructType) -> dict[str, Any]:
    return {
        "content": file.content.value,
        "file_path": file.file_path,
        "file_format": file.file_format.value.upper(),
        "partition": {
            avro_name(field.name): _stored_value(field.field_type, value)
            for field, value in zip(partition.fields, file.partition, strict=True)
        },
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "block_size_in_bytes": 64 * 1024 * 1024,
        "column_sizes": _pairs(file.column_sizes),
        "value_counts": _pairs(file.value_counts),
        "null_value_counts": _pairs(file.null_value_counts),
        "nan_value_counts": _pairs(file.nan_value_counts),
        "lower_bounds": _pairs(file.lower_bounds),
        "upper_bounds": _pairs(file.upper_bounds),
        "key_metadata": file.key_metadata,
        "split_offsets": list(file.split_offsets) or None,
        "equality_ids": list(file.equality_ids) or None,
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id,
        "referenced_data_file": file.referenced_data_file,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_in_bytes,
    }


def _stored_value(field_type: Any, value: Any) -> Any:
    match field_type, value:
        case DecimalType(precision=precision, scale=scale), Decimal():
            size = decimal_size(precision)
            return unscaled(value, scale).to_bytes(size, "big", signed=True)
        case _:
            return value


def _pairs(values: Mapping[int, Any]) -> list[dict[str, Any]] | None:
    return [{"key": key, "value": value} for key, value in values.items()] or None
