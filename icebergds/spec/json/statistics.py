"""Reads and writes statistics files as JSON (spec: Table Statistics, Partition Statistics)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.spec.json.fields import (
    integers,
    optional,
    required,
    string_map,
    typed,
    unknown_members,
)
from icebergds.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile


def statistics_file_from_json(obj: Mapping[str, Any]) -> StatisticsFile:
    """Parses a statistics file from its JSON object.

    Raises InvalidMetadataError if it is malformed.
    """
    where = "an entry of 'statistics'"
    return StatisticsFile(
        snapshot_id=required(obj, "snapshot-id", int, where),
        statistics_path=required(obj, "statistics-path", str, where),
        file_size_in_bytes=required(obj, "file-size-in-bytes", int, where),
        file_footer_size_in_bytes=required(obj, "file-footer-size-in-bytes", int, where),
        blob_metadata=tuple(
            _blob_from_json(typed(blob, dict, f"'blob-metadata' of {where}"))
            for blob in required(obj, "blob-metadata", list, where)
        ),
        key_metadata=optional(obj, "key-metadata", str, where),
        unknown=unknown_members(obj, _STATISTICS_MEMBERS),
    )


def statistics_file_to_json(file: StatisticsFile) -> dict[str, Any]:
    """The JSON object of a statistics file."""
    obj: dict[str, Any] = {
        "snapshot-id": file.snapshot_id,
        "statistics-path": file.statistics_path,
        "file-size-in-bytes": file.file_size_in_bytes,
        "file-footer-size-in-bytes": file.file_footer_size_in_bytes,
        "blob-metadata": [_blob_to_json(blob) for blob in file.blob_metadata],
    }
    if file.key_metadata is not None:
        obj["key-metadata"] = file.key_metadata
    return {**obj, **file.unknown}


def partition_statistics_file_from_json(obj: Mapping[str, Any]) -> PartitionStatisticsFile:
    """Parses a partition statistics file from its JSON object.

    Raises InvalidMetadataError if it is malformed.
    """
    where = "an entry of 'partition-statistics'"
    return PartitionStatisticsFile(
        snapshot_id=required(obj, "snapshot-id", int, where),
        statistics_path=required(obj, "statistics-path", str, where),
        file_size_in_bytes=required(obj, "file-size-in-bytes", int, where),
        unknown=unknown_members(obj, _PARTITION_STATISTICS_MEMBERS),
    )


def partition_statistics_file_to_json(file: PartitionStatisticsFile) -> dict[str, Any]:
    """The JSON object of a partition statistics file."""
    return {
        "snapshot-id": file.snapshot_id,
        "statistics-path": file.statistics_path,
        "file-size-in-bytes": file.file_size_in_bytes,
        **file.unknown,
    }


_PARTITION_STATISTICS_MEMBERS = frozenset({"snapshot-id", "statistics-path", "file-size-in-bytes"})
_STATISTICS_MEMBERS = _PARTITION_STATISTICS_MEMBERS | {
    "file-footer-size-in-bytes",
    "blob-metadata",
    "key-metadata",
}
_BLOB_MEMBERS = frozenset({"type", "snapshot-id", "sequence-number", "fields", "properties"})


def _blob_from_json(obj: Mapping[str, Any]) -> BlobMetadata:
    where = "a blob of 'statistics'"
    return BlobMetadata(
        blob_type=required(obj, "type", str, where),
        snapshot_id=required(obj, "snapshot-id", int, where),
        sequence_number=required(obj, "sequence-number", int, where),
        fields=integers(obj, "fields", where),
        properties=string_map(obj, "properties", where),
        unknown=unknown_members(obj, _BLOB_MEMBERS),
    )


def _blob_to_json(blob: BlobMetadata) -> dict[str, Any]:
    obj: dict[str, Any] = {
        "type": blob.blob_type,
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "fields": list(blob.fields),
    }
    if blob.properties:
        obj["properties"] = dict(blob.properties)
    return {**obj, **blob.unknown}
