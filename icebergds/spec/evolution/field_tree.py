"""Replaces and rearranges single fields of a schema, at whatever level they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from icebergds.spec.types import IcebergType, ListType, MapType, NestedField, StructType


def replaced(
    fields: tuple[NestedField, ...], field_id: int, change: Callable[[NestedField], NestedField]
) -> tuple[NestedField, ...]:
    """The fields, with the one of this id changed, at whatever level it is."""
    return tuple(
        change(field)
        if field.field_id == field_id
        else replace(field, field_type=_replaced_inside(field.field_type, field_id, change))
        for field in fields
    )


def _replaced_inside(
    field_type: IcebergType, field_id: int, change: Callable[[NestedField], NestedField]
) -> IcebergType:
    match field_type:
        case StructType(fields=fields):
            return replace(field_type, fields=replaced(fields, field_id, change))
        case ListType():
            (element,) = replaced((field_type.element_field,), field_id, change)
            return replace(
                field_type, element_type=element.field_type, element_required=element.required
            )
        case MapType():
            key, value = replaced((field_type.key_field, field_type.value_field), field_id, change)
            return replace(
                field_type,
                key_type=key.field_type,
                value_type=value.field_type,
                value_required=value.required,
            )
        case _:
            return field_type


def rearranged(
    fields: tuple[NestedField, ...],
    field_id: int,
    change: Callable[[tuple[NestedField, ...]], tuple[NestedField, ...]],
) -> tuple[NestedField, ...]:
    """The fields, with those changed among which the one of this id is."""
    if any(field.field_id == field_id for field in fields):
        return change(fields)
    return tuple(
        replace(field, field_type=_rearranged_inside(field.field_type, field_id, change))
        for field in fields
    )


def _rearranged_inside(
    field_type: IcebergType,
    field_id: int,
    change: Callable[[tuple[NestedField, ...]], tuple[NestedField, ...]],
) -> IcebergType:
    match field_type:
        case StructType(fields=fields):
            return replace(field_type, fields=rearranged(fields, field_id, change))
        case ListType(element_type=element):
            return replace(field_type, element_type=_rearranged_inside(element, field_id, change))
        case MapType(key_type=key, value_type=value):
            return replace(
                field_type,
                key_type=_rearranged_inside(key, field_id, change),
                value_type=_rearranged_inside(value, field_id, change),
            )
        case _:
            return field_type
