"""Converts batches from storage types to the exact Arrow types that Spark requires.

Columns that already have the required type are passed through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.arrow.arrays import storage, with_fields, without_nulls
from icebergds.formats.arrow.converters import (
    Converter,
    FromColumn,
    ListConverter,
    MapConverter,
    StructConverter,
)
from icebergds.scan.read_plan import PLAIN_TYPES, ShownTypes
from icebergds.spark.types import spark_arrow_schema, spark_srid
from icebergds.spec.schema import Schema
from icebergds.spec.types import VARIANT, IcebergType, ListType, MapType, StructType, TypeId

_HEX_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
# Positions of the 32 hex digits among the 36 characters of a UUID.
_DIGIT_PLACES = np.array([i for i in range(36) if i not in (8, 13, 18, 23)])


def shaper(
    schema: Schema, shown: ShownTypes = PLAIN_TYPES
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A function that converts batches in the storage types of `schema` to batches for Spark.

    Args:
        shown: the types that Spark gets.
    """
    target = spark_arrow_schema(schema, shown)
    converters = [
        _converter(field.field_type, wanted.type)
        for field, wanted in zip(schema.fields, target, strict=True)
    ]

    def shape(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            converter.convert(column)
            for column, converter in zip(batch.columns, converters, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=target)

    return shape


def _converter(field_type: IcebergType, target: pa.DataType) -> Converter:
    # Arrow ignores the nullability of nested fields and the names of list items when it compares
    # types, so nested arrays are always rebuilt; that copies no values.
    match field_type:
        case StructType(fields=fields):
            sources = (
                FromColumn(at, _converter(each.field_type, target.field(at).type))
                for at, each in enumerate(fields)
            )
            return StructConverter(tuple(sources), target)
        case ListType():
            return ListConverter(_converter(field_type.element_type, target.value_type), target)
        case MapType():
            key = _converter(field_type.key_type, target.key_type)
            return MapConverter(key, _converter(field_type.value_type, target.item_type), target)
        case _ if field_type == VARIANT:
            binary = _Scalars(TypeId.BINARY, pa.binary())
            # Iceberg stores the metadata first, Spark the value.
            return StructConverter((FromColumn(1, binary), FromColumn(0, binary)), target)
        case _ if (srid := spark_srid(field_type)) is not None:
            return _Spatial(srid, target)
        case _:
            return _Scalars(field_type.type_id, target)


@dataclass(frozen=True, slots=True)
class _Scalars:
    type_id: TypeId
    target: pa.DataType

    def convert(self, array: pa.Array) -> pa.Array:
        match self.type_id:
            case TypeId.UUID:
                return _uuid_text(array)
            case TypeId.TIMESTAMP_NS | TypeId.TIMESTAMPTZ_NS if pa.types.is_timestamp(self.target):
                # A cast would round times before 1970 up.
                return pc.floor_temporal(array, unit="microsecond").cast(self.target)
            case TypeId.TIME if pa.types.is_time(self.target):
                return array.cast(self.target)
            case TypeId.TIME | TypeId.TIMESTAMP_NS | TypeId.TIMESTAMPTZ_NS:
                return array.view(pa.int64())
            case _:
                return array if array.type == self.target else array.cast(self.target)


@dataclass(frozen=True, slots=True)
class _Spatial:
    """Gives WKB the form of Spark's geometries and geographies."""

    srid: int
    target: pa.StructType

    def convert(self, array: pa.Array) -> pa.Array:
        array = storage(array)
        srids = pa.repeat(pa.scalar(self.srid, pa.int32()), len(array))
        shapes = without_nulls(array) if array.null_count else array
        return with_fields(array, self.target, [srids, shapes])


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
