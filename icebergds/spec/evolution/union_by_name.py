"""Merges the columns of incoming data into a table's schema by name (spec: Schema Evolution)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from icebergds.errors import InvalidDataError
from icebergds.spec.evolution.fresh_ids import with_fresh_ids_inside
from icebergds.spec.evolution.promotion import can_promote
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    UNKNOWN,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    is_scalar,
)


def merge_schema(
    schema: Schema, incoming: Schema, last_column_id: int, *, case_sensitive: bool = True
) -> tuple[Schema, int]:
    """Evolves a table's schema so that it can hold data of another schema.

    Columns are matched by name at every level. Columns that the table lacks are added at the end of
    their struct, as optional; types are promoted if the incoming type is wider. Nothing is
    narrowed, removed, renamed, reordered or made optional. Incoming ids, defaults and the docs of
    existing columns are ignored.

    Args:
        last_column_id: the greatest id that the table has ever assigned to a column.
        case_sensitive: whether names that differ in case are different columns.

    Returns:
        The schema (the same object if nothing changes) and the last column id.

    Raises:
        InvalidDataError: neither of two types can be promoted to the other, a map's key would
            change, or a name is ambiguous.
    """
    merge = _Merge(count(last_column_id + 1), case_sensitive)
    fields = merge.struct(schema.fields, incoming.fields, ())
    if fields == schema.fields:
        return schema, last_column_id
    merged = replace(schema, fields=fields)
    return merged, max(last_column_id, merged.highest_field_id)


class _Merge:
    """One merge: the source of fresh ids, and how names are compared."""

    def __init__(self, ids: Iterator[int], case_sensitive: bool) -> None:
        self._ids = ids
        self._case_sensitive = case_sensitive

    def struct(
        self,
        fields: tuple[NestedField, ...],
        incoming: tuple[NestedField, ...],
        path: tuple[str, ...],
    ) -> tuple[NestedField, ...]:
        """The merged fields of a struct, followed by new ones; `path` is that of the struct."""
        matches = self._matches(fields, incoming, path)
        merged = [
            self._field(field, matches[field.name], path) if field.name in matches else field
            for field in fields
        ]
        matched = {id(match) for match in matches.values()}
        added = [self._new(field) for field in incoming if id(field) not in matched]
        return (*merged, *added)

    def _matches(
        self,
        fields: tuple[NestedField, ...],
        incoming: tuple[NestedField, ...],
        path: tuple[str, ...],
    ) -> dict[str, NestedField]:
        """Maps names of the table to the incoming fields that match them."""
        exact = {field.name for field in fields}
        by_key: dict[str, list[str]] = {}
        for field in fields:
            by_key.setdefault(self._key(field.name), []).append(field.name)
        matches: dict[str, NestedField] = {}
        seen: set[str] = set()
        for field in incoming:
            key = self._key(field.name)
            if key in seen:
                raise InvalidDataError(
                    f"the data has more than one column {_dotted(path, field.name)!r}"
                    f"{self._case_note()}"
                )
            seen.add(key)
            names = [field.name] if field.name in exact else by_key.get(key, [])
            if len(names) > 1:
                raise InvalidDataError(
                    f"column {_dotted(path, field.name)!r} of the data is ambiguous: ignoring "
                    f"case, it matches {names}; use the exact name of the table's column"
                )
            if names:
                matches[names[0]] = field
        return matches

    def _field(
        self, field: NestedField, incoming: NestedField, path: tuple[str, ...]
    ) -> NestedField:
        merged = self._type(field.field_type, incoming.field_type, (*path, field.name))
        return field if merged == field.field_type else replace(field, field_type=merged)

    def _type(
        self, known: IcebergType, incoming: IcebergType, path: tuple[str, ...]
    ) -> IcebergType:
        match known, incoming:
            case StructType(), StructType():
                return replace(known, fields=self.struct(known.fields, incoming.fields, path))
            case ListType(), ListType():
                element = self._type(known.element_type, incoming.element_type, (*path, "element"))
                return replace(known, element_type=element)
            case MapType(), MapType():
                key = self._type(known.key_type, incoming.key_type, (*path, "key"))
                if key != known.key_type:
                    raise InvalidDataError(
                        f"column {'.'.join(path)!r}: the key of a map cannot change from "
                        f"{known.key_type} to {incoming.key_type}; cast the data"
                    )
                value = self._type(known.value_type, incoming.value_type, (*path, "value"))
                return replace(known, value_type=value)
            case _ if incoming == UNKNOWN:
                # Data with only nulls fits every type.
                return known
            case _ if known == UNKNOWN:
                return self._new_type(incoming)
            case _ if is_scalar(known) and is_scalar(incoming):
                # Not the promotions of version 3, which change values (a date to a timestamp).
                if can_promote(incoming, known, 2):
                    return known
                if can_promote(known, incoming, 2):
                    return incoming
        raise InvalidDataError(
            f"column {'.'.join(path)!r} is {known} in the table and {incoming} in the data, and "
            "neither is widened to the other by this; cast the data"
        )

    def _new(self, field: NestedField) -> NestedField:
        return NestedField(
            next(self._ids), field.name, self._new_type(field.field_type), doc=field.doc
        )

    def _new_type(self, field_type: IcebergType) -> IcebergType:
        return with_fresh_ids_inside(all_optional(field_type), self._ids)

    def _key(self, name: str) -> str:
        return name if self._case_sensitive else name.lower()

    def _case_note(self) -> str:
        return "" if self._case_sensitive else ", ignoring case"


def all_optional(field_type: IcebergType) -> IcebergType:
    """The type with all fields optional, except those inside the keys of maps."""
    match field_type:
        case StructType(fields=fields):
            return StructType(
                tuple(
                    NestedField(f.field_id, f.name, all_optional(f.field_type), doc=f.doc)
                    for f in fields
                )
            )
        case ListType():
            return ListType(field_type.element_id, all_optional(field_type.element_type))
        case MapType():
            # The fields of a key struct identify the key: required ones stay required.
            return MapType(
                field_type.key_id,
                field_type.key_type,
                field_type.value_id,
                all_optional(field_type.value_type),
            )
        case _:
            return field_type


def _dotted(path: tuple[str, ...], name: str) -> str:
    return ".".join((*path, name))
