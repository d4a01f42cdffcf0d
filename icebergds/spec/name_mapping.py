"""Maps column names to field ids, for files without field ids (spec: Column Projection)."""

from __future__ import annotations

from dataclasses import dataclass


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
