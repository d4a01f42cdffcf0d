"""Prepares batches for Arrow's ORC writer, which stores wrong rows of some nested columns."""

from __future__ import annotations

import pyarrow as pa

from icebergds.formats.arrow.arrays import with_child, with_entries, with_fields


def orc_table(batch: pa.RecordBatch) -> pa.Table:
    """The rows of a batch in a form that Arrow's ORC writer stores correctly.

    All fields become nullable: ORC types do not have required fields either.
    """
    fields = [_optional(field) for field in batch.schema]
    columns = [
        _with_nulls_inside(_unsliced(column), field.type)
        for column, field in zip(batch.columns, fields, strict=True)
    ]
    return pa.table(columns, pa.schema(fields))


def _optional(field: pa.Field) -> pa.Field:
    """The field, nullable at every level except for map keys."""
    return field.with_type(_with_optional(field.type)).with_nullable(True)


def _with_optional(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(arrow_type):
        return pa.struct([_optional(field) for field in arrow_type])
    if pa.types.is_map(arrow_type):
        key = arrow_type.key_field
        key_field = key.with_type(_with_optional(key.type))
        return pa.map_(key_field, _optional(arrow_type.item_field))
    if pa.types.is_list(arrow_type):
        return pa.list_(_optional(arrow_type.value_field))
    return arrow_type


def _unsliced(array: pa.Array) -> pa.Array:
    """Copies nested columns: from slices of structs, Arrow's ORC writer stores other rows."""
    return pa.concat_arrays([array, array.slice(0, 0)]) if pa.types.is_nested(array.type) else array


def _with_nulls_inside(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The same values, with nulls in all fields of null structs, even in required ones.

    ORC stores no values there. Arrow's writer leaves them out only if the struct's parent has nulls
    too; otherwise it shifts the values of all later rows.
    """
    if pa.types.is_struct(target):
        parts = [
            _with_nulls_inside(part, field.type)
            for part, field in zip(array.flatten(), target, strict=True)
        ]
        return with_fields(array, target, parts)
    if pa.types.is_map(target):
        fields = [target.key_field, target.item_field]
        keys, items = (
            _with_nulls_inside(array.values.field(at), field.type)
            for at, field in enumerate(fields)
        )
        return with_entries(array, target, keys, items)
    if pa.types.is_list(target):
        return with_child(array, target, _with_nulls_inside(array.values, target.value_type))
    return array
