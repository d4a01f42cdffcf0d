"""Gives the columns of a table that is replaced their ids (spec: Schema Evolution)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from icebergds.spec.evolution.fresh_ids import with_fresh_ids_inside
from icebergds.spec.evolution.promotion import can_promote
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    is_scalar,
)


def replacing_schema(schema: Schema, new: Schema, last_column_id: int) -> Schema:
    """A new schema whose columns have ids that fit the history of the table that it replaces.

    A column keeps the id of the column of the same name if the type is the same or a wider one;
    other columns get ids that no column ever had.

    Args:
        schema: the table's schema so far.
        new: its ids and identifier fields do not matter.
        last_column_id: the greatest id that the table has ever assigned to a column.
    """
    ids = count(last_column_id + 1)
    fields = _fields(schema.fields, new.fields, ids)
    return replace(new, fields=fields, identifier_field_ids=())


def _fields(
    known: tuple[NestedField, ...], new: tuple[NestedField, ...], ids: Iterator[int]
) -> tuple[NestedField, ...]:
    by_name = {field.name: field for field in known}
    return tuple(_field(by_name.get(field.name), field, ids) for field in new)


def _field(known: NestedField | None, new: NestedField, ids: Iterator[int]) -> NestedField:
    kept = None if known is None else _type(known.field_type, new.field_type, ids)
    if known is not None and kept is not None:
        return replace(new, field_id=known.field_id, field_type=kept)
    own_id = next(ids)
    return replace(new, field_id=own_id, field_type=with_fresh_ids_inside(new.field_type, ids))


def _type(known: IcebergType, new: IcebergType, ids: Iterator[int]) -> IcebergType | None:
    """The new type with the ids of the known one; None if a column cannot become this."""
    match known, new:
        case StructType(), StructType():
            return replace(new, fields=_fields(known.fields, new.fields, ids))
        case ListType(), ListType():
            element = _type(known.element_type, new.element_type, ids)
            if element is None:
                return None
            return replace(new, element_id=known.element_id, element_type=element)
        case MapType(), MapType():
            value = _type(known.value_type, new.value_type, ids)
            key = _type(known.key_type, new.key_type, ids)
            if key is None or value is None:
                return None
            return replace(
                new, key_id=known.key_id, key_type=key, value_id=known.value_id, value_type=value
            )
        case _ if known == new:
            return new
        case _ if is_scalar(known) and is_scalar(new) and can_promote(known, new, 2):
            return new
        case _:
            return None
