"""Reads and writes snapshots, references and logs as JSON (spec: Appendix C)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.fields import (
    keyword,
    optional,
    required,
    string_map,
    strings,
    unknown_members,
    without_nulls,
)
from icebergds.spec.snapshot import (
    MetadataLogEntry,
    RefType,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
)


def snapshot_from_json(obj: Mapping[str, Any]) -> Snapshot:
    """Parses a snapshot from its JSON object, of any format version.

    Raises InvalidMetadataError if it is malformed, or has neither a manifest list nor manifests.
    """
    snapshot_id = required(obj, "snapshot-id", int, "a snapshot")
    where = f"snapshot {snapshot_id}"
    manifest_list = optional(obj, "manifest-list", str, where)
    if manifest_list is None and obj.get("manifests") is None:
        raise InvalidMetadataError(f"{where} has neither 'manifest-list' nor 'manifests'")
    return Snapshot(
        snapshot_id=snapshot_id,
        timestamp_ms=required(obj, "timestamp-ms", int, where),
        sequence_number=optional(obj, "sequence-number", int, where) or 0,
        parent_snapshot_id=optional(obj, "parent-snapshot-id", int, where),
        manifest_list=manifest_list,
        # Snapshots: `manifests` must be omitted if there is a manifest list; the list wins.
        manifests=strings(obj, "manifests", where) if manifest_list is None else (),
        summary=string_map(obj, "summary", where),
        schema_id=optional(obj, "schema-id", int, where),
        first_row_id=optional(obj, "first-row-id", int, where),
        added_rows=optional(obj, "added-rows", int, where),
        key_id=optional(obj, "key-id", str, where),
        unknown=unknown_members(obj, _SNAPSHOT_MEMBERS),
    )


def snapshot_to_json(snapshot: Snapshot, format_version: int) -> dict[str, Any]:
    """The JSON object of a snapshot in the form of a format version."""
    listed = snapshot.manifest_list is not None
    return {
        **without_nulls(
            {
                "snapshot-id": snapshot.snapshot_id,
                "parent-snapshot-id": snapshot.parent_snapshot_id,
                # Version 2, Writing v1 metadata: sequence numbers should not be written.
                "sequence-number": snapshot.sequence_number or (None if format_version == 1 else 0),
                "timestamp-ms": snapshot.timestamp_ms,
                "summary": dict(snapshot.summary) or None,
                "manifest-list": snapshot.manifest_list,
                "manifests": None if listed else list(snapshot.manifests),
                "schema-id": snapshot.schema_id,
                "first-row-id": snapshot.first_row_id,
                "added-rows": snapshot.added_rows,
                "key-id": snapshot.key_id,
            }
        ),
        **snapshot.unknown,
    }


def ref_from_json(obj: Mapping[str, Any], name: str) -> SnapshotRef:
    """Parses the reference called `name` from its JSON object.

    Raises InvalidMetadataError if it is malformed.
    """
    where = f"ref {name!r}"
    return SnapshotRef(
        snapshot_id=required(obj, "snapshot-id", int, where),
        ref_type=keyword(obj, "type", RefType, where),
        min_snapshots_to_keep=optional(obj, "min-snapshots-to-keep", int, where),
        max_snapshot_age_ms=optional(obj, "max-snapshot-age-ms", int, where),
        max_ref_age_ms=optional(obj, "max-ref-age-ms", int, where),
        unknown=unknown_members(obj, _REF_MEMBERS),
    )


def ref_to_json(ref: SnapshotRef) -> dict[str, Any]:
    """The JSON object of a reference."""
    return {
        **without_nulls(
            {
                "snapshot-id": ref.snapshot_id,
                "type": ref.ref_type.value,
                "min-snapshots-to-keep": ref.min_snapshots_to_keep,
                "max-snapshot-age-ms": ref.max_snapshot_age_ms,
                "max-ref-age-ms": ref.max_ref_age_ms,
            }
        ),
        **ref.unknown,
    }


def snapshot_log_entry_from_json(obj: Mapping[str, Any]) -> SnapshotLogEntry:
    """Parses an entry of `snapshot-log` from its JSON object."""
    return SnapshotLogEntry(
        timestamp_ms=required(obj, "timestamp-ms", int, "an entry of 'snapshot-log'"),
        snapshot_id=required(obj, "snapshot-id", int, "an entry of 'snapshot-log'"),
        unknown=unknown_members(obj, _SNAPSHOT_LOG_MEMBERS),
    )


def snapshot_log_entry_to_json(entry: SnapshotLogEntry) -> dict[str, Any]:
    """The JSON object of an entry of `snapshot-log`."""
    return {
        "timestamp-ms": entry.timestamp_ms,
        "snapshot-id": entry.snapshot_id,
        **entry.unknown,
    }


def metadata_log_entry_from_json(obj: Mapping[str, Any]) -> MetadataLogEntry:
    """Parses an entry of `metadata-log` from its JSON object."""
    return MetadataLogEntry(
        timestamp_ms=required(obj, "timestamp-ms", int, "an entry of 'metadata-log'"),
        metadata_file=required(obj, "metadata-file", str, "an entry of 'metadata-log'"),
        unknown=unknown_members(obj, _METADATA_LOG_MEMBERS),
    )


def metadata_log_entry_to_json(entry: MetadataLogEntry) -> dict[str, Any]:
    """The JSON object of an entry of `metadata-log`."""
    return {
        "timestamp-ms": entry.timestamp_ms,
        "metadata-file": entry.metadata_file,
        **entry.unknown,
    }


_SNAPSHOT_MEMBERS = frozenset(
    {
        "snapshot-id",
        "parent-snapshot-id",
        "sequence-number",
        "timestamp-ms",
        "manifest-list",
        "manifests",
        "summary",
        "schema-id",
        "first-row-id",
        "added-rows",
        "key-id",
    }
)
_REF_MEMBERS = frozenset(
    {"snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"}
)
_SNAPSHOT_LOG_MEMBERS = frozenset({"timestamp-ms", "snapshot-id"})
_METADATA_LOG_MEMBERS = frozenset({"timestamp-ms", "metadata-file"})
