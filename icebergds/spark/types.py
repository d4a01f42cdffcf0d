"""Maps Iceberg types to Spark types and to the exact Arrow types that Spark requires.

Types without an exact counterpart in Spark, and variant:

=============================  ============================================================
uuid                           string, lower case with hyphens
fixed(L)                       binary
timestamp_ns, timestamptz_ns   bigint, nanoseconds since 1970-01-01T00:00 (UTC if tz)
time                           bigint, microseconds since midnight
unknown                        void
variant                        variant
=============================  ============================================================

Reads may ask for other types in the place of bigint (`ShownTypes`). Geometries and geographies are
Spark's own from Spark 4.2 on, if Spark knows their coordinate reference system, and otherwise
well-known binary (WKB).
"""

from __future__ import annotations

from typing import TypeVar, cast

import pyarrow as pa
import pyspark
from pyspark.sql import types as spark

from icebergds.formats.arrow.spatial import spatial_struct, srid_of
from icebergds.scan.read_plan import PLAIN_TYPES, ShownTypes
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    TIME,
    DecimalType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TypeId,
)

_Type = TypeVar("_Type", bound=spark.DataType)

# Spark 4.1 has geometries and geographies, but refuses them unless a setting is on.
_HAS_SHAPES = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)

_SPARK_TYPES: dict[TypeId, spark.DataType] = {
    TypeId.BOOLEAN: spark.BooleanType(),
    TypeId.INT: spark.IntegerType(),
    TypeId.LONG: spark.LongType(),
    TypeId.FLOAT: spark.FloatType(),
    TypeId.DOUBLE: spark.DoubleType(),
    TypeId.DATE: spark.DateType(),
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
}

READ_AS_ANOTHER_TYPE = frozenset(
    {TypeId.UUID, TypeId.TIMESTAMP_NS, TypeId.TIMESTAMPTZ_NS, TypeId.FIXED}
)
"""Types that Spark reads as another type: a literal of Spark's is not a value of the column.

Whole numbers are no values of times, so that these need not be among them.
"""

_MICROS = {TypeId.TIMESTAMP_NS: TypeId.TIMESTAMP, TypeId.TIMESTAMPTZ_NS: TypeId.TIMESTAMPTZ}

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
}


def spark_srid(field_type: IcebergType) -> int | None:
    """The SRID of a geometry or geography that Spark has as its own type; None if it has none."""
    return srid_of(field_type) if _HAS_SHAPES else None


def spark_schema(schema: Schema, shown: ShownTypes = PLAIN_TYPES) -> spark.StructType:
    """The Spark schema of an Iceberg schema; the doc of a field becomes its comment."""
    return _spark_struct(schema.fields, shown)


def spark_type(field_type: IcebergType, shown: ShownTypes = PLAIN_TYPES) -> spark.DataType:
    """The Spark type of an Iceberg type."""
    match field_type:
        case StructType(fields=fields):
            return _spark_struct(fields, shown)
        case ListType():
            return spark.ArrayType(
                spark_type(field_type.element_type, shown), not field_type.element_required
            )
        case MapType():
            return spark.MapType(
                spark_type(field_type.key_type, shown),
                spark_type(field_type.value_type, shown),
                not field_type.value_required,
            )
        case DecimalType(precision=precision, scale=scale):
            return spark.DecimalType(precision, scale)
        case GeometryType() | GeographyType():
            srid = spark_srid(field_type)
            if srid is None:
                return spark.BinaryType()
            is_flat = isinstance(field_type, GeometryType)
            return spark.GeometryType(srid) if is_flat else spark.GeographyType(srid)
        case _ if field_type == TIME and shown.times:
            return spark.TimeType(6)
        case _:
            return _SPARK_TYPES[_shown_id(field_type.type_id, shown)]


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


def spark_arrow_schema(schema: Schema, shown: ShownTypes = PLAIN_TYPES) -> pa.Schema:
    """The Arrow schema that Spark requires of batches, including nullability at every level."""
    return pa.schema([_arrow_field(field, shown) for field in schema.fields])


def spark_arrow_type(field_type: IcebergType, shown: ShownTypes = PLAIN_TYPES) -> pa.DataType:
    """The Arrow type that Spark requires for an Iceberg type."""
    match field_type:
        case StructType(fields=fields):
            return pa.struct([_arrow_field(field, shown) for field in fields])
        case ListType():
            return pa.list_(_arrow_field(field_type.element_field, shown))
        case MapType():
            return pa.map_(
                spark_arrow_type(field_type.key_type, shown),
                _arrow_field(field_type.value_field, shown),
            )
        case DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case GeometryType() | GeographyType():
            srid = spark_srid(field_type)
            return pa.binary() if srid is None else spatial_struct(field_type, srid)
        case _ if field_type == TIME and shown.times:
            # Spark keeps nanoseconds, whatever the precision.
            return pa.time64("ns")
        case _:
            return _ARROW_TYPES[_shown_id(field_type.type_id, shown)]


def _shown_id(type_id: TypeId, shown: ShownTypes) -> TypeId:
    return _MICROS.get(type_id, type_id) if shown.micros else type_id


def _spark_struct(fields: tuple[NestedField, ...], shown: ShownTypes) -> spark.StructType:
    return spark.StructType(
        [
            spark.StructField(
                field.name,
                spark_type(field.field_type, shown),
                not field.required,
                {"comment": field.doc} if field.doc else None,
            )
            for field in fields
        ]
    )


def _arrow_field(field: NestedField, shown: ShownTypes) -> pa.Field:
    arrow_type = spark_arrow_type(field.field_type, shown)
    return pa.field(field.name, arrow_type, nullable=not field.required)
