"""Reads and writes schemas as JSON (spec: Appendix C, Schemas)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.fields import integers, optional, required, unknown_members
from icebergds.spec.json.types import fields_from_json, fields_to_json
from icebergds.spec.schema import Schema
from icebergds.spec.types import walk


def schema_from_json(obj: Mapping[str, Any]) -> Schema:
    """Parses a schema from its JSON object; `schema-id` is 0 if an old writer left it out.

    Raises InvalidMetadataError if it is malformed, an id is negative or two fields share one,
    UnsupportedFeatureError for types that format versions 1 to 3 do not define.
    """
    schema_id = optional(obj, "schema-id", int, "a schema") or 0
    where = f"schema {schema_id}"
    kind = required(obj, "type", str, where)
    if kind != "struct":
        raise InvalidMetadataError(f"{where} is of type {kind!r}, expected 'struct'")
    schema = Schema(
        fields=fields_from_json(obj, where),
        schema_id=schema_id,
        identifier_field_ids=integers(obj, "identifier-field-ids", where),
        unknown=unknown_members(obj, _MEMBERS),
    )
    _check_ids(schema, where)
    return schema


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """The JSON object of a schema."""
    obj: dict[str, Any] = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        obj["identifier-field-ids"] = list(schema.identifier_field_ids)
    return {**obj, **fields_to_json(schema.as_struct()), **schema.unknown}


def check_storable(schema: Schema) -> None:
    """Raises InvalidMetadataError if a schema does not survive a round trip through JSON.

    A table whose metadata cannot be read back is lost.
    """
    try:
        read = schema_from_json(json.loads(json.dumps(schema_to_json(schema))))
    except (InvalidMetadataError, TypeError, ValueError, RecursionError) as error:
        raise InvalidMetadataError(f"the schema cannot be stored in metadata: {error}") from error
    for field, again in zip(walk(schema.fields), walk(read.fields), strict=True):
        if field != again:
            raise InvalidMetadataError(
                f"column {schema.find_name(field.field_id)!r} cannot be stored in metadata: "
                f"{field} would be read back as {again}"
            )


_MEMBERS = frozenset({"type", "schema-id", "identifier-field-ids", "fields"})


def _check_ids(schema: Schema, where: str) -> None:
    seen: dict[int, str] = {}
    for field in walk(schema.fields):
        if field.field_id < 0:
            raise InvalidMetadataError(
                f"{where} gives id {field.field_id} to {field.name!r}; ids must not be negative"
            )
        if field.field_id in seen:
            raise InvalidMetadataError(
                f"{where} gives id {field.field_id} to both {seen[field.field_id]!r} and "
                f"{field.name!r}; ids must be unique"
            )
        seen[field.field_id] = field.name
