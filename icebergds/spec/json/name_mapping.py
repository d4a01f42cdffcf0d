"""Reads and writes name mappings as JSON (spec: Column Projection, Name Mapping Serialization)."""

from __future__ import annotations

import json
from typing import Any

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.fields import optional, strings, typed
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.name_mapping import MappedField, NameMapping
from icebergds.spec.table_properties import NAME_MAPPING

NAME_MAPPING_PROPERTY = NAME_MAPPING.name


def table_name_mapping(metadata: TableMetadata) -> NameMapping | None:
    """The name mapping in a table's properties, or None.

    Raises InvalidMetadataError if the property is malformed.
    """
    text = metadata.properties.get(NAME_MAPPING_PROPERTY)
    if text is None:
        return None
    try:
        return name_mapping_from_json(json.loads(text))
    except (ValueError, RecursionError, InvalidMetadataError) as error:
        raise InvalidMetadataError(
            f"table at {metadata.location}: property {NAME_MAPPING_PROPERTY} is malformed: {error}"
        ) from error


def name_mapping_from_json(obj: Any) -> NameMapping:
    """Parses a name mapping from its JSON array.

    Raises InvalidMetadataError if it is malformed or gives the same name to two columns.
    """
    return NameMapping(_fields_from_json(obj))


def name_mapping_to_json(mapping: NameMapping) -> list[dict[str, Any]]:
    """The JSON array of a name mapping."""
    return [_field_to_json(field) for field in mapping.fields]


def _fields_from_json(obj: Any) -> tuple[MappedField, ...]:
    where = "a field of the name mapping"
    fields = tuple(
        _field_from_json(typed(member, dict, where)) for member in typed(obj, list, "name mapping")
    )
    names = [name for field in fields for name in field.names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidMetadataError(f"the name mapping gives the name {twice!r} to two columns")
    return fields


def _field_from_json(obj: dict[str, Any]) -> MappedField:
    where = "a field of the name mapping"
    nested = optional(obj, "fields", list, where)
    return MappedField(
        names=strings(obj, "names", where),
        field_id=optional(obj, "field-id", int, where),
        fields=() if nested is None else _fields_from_json(nested),
    )


def _field_to_json(field: MappedField) -> dict[str, Any]:
    obj: dict[str, Any] = {"names": list(field.names)}
    if field.field_id is not None:
        obj["field-id"] = field.field_id
    if field.fields:
        obj["fields"] = [_field_to_json(nested) for nested in field.fields]
    return obj
