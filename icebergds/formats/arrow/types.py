"""Maps Iceberg types to Arrow types, and in-memory values to Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    ScalarType,
    StructType,
    TypeId,
)

FIELD_ID = b"PARQUET:field_id"

_VARIANT = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)
_PRIMITIVES: dict[TypeId, pa.DataType] = {
    TypeId.BOOLEAN: pa.bool_(),
    TypeId.INT: pa.int32(),
    TypeId.LONG: pa.int64(),
    TypeId.FLOAT: pa.float32(),
    TypeId.DOUBLE: pa.float64(),
    TypeId.DATE: pa.date32(),
    TypeId.TIME: pa.time64("us"),
    TypeId.TIMESTAMP: pa.timestamp("us"),
    TypeId.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    TypeId.TIMESTAMP_NS: pa.timestamp("ns"),
    TypeId.TIMESTAMPTZ_NS: pa.timestamp("ns", tz="UTC"),
    TypeId.STRING: pa.string(),
    TypeId.UUID: pa.binary(16),
    TypeId.BINARY: pa.binary(),
    TypeId.UNKNOWN: pa.null(),
    TypeId.VARIANT: _VARIANT,
}


def to_arrow(field_type: IcebergType) -> pa.DataType:
    """The Arrow type that holds a column of an Iceberg type.

    Nullability follows `required` at every level; nested fields carry their ids in the metadata
    key `PARQUET:field_id`. A variant is a struct of its two binaries, without ids.
    """
    match field_type:
        case StructType(fields=fields):
            return pa.struct([field_to_arrow(field) for field in fields])
        case ListType():
            return pa.list_(field_to_arrow(field_type.element_field))
        case MapType():
            return pa.map_(
                field_to_arrow(field_type.key_field), field_to_arrow(field_type.value_field)
            )
        case _:
            return _scalar_to_arrow(field_type)


def field_to_arrow(field: NestedField) -> pa.Field:
    """The Arrow field of an Iceberg field, with its id."""
    return pa.field(
        field.name,
        to_arrow(field.field_type),
        nullable=field.optional,
        metadata={FIELD_ID: str(field.field_id).encode()},
    )


def schema_to_arrow(schema: Schema) -> pa.Schema:
    """The Arrow schema of an Iceberg schema."""
    return pa.schema([field_to_arrow(field) for field in schema.fields])


def to_array(field_type: IcebergType, values: Sequence[Any]) -> pa.Array:
    """An Arrow array of in-memory values (see `spec.types`); None is null.

    A struct is a tuple with a value for each of the type's fields.

    Raises:
        pa.ArrowInvalid, pa.ArrowTypeError, OverflowError: a value does not fit the type.
    """
    arrow_type = to_arrow(field_type)
    match field_type:
        case StructType(fields=fields):
            columns = [
                to_array(field.field_type, [None if v is None else v[at] for v in values])
                for at, field in enumerate(fields)
            ]
            return pa.StructArray.from_arrays(
                columns, fields=list(arrow_type), mask=_null_mask(values)
            )
        case ListType():
            elements = [element for v in values if v is not None for element in v]
            return pa.ListArray.from_arrays(
                _offsets(values),
                to_array(field_type.element_type, elements),
                type=arrow_type,
                mask=_null_mask(values),
            )
        case MapType():
            entries = [entry for v in values if v is not None for entry in v]
            return pa.MapArray.from_arrays(
                _offsets(values),
                to_array(field_type.key_type, [key for key, _ in entries]),
                to_array(field_type.value_type, [value for _, value in entries]),
                type=arrow_type,
                mask=_null_mask(values),
            )
        case _:
            return pa.array(values, arrow_type)


def in_memory_values(array: pa.Array) -> list[Any]:
    """The in-memory values of a scalar column in the Arrow type of its type; None for null."""
    if pa.types.is_date32(array.type):
        array = array.view(pa.int32())
    elif pa.types.is_timestamp(array.type) or pa.types.is_time64(array.type):
        array = array.view(pa.int64())
    return list(array.to_pylist())


def repeat(field_type: IcebergType, value: Any, length: int) -> pa.Array:
    """An array of one in-memory value, `length` times."""
    if value is None:
        return pa.nulls(length, to_arrow(field_type))
    one = to_array(field_type, [value])
    return pc.take(one, pa.repeat(pa.scalar(0, pa.int8()), length))


def default_value(field: NestedField) -> Any:
    """The in-memory value of rows written before the field was added; None for null.

    A struct's default is empty; its values are the defaults of its fields (spec: Default values).
    """
    return _complete_default(field.field_type, field.initial_default)


def field_id_of(field: pa.Field) -> int | None:
    """The Iceberg id in an Arrow field's metadata; writers without ids may store -1."""
    text = (field.metadata or {}).get(FIELD_ID)
    if text is None:
        return None
    field_id = int(text)
    return field_id if field_id >= 0 else None


def is_text(arrow_type: pa.DataType) -> bool:
    """Whether an Arrow type is a string, of any layout."""
    return bool(
        pa.types.is_string(arrow_type)
        or pa.types.is_large_string(arrow_type)
        or pa.types.is_string_view(arrow_type)
    )


def is_binary(arrow_type: pa.DataType) -> bool:
    """Whether an Arrow type is binary, of any layout or a fixed size."""
    return bool(
        pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_binary_view(arrow_type)
        or pa.types.is_fixed_size_binary(arrow_type)
    )


def _scalar_to_arrow(field_type: ScalarType) -> pa.DataType:
    match field_type:
        case DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case FixedType(length=length):
            return pa.binary(length)
        case GeometryType() | GeographyType():
            return pa.binary()
        case PrimitiveType(type_id=type_id):
            return _PRIMITIVES[type_id]


def _null_mask(values: Sequence[Any]) -> pa.BooleanArray:
    return pa.array([v is None for v in values], pa.bool_())


def _offsets(values: Sequence[Any]) -> pa.Int32Array:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + (0 if value is None else len(value)))
    return pa.array(offsets, pa.int32())


def _complete_default(field_type: IcebergType, value: Any) -> Any:
    if value is None or not isinstance(field_type, StructType):
        return value
    stored = dict(enumerate(value))
    return tuple(
        _complete_default(field.field_type, stored.get(at))
        if stored.get(at) is not None
        else default_value(field)
        for at, field in enumerate(field_type.fields)
    )
