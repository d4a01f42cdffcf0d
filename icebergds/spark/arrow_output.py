"""Converts batches from storage types to the exact Arrow types that Spark requires.

Columns that already have the required type are passed through.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.spark.types import spark_arrow_schema, spark_arrow_type
from icebergds.spec.schema import Schema
from icebergds.spec.types import IcebergType, ListType, MapType, StructType, TypeId

_HEX_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
# Positions of the 32 hex digits among the 36 characters of a UUID.
_DIGIT_PLACES = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])


def shaper(schema: Schema) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A function that converts batches in the storage types of `schema` to batches for Spark."""
    target = spark_arrow_schema(schema)
    types = [field.field_type for field in schema.fields]

    def shape(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            _shape(column, field_type)
            for column, field_type in zip(batch.columns, types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=target)

    return shape


def _shape(array: pa.Array, field_type: IcebergType) -> pa.Array:
    target = spark_arrow_type(field_type)
    # Arrow ignores the nullability of nested fields and the names of list items when it compares
    # types, so nested arrays are always rebuilt; that copies no values.
    match field_type:
        case StructType(fields=fields):
            children = [
                _shape(_child(array, index), field.field_type) for index, field in enumerate(fields)
            ]
            if not children:
                return array
            return pa.StructArray.from_arrays(children, fields=list(target), mask=_null_mask(array))
        case ListType():
            return _rebuild_list(array, _shape(array.values, field_type.element_type), target)
        case MapType():
            keys = _shape(array.keys, field_type.key_type)
            items = _shape(array.items, field_type.value_type)
            return _rebuild_map(array, keys, items, target)
        case _:
            return _shape_scalar(array, field_type.type_id, target)


def _shape_scalar(array: pa.Array, type_id: TypeId, target: pa.DataType) -> pa.Array:
    match type_id:
        case TypeId.UUID:
            return _uuid_text(array)
        case TypeId.TIME | TypeId.TIMESTAMP_NS | TypeId.TIMESTAMPTZ_NS:
            return array.view(pa.int64())
        case TypeId.VARIANT:
            return pa.StructArray.from_arrays(
                [_child(array, 1), _child(array, 0)], fields=list(target), mask=_null_mask(array)
            )
        case _:
            return array if array.type == target else array.cast(target)


def _child(array: pa.StructArray, index: int) -> pa.Array:
    """A child of a struct array, sliced to the offset and length of the struct."""
    return array.field(index)


def _null_mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _rebuild_list(array: pa.ListArray, values: pa.Array, target: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(
        target,
        len(array),
        array.buffers()[:2],
        null_count=array.null_count,
        offset=array.offset,
        children=[values],
    )


def _rebuild_map(
    array: pa.MapArray, keys: pa.Array, items: pa.Array, target: pa.MapType
) -> pa.Array:
    entries = pa.StructArray.from_arrays(
        [keys, items], fields=[target.key_field, target.item_field]
    )
    return pa.Array.from_buffers(
        target,
        len(array),
        array.buffers()[:2],
        null_count=array.null_count,
        offset=array.offset,
        children=[entries],
    )


def _uuid_text(array: pa.Array) -> pa.Array:
    count = len(array)
    if count == 0:
        return pa.array([], pa.string())
    _, data = array.buffers()
    octets = np.frombuffer(data, dtype=np.uint8)[array.offset * 16 : (array.offset + count) * 16]
    text = np.full((count, 36), ord("-"), dtype=np.uint8)
    nibbles = np.empty((count, 32), dtype=np.uint8)
    nibbles[:, 0::2] = (octets >> 4).reshape(count, 16)
    nibbles[:, 1::2] = (octets & 15).reshape(count, 16)
    text[:, _DIGIT_PLACES] = _HEX_DIGITS[nibbles]
    offsets = np.arange(0, (count + 1) * 36, 36, dtype=np.int32)
    plain = pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )
    if not array.null_count:
        return plain
    return pc.if_else(array.is_valid(), plain, pa.scalar(None, pa.string()))
