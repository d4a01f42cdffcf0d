"""Columns in the form in which Arrow's ORC writer stores the rows that they hold, and no others."""

from __future__ import annotations

import pyarrow as pa


def orc_table(batch: pa.RecordBatch) -> pa.Table:
    """The same rows to be given to Arrow's ORC writer.

    Fields lose their mark as required, which ORC's types do not have either.
    """
    fields = [_optional(field) for field in batch.schema]
    columns = [
        _with_nulls_inside(_unsliced(column), field.type)
        for column, field in zip(batch.columns, fields, strict=True)
    ]
    return pa.table(columns, pa.schema(fields))


def _optional(field: pa.Field) -> pa.Field:
    """A field in which every field may be null, but keys of maps."""
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
    """A copy of nested columns: of slices of structs, Arrow's ORC writer takes other rows."""
    return pa.concat_arrays([array, array.slice(0, 0)]) if pa.types.is_nested(array.type) else array


def _with_nulls_inside(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The same values, with nulls in the fields of null structs, also in fields that are required.

    ORC stores no values there. Arrow's writer leaves them out only where what is around the struct
    has nulls as well; elsewhere it moves the values of all later rows.
    """
    if pa.types.is_struct(target):
        parts = [
            _with_nulls_inside(part, field.type)
            for part, field in zip(array.flatten(), target, strict=True)
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=mask)
    if pa.types.is_map(target):
        fields = [target.key_field, target.item_field]
        entries = [
            _with_nulls_inside(array.values.field(at), field.type)
            for at, field in enumerate(fields)
        ]
        return _around(array, target, pa.StructArray.from_arrays(entries, fields=fields))
    if pa.types.is_list(target):
        return _around(array, target, _with_nulls_inside(array.values, target.value_type))
    return array


def _around(array: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or map with the lengths and nulls of another."""
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, children=[child]
    )
