"""Maps Iceberg types to Spark types and to the exact Arrow types that Spark requires.

Types without an exact counterpart in Spark, and variant:

=============================  ============================================================
uuid                           string, lower case with hyphens
fixed(L)                       binary
time                           bigint, microseconds since midnight
timestamp_ns, timestamptz_ns   bigint, nanoseconds since 1970-01-01T00:00 (UTC if tz)
geometry, geography            binary, well-known binary (WKB)
unknown                        void
variant                        variant
=============================  ============================================================
"""

from __future__ import annotations

from typing import TypeVar, cast

import pyarrow as pa
from pyspark.sql import types as spark

from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TypeId,
)

_Type = TypeVar("_Type", bound=spark.DataType)

_SPARK_TYPES: dict[TypeId, spark.DataType] = {
    TypeId.BOOLEAN: spark.BooleanType(),
    TypeId.INT: spark.IntegerType(),
    TypeId.LONG: spark.LongType(),
    TypeId.FLOAT: spark.FloatType(),
    TypeId.DOUBLE: spark.DoubleType(),
    TypeId.DATE: spark.DateType(),
    # Spark has a TIME type, but refuses queries as simple as count() on it by default.
    TypeId.TIME: spark.LongType(),
    TypeId.TIMESTAMP: spark.TimestampNTZType(),
    TypeId.TIMESTAMPTZ: spark.TimestampType(),
    TypeId.TIMESTAMP_NS: spark.LongType(),
    TypeId.TIMESTAMPTZ_NS: spark.LongType(),
    TypeId.STRING: spark.StringType(),
    TypeId.UUID: spark.StringType(),
    TypeId.FIXED: spark.BinaryType(),
    TypeId.BINARY: spark.BinaryType(),
    TypeId.UNKNOWN: spark.NullType(),
    TypeId.VARIANT: spark.VariantType(),
    TypeId.GEOMETRY: spark.BinaryType(),
    TypeId.GEOGRAPHY: spark.BinaryType(),
}

READ_AS_ANOTHER_TYPE = frozenset(
    {TypeId.UUID, TypeId.TIMESTAMP_NS, TypeId.TIMESTAMPTZ_NS, TypeId.TIME, TypeId.FIXED}
)
"""Types that Spark reads as another type: a literal of Spark's is not a value of the column."""

# Spark prescribes the order of the fields and the field metadata that marks a variant.
_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)

_ARROW_TYPES: dict[TypeId, pa.DataType] = {
    TypeId.BOOLEAN: pa.bool_(),
    TypeId.INT: pa.int32(),
    TypeId.LONG: pa.int64(),
    TypeId.FLOAT: pa.float32(),
    TypeId.DOUBLE: pa.float64(),
    TypeId.DATE: pa.date32(),
    TypeId.TIME: pa.int64(),
    TypeId.TIMESTAMP: pa.timestamp("us"),
    TypeId.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    TypeId.TIMESTAMP_NS: pa.int64(),
    TypeId.TIMESTAMPTZ_NS: pa.int64(),
    TypeId.STRING: pa.string(),
    TypeId.UUID: pa.string(),
    TypeId.FIXED: pa.binary(),
    TypeId.BINARY: pa.binary(),
    TypeId.UNKNOWN: pa.null(),
    TypeId.VARIANT: _VARIANT,
    TypeId.GEOMETRY: pa.binary(),
    TypeId.GEOGRAPHY: pa.binary(),
}


def spark_schema(schema: Schema) -> spark.StructType:
    """The Spark schema of an Iceberg schema; the doc of a field becomes its comment."""
    return _spark_struct(schema.fields)


def spark_type(field_type: IcebergType) -> spark.DataType:
    """The Spark type of an Iceberg type."""
    match field_type:
        case StructType(fields=fields):
            return _spark_struct(fields)
        case ListType():
            return spark.ArrayType(
                spark_type(field_type.element_type), not field_type.element_required
            )
        case MapType():
            return spark.MapType(
                spark_type(field_type.key_type),
                spark_type(field_type.value_type),
                not field_type.value_required,
            )
        case DecimalType(precision=precision, scale=scale):
            return spark.DecimalType(precision, scale)
        case _:
            return _SPARK_TYPES[field_type.type_id]


def all_nullable(data_type: _Type) -> _Type:
    """Makes a type nullable at every level, as Spark reads files."""
    match data_type:
        case spark.StructType(fields=fields):
            nullable: spark.DataType = spark.StructType(
                [
                    spark.StructField(x.name, all_nullable(x.dataType), True, x.metadata)
                    for x in fields
                ]
            )
        case spark.ArrayType():
            nullable = spark.ArrayType(all_nullable(data_type.elementType))
        case spark.MapType():
            nullable = spark.MapType(
                all_nullable(data_type.keyType), all_nullable(data_type.valueType)
            )
        case _:
            nullable = data_type
    return cast(_Type, nullable)


def spark_arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema that Spark requires of batches, including nullability at every level."""
    return pa.schema([_arrow_field(field) for field in schema.fields])


def spark_arrow_type(field_type: IcebergType) -> pa.DataType:
    """The Arrow type that Spark requires for an Iceberg type."""
    match field_type:
        case StructType(fields=fields):
            return pa.struct([_arrow_field(field) for field in fields])
        case ListType():
            return pa.list_(_arrow_field(field_type.element_field))
        case MapType():
            return pa.map_(
                spark_arrow_type(field_type.key_type), _arrow_field(field_type.value_field)
            )
        case DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case _:
            return _ARROW_TYPES[field_type.type_id]


def _spark_struct(fields: tuple[NestedField, ...]) -> spark.StructType:
    return spark.StructType(
        [
            spark.StructField(
                field.name,
                spark_type(field.field_type),
                not field.required,
                {"comment": field.doc} if field.doc else None,
            )
            for field in fields
        ]
    )


def _arrow_field(field: NestedField) -> pa.Field:
    return pa.field(field.name, spark_arrow_type(field.field_type), nullable=not field.required)
