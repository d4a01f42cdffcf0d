"""Field ids for columns of files that carry none (spec: Column Projection)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.fields import optional, strings, typed

NAME_MAPPING_PROPERTY = "schema.name-mapping.default"


@dataclass(frozen=True, slots=True)
class MappedField:
    """The names of a column in files, and the mappings of the columns inside it.

    `field_id` is None for columns that the table does not have. Inside lists there is a mapping
    named `element`, inside maps there are `key` and `value`.
    """

    names: tuple[str, ...]
    field_id: int | None = None
    fields: tuple[MappedField, ...] = ()

    @property
    def fields_by_name(self) -> dict[str, MappedField]:
        """The mappings of the columns directly inside this one by each of their names."""
        return _by_name(self.fields)


@dataclass(frozen=True, slots=True)
class NameMapping:
    """The mappings of a table's top-level columns."""

    fields: tuple[MappedField, ...] = ()

    @property
    def fields_by_name(self) -> dict[str, MappedField]:
        """The mappings of the top-level columns by each of their names; a `.` is part of a name."""
        return _by_name(self.fields)


def from_json(obj: Any) -> NameMapping:
    """A name mapping from its JSON array.

    Raises InvalidMetadataError where it is malformed, or gives one name to two columns.
    """
    return NameMapping(_fields_from_json(obj))


def to_json(mapping: NameMapping) -> list[dict[str, Any]]:
    """The JSON array of a name mapping."""
    return [_field_to_json(field) for field in mapping.fields]


def _by_name(fields: tuple[MappedField, ...]) -> dict[str, MappedField]:
    return {name: field for field in fields for name in field.names}


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
