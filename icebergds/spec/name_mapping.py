"""Maps column names to field ids, for files without field ids (spec: Column Projection).

The mapping of a table is kept in step with its schema.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, children


@dataclass(frozen=True, slots=True)
class MappedField:
    """The names of a column in files, and the mappings of the columns inside it.

    `field_id` is None for columns that the table does not have. Lists contain a mapping named
    `element`, maps contain `key` and `value`.
    """

    names: tuple[str, ...]
    field_id: int | None = None
    fields: tuple[MappedField, ...] = ()

    @property
    def fields_by_name(self) -> dict[str, MappedField]:
        """The mappings of the columns directly inside this one, by each of their names."""
        return _by_name(self.fields)


@dataclass(frozen=True, slots=True)
class NameMapping:
    """The mappings of a table's top-level columns."""

    fields: tuple[MappedField, ...] = ()

    @property
    def fields_by_name(self) -> dict[str, MappedField]:
        """The mappings of top-level columns, by each of their names; a `.` is part of a name."""
        return _by_name(self.fields)


def _by_name(fields: tuple[MappedField, ...]) -> dict[str, MappedField]:
    return {name: field for field in fields for name in field.names}


def updated_mapping(mapping: NameMapping, schema: Schema) -> NameMapping:
    """The mapping with the current names of all columns of a schema.

    Columns keep their earlier names, which files have that were written under them; also those that
    were deleted do. A new column does not take such a name: it would read another one's values.
    """
    return NameMapping(_fields(mapping.fields, schema.fields))


def _fields(
    mapped: tuple[MappedField, ...], fields: tuple[NestedField, ...]
) -> tuple[MappedField, ...]:
    known = {entry.field_id: entry for entry in mapped if entry.field_id is not None}
    # What maps a name to no column gives way.
    taken = {name for entry in known.values() for name in entry.names}
    updated: dict[int, MappedField] = dict(known)
    for field in fields:
        entry = known.get(field.field_id, MappedField((), field.field_id))
        names = entry.names if field.name in taken else (*entry.names, field.name)
        taken.add(field.name)
        inner = _fields(entry.fields, children(field.field_type))
        if names:
            updated[field.field_id] = replace(entry, names=names, fields=inner)
    ignored = [
        replace(entry, names=tuple(name for name in entry.names if name not in taken))
        for entry in mapped
        if entry.field_id is None
    ]
    return (*updated.values(), *(entry for entry in ignored if entry.names))
