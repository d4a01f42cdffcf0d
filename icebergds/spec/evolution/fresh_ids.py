"""Assigns fresh ids to the fields of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from icebergds.spec.types import IcebergType, ListType, MapType, NestedField, StructType


def with_fresh_ids(fields: tuple[NestedField, ...], ids: Iterator[int]) -> tuple[NestedField, ...]:
    """The same fields with ids from `ids`, at every level.

    The fields of a struct get their ids before the fields inside them, as other writers do it.
    """
    own_ids = [next(ids) for _ in fields]
    return tuple(
        replace(field, field_id=own_id, field_type=with_fresh_ids_inside(field.field_type, ids))
        for field, own_id in zip(fields, own_ids, strict=True)
    )


def with_fresh_ids_inside(field_type: IcebergType, ids: Iterator[int]) -> IcebergType:
    """The same type with ids from `ids` for the fields inside it."""
    match field_type:
        case StructType(fields=fields):
            return replace(field_type, fields=with_fresh_ids(fields, ids))
        case ListType(element_type=element):
            element_id = next(ids)
            return replace(
                field_type,
                element_id=element_id,
                element_type=with_fresh_ids_inside(element, ids),
            )
        case MapType(key_type=key, value_type=value):
            key_id, value_id = next(ids), next(ids)
            return replace(
                field_type,
                key_id=key_id,
                key_type=with_fresh_ids_inside(key, ids),
                value_id=value_id,
                value_type=with_fresh_ids_inside(value, ids),
            )
        case _:
            return field_type
