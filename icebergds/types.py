"""Names Iceberg's types as PyIceberg does: `NestedField(1, "id", LongType(), required=True)`.

`TimestampType` has no time zone, as in the Iceberg specification; Spark's type of this name is
`TimestamptzType`.
"""

from __future__ import annotations

from icebergds.spec import types
from icebergds.spec.types import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
)

__all__ = [
    "BinaryType",
    "BooleanType",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FixedType",
    "FloatType",
    "GeographyType",
    "GeometryType",
    "IntegerType",
    "ListType",
    "LongType",
    "MapType",
    "NestedField",
    "PrimitiveType",
    "StringType",
    "StructType",
    "TimeType",
    "TimestampNanoType",
    "TimestampType",
    "TimestamptzNanoType",
    "TimestamptzType",
    "UUIDType",
    "UnknownType",
    "VariantType",
]


def BooleanType() -> PrimitiveType:
    """True or false."""
    return types.BOOLEAN


def IntegerType() -> PrimitiveType:
    """32-bit integers."""
    return types.INT


def LongType() -> PrimitiveType:
    """64-bit integers."""
    return types.LONG


def FloatType() -> PrimitiveType:
    """32-bit floating-point numbers."""
    return types.FLOAT


def DoubleType() -> PrimitiveType:
    """64-bit floating-point numbers."""
    return types.DOUBLE


def DateType() -> PrimitiveType:
    """Days."""
    return types.DATE


def TimeType() -> PrimitiveType:
    """Microseconds since midnight."""
    return types.TIME


def TimestampType() -> PrimitiveType:
    """Microseconds, without a time zone (Spark's TimestampNTZType)."""
    return types.TIMESTAMP


def TimestamptzType() -> PrimitiveType:
    """Microseconds, as points in time (Spark's TimestampType)."""
    return types.TIMESTAMPTZ


def TimestampNanoType() -> PrimitiveType:
    """Nanoseconds, without a time zone (format version 3)."""
    return types.TIMESTAMP_NS


def TimestamptzNanoType() -> PrimitiveType:
    """Nanoseconds, as points in time (format version 3)."""
    return types.TIMESTAMPTZ_NS


def StringType() -> PrimitiveType:
    """Text."""
    return types.STRING


def UUIDType() -> PrimitiveType:
    """UUIDs, 16 bytes."""
    return types.UUID


def BinaryType() -> PrimitiveType:
    """Bytes of any length."""
    return types.BINARY


def UnknownType() -> PrimitiveType:
    """Only nulls (format version 3)."""
    return types.UNKNOWN


def VariantType() -> PrimitiveType:
    """Values of any type (format version 3)."""
    return types.VARIANT
