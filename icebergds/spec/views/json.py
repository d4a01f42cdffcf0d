"""Reads and writes view metadata as JSON (view spec: View Metadata, Appendix A)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from icebergds.errors import FormatError, InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.json.documents import compressed, decoded
from icebergds.spec.json.fields import (
    optional,
    required,
    string_map,
    strings,
    typed,
    unknown_members,
    without_nulls,
)
from icebergds.spec.json.schema import schema_from_json, schema_to_json
from icebergds.spec.json.updates import update_to_json
from icebergds.spec.views.metadata import (
    VIEW_FORMAT_VERSION,
    SQLViewRepresentation,
    UnknownViewRepresentation,
    ViewHistoryEntry,
    ViewMetadata,
    ViewRepresentation,
    ViewVersion,
)
from icebergds.spec.views.updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate


def parse_view_metadata(data: bytes, source: str, max_bytes: int | None = None) -> ViewMetadata:
    """Parses the bytes of a view's metadata file, plain or compressed with gzip.

    Args:
        source: names the file in errors.
        max_bytes: how large it may be, decompressed.

    Raises:
        InvalidMetadataError: the bytes are not valid view metadata.
        UnsupportedFeatureError: the format version is above 1, or a type is unknown.
    """
    return view_metadata_from_json(decoded(data, f"view metadata {source}", max_bytes), source)


def view_metadata_from_json(obj: Any, source: str) -> ViewMetadata:
    """Converts the decoded JSON object, which must not be changed afterwards, to view metadata.

    Raises what `parse_view_metadata` raises.
    """
    try:
        metadata = _metadata(typed(obj, dict, _TOP))
        _check_references(metadata)
    except FormatError as error:
        raise type(error)(f"view metadata {source}: {error}") from error
    return metadata


def serialise_view_metadata(metadata: ViewMetadata, compress: bool = False) -> bytes:
    """The bytes of a view's metadata file, compressed with gzip if `compress` is set."""
    document = view_metadata_to_json(metadata)
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return compressed(data) if compress else data


def view_metadata_to_json(metadata: ViewMetadata) -> dict[str, Any]:
    """The JSON object of view metadata."""
    return {
        "view-uuid": metadata.view_uuid,
        "format-version": metadata.format_version,
        "location": metadata.location,
        "properties": dict(metadata.properties),
        "schemas": [schema_to_json(schema) for schema in metadata.schemas],
        "current-version-id": metadata.current_version_id,
        "versions": [view_version_to_json(version) for version in metadata.versions],
        "version-log": [
            {
                "timestamp-ms": entry.timestamp_ms,
                "version-id": entry.version_id,
                **entry.unknown,
            }
            for entry in metadata.version_log
        ],
        **metadata.unknown,
    }


def view_version_from_json(obj: Mapping[str, Any]) -> ViewVersion:
    """Parses a version of a view. Raises InvalidMetadataError if it is malformed."""
    version_id = required(obj, "version-id", int, "a view version")
    where = f"view version {version_id}"
    members = required(obj, "representations", list, where)
    return ViewVersion(
        version_id=version_id,
        schema_id=required(obj, "schema-id", int, where),
        timestamp_ms=required(obj, "timestamp-ms", int, where),
        summary=string_map(obj, "summary", where),
        representations=tuple(
            _representation(typed(member, dict, f"a representation of {where}"), where)
            for member in members
        ),
        default_namespace=strings(obj, "default-namespace", where),
        default_catalog=optional(obj, "default-catalog", str, where),
        unknown=unknown_members(obj, _VERSION_MEMBERS),
    )


def view_version_to_json(version: ViewVersion) -> dict[str, Any]:
    """The JSON object of a version of a view."""
    obj = {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "schema-id": version.schema_id,
        "summary": dict(version.summary),
        "default-catalog": version.default_catalog,
        "default-namespace": list(version.default_namespace),
        "representations": [_representation_to_json(one) for one in version.representations],
    }
    return {**without_nulls(obj), **version.unknown}


_TOP = "the document"
_MEMBERS = frozenset(
    {
        "view-uuid",
        "format-version",
        "location",
        "properties",
        "schemas",
        "current-version-id",
        "versions",
        "version-log",
    }
)
_VERSION_MEMBERS = frozenset(
    {
        "version-id",
        "timestamp-ms",
        "schema-id",
        "summary",
        "default-catalog",
        "default-namespace",
        "representations",
    }
)
_SQL_MEMBERS = frozenset({"type", "sql", "dialect"})
_LOG_MEMBERS = frozenset({"timestamp-ms", "version-id"})


def _metadata(obj: Mapping[str, Any]) -> ViewMetadata:
    version = required(obj, "format-version", int, _TOP)
    if version != VIEW_FORMAT_VERSION:
        raise UnsupportedFeatureError(
            f"format version {version} of views is not supported, only {VIEW_FORMAT_VERSION}"
        )
    return ViewMetadata(
        view_uuid=required(obj, "view-uuid", str, _TOP),
        location=required(obj, "location", str, _TOP),
        schemas=tuple(map(schema_from_json, _objects(obj, "schemas"))),
        current_version_id=required(obj, "current-version-id", int, _TOP),
        versions=tuple(map(view_version_from_json, _objects(obj, "versions"))),
        version_log=tuple(map(_log_entry, _objects(obj, "version-log"))),
        properties=string_map(obj, "properties", _TOP),
        format_version=version,
        unknown=unknown_members(obj, _MEMBERS),
    )


def _objects(obj: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    members = required(obj, name, list, _TOP)
    return [typed(member, dict, f"an entry of '{name}'") for member in members]


def _log_entry(obj: Mapping[str, Any]) -> ViewHistoryEntry:
    where = "an entry of 'version-log'"
    return ViewHistoryEntry(
        timestamp_ms=required(obj, "timestamp-ms", int, where),
        version_id=required(obj, "version-id", int, where),
        unknown=unknown_members(obj, _LOG_MEMBERS),
    )


def _representation(obj: Mapping[str, Any], where: str) -> ViewRepresentation:
    if required(obj, "type", str, f"a representation of {where}").lower() != "sql":
        return UnknownViewRepresentation(obj)
    return SQLViewRepresentation(
        sql=required(obj, "sql", str, f"a representation of {where}"),
        dialect=required(obj, "dialect", str, f"a representation of {where}"),
        unknown=unknown_members(obj, _SQL_MEMBERS),
    )


def _representation_to_json(representation: ViewRepresentation) -> dict[str, Any]:
    match representation:
        case SQLViewRepresentation(sql=sql, dialect=dialect, unknown=unknown):
            return {"type": "sql", "sql": sql, "dialect": dialect, **unknown}
        case UnknownViewRepresentation(members=members):
            return dict(members)


def _check_references(metadata: ViewMetadata) -> None:
    if metadata.current_version_id not in metadata.versions_by_id:
        raise InvalidMetadataError(
            f"'current-version-id' is {metadata.current_version_id}, which is not listed; there "
            f"are {sorted(metadata.versions_by_id)[:10] or 'none'}"
        )
    schema_id = metadata.current_version().schema_id
    if schema_id not in metadata.schemas_by_id:
        raise InvalidMetadataError(
            f"the current version has schema {schema_id}, which is not listed; there are "
            f"{sorted(metadata.schemas_by_id)[:10] or 'none'}"
        )


def view_update_to_json(update: ViewUpdate) -> dict[str, Any]:
    """The JSON object of a view update."""
    match update:
        case AddViewVersion(view_version=version):
            return {"action": "add-view-version", "view-version": view_version_to_json(version)}
        case SetCurrentViewVersion(view_version_id=version_id):
            return {"action": "set-current-view-version", "view-version-id": version_id}
        case _:
            return update_to_json(update)
