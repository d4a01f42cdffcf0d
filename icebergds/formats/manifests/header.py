"""Reads schema, partition spec and content from a manifest's own header (spec: Manifests)."""

from __future__ import annotations

import json
from functools import lru_cache

from icebergds.errors import CorruptFileError, FormatError
from icebergds.formats.avro.container import AvroContainer
from icebergds.spec.json.partition import partition_fields_from_json
from icebergds.spec.json.schema import schema_from_json
from icebergds.spec.manifest import ManifestContent
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema


def header_schema(container: AvroContainer) -> Schema | None:
    """The table's schema when the manifest was written; None if the header lacks it.

    Raises:
        CorruptFileError: it is not a valid schema.
    """
    stored = container.metadata.get("schema")
    try:
        return None if stored is None else _parse_schema(stored)
    except (ValueError, FormatError) as error:
        raise CorruptFileError(f"{container.what}: header field 'schema': {error}") from error


def header_schema_json(container: AvroContainer) -> bytes | None:
    """The table's schema when the manifest was written, as JSON; None if the header lacks it.

    Manifests that were written with the same one share the object.
    """
    stored = container.metadata.get("schema")
    return None if stored is None else _shared(stored)


def parsed_schema(stored: bytes) -> Schema | None:
    """A schema of `header_schema_json`; None if it is none."""
    try:
        return _parse_schema(stored)
    except (ValueError, FormatError):
        return None


def header_spec(container: AvroContainer) -> PartitionSpec | None:
    """The partition spec that the manifest was written with; None if the header lacks it.

    Raises:
        CorruptFileError: it is not a valid partition spec.
    """
    stored = container.metadata.get("partition-spec")
    try:
        if stored is None:
            return None
        return _parse_spec(stored, int(container.metadata.get("partition-spec-id", b"0")))
    except (ValueError, FormatError) as error:
        raise CorruptFileError(
            f"{container.what}: header field 'partition-spec': {error}"
        ) from error


def header_content(container: AvroContainer) -> ManifestContent:
    """Whether the manifest holds data files, as all of version 1 do, or delete files."""
    if container.metadata.get("content") == b"deletes":
        return ManifestContent.DELETES
    return ManifestContent.DATA


@lru_cache(maxsize=64)
def _shared(stored: bytes) -> bytes:
    return stored


@lru_cache(maxsize=64)
def _parse_schema(stored: bytes) -> Schema:
    return schema_from_json(json.loads(stored))


@lru_cache(maxsize=64)
def _parse_spec(stored: bytes, spec_id: int) -> PartitionSpec:
    fields = json.loads(stored)
    # Some writers store the whole spec instead of only its fields.
    if isinstance(fields, dict):
        fields = fields.get("fields")
    return PartitionSpec(spec_id, partition_fields_from_json(fields, f"partition spec {spec_id}"))
