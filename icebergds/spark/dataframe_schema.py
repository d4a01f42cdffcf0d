"""Maps the schema of a DataFrame to Iceberg types and to the Arrow types that Spark sends.

=========================================  =============================
tinyint, smallint, int                     int
timestamp / timestamp_ntz                  timestamptz / timestamp
char, varchar, string (any collation)      string
time                                       time
geometry, geography (Spark 4.2 or newer)   geometry, geography (format version 3)
void                                       unknown (format version 3)
variant                                    variant (format version 3)
=========================================  =============================
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pyarrow as pa
from pyspark.sql import types as spark

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.spatial import geography_of, geometry_of
from icebergds.spark.types import spark_arrow_type, spark_srid
from icebergds.spec.evolution.union_by_name import all_optional
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARIANT,
    DecimalType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

_ICEBERG_TYPES: dict[str, IcebergType] = {
    "tinyint": INT,
    "smallint": INT,
    "int": INT,
    "bigint": LONG,
    "boolean": BOOLEAN,
    "float": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "timestamp": TIMESTAMPTZ,
    "timestamp_ntz": TIMESTAMP,
    "binary": BINARY,
    "void": UNKNOWN,
    "variant": VARIANT,
}
# Spark sends these in a narrower Arrow type than their Iceberg type maps to.
_ARROW_TYPES: dict[str, pa.DataType] = {"tinyint": pa.int8(), "smallint": pa.int16()}


def iceberg_schema(schema: spark.StructType) -> Schema:
    """The Iceberg schema of a DataFrame; field ids count from 1, parents before children.

    Raises:
        InvalidDataError: a column has a type that Iceberg lacks, or a shape of Spark's.
    """
    ids = count(1)
    return Schema(_iceberg_fields(schema, lambda: next(ids), ""))


def iceberg_type(data_type: spark.DataType, name: str) -> IcebergType:
    """The Iceberg type of a column; ids of nested fields are not the ids of a table.

    Raises:
        InvalidDataError: Iceberg lacks the type, or it is a shape of Spark's.
    """
    ids = count(1)
    return _iceberg_type(data_type, lambda: next(ids), name)


def optional_columns(schema: Schema) -> Schema:
    """A schema with every column optional, for a table that a write creates.

    `NOT NULL` in a query's schema describes that query (`lit(1)` is `NOT NULL`), not the table.
    Spark's CREATE TABLE AS SELECT does the same.
    """
    columns = all_optional(StructType(schema.fields))
    assert isinstance(columns, StructType), "a struct stays a struct"
    return Schema(columns.fields)


def incoming_arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of the batches that Spark sends to a writer of the DataFrame.

    Raises:
        InvalidDataError: a column has a type that Iceberg lacks, or a shape of Spark's.
    """
    return pa.schema([_arrow_field(field, field.name) for field in schema.fields])


def _iceberg_fields(
    struct: spark.StructType, next_id: Callable[[], int], prefix: str
) -> tuple[NestedField, ...]:
    # Ids of a level come before those of nested fields, as in other engines.
    ids = [next_id() for _ in struct.fields]
    return tuple(
        NestedField(
            field_id,
            field.name,
            _iceberg_type(field.dataType, next_id, prefix + field.name),
            not field.nullable,
            doc=(field.metadata or {}).get("comment"),
        )
        for field_id, field in zip(ids, struct.fields, strict=True)
    )


def _iceberg_type(data_type: spark.DataType, next_id: Callable[[], int], name: str) -> IcebergType:
    match data_type:
        case spark.StructType():
            return StructType(_iceberg_fields(data_type, next_id, f"{name}."))
        case spark.ArrayType():
            element_id = next_id()
            element = _iceberg_type(data_type.elementType, next_id, f"{name}.element")
            return ListType(element_id, element, not data_type.containsNull)
        case spark.MapType():
            key_id, value_id = next_id(), next_id()
            key = _iceberg_type(data_type.keyType, next_id, f"{name}.key")
            value = _iceberg_type(data_type.valueType, next_id, f"{name}.value")
            return MapType(key_id, key, value_id, value, not data_type.valueContainsNull)
        case spark.DecimalType():
            return DecimalType(data_type.precision, data_type.scale)
        case spark.StringType() | spark.CharType() | spark.VarcharType():
            return STRING
        case _:
            text = data_type.simpleString()
            if text.startswith("time("):
                return TIME
            found = _spatial_type(data_type) or _ICEBERG_TYPES.get(text)
            if found is None:
                raise InvalidDataError(f"column {name!r} has the Spark type {text}, {_why(text)}")
            return found


def _spatial_type(data_type: spark.DataType) -> IcebergType | None:
    """The type of Spark's own geometries and geographies; None for others."""
    found: GeometryType | GeographyType | None = None
    match data_type:
        case spark.GeometryType():
            found = geometry_of(data_type.srid)
        case spark.GeographyType():
            found = geography_of(data_type.srid)
    return None if found is None or spark_srid(found) is None else found


def _why(text: str) -> str:
    if text.endswith("(any)"):
        return (
            "of which every value has a coordinate reference system of its own, and Iceberg's "
            "columns have one; give them the same with st_setsrid(..., 4326)"
        )
    if text.startswith(("geometry(", "geography(")):
        return (
            "which icebergds does not write with this version of Spark; write st_asbinary of it to "
            "a column of type geometry, geography or binary"
        )
    return "which Iceberg does not support; cast it to another type before the write"


def _arrow_field(field: spark.StructField, name: str) -> pa.Field:
    return pa.field(field.name, _arrow_type(field.dataType, name), nullable=field.nullable)


def _arrow_type(data_type: spark.DataType, name: str) -> pa.DataType:
    match data_type:
        case spark.StructType():
            return pa.struct([_arrow_field(f, f"{name}.{f.name}") for f in data_type.fields])
        case spark.ArrayType():
            element = _arrow_type(data_type.elementType, f"{name}.element")
            return pa.list_(pa.field("element", element, nullable=data_type.containsNull))
        case spark.MapType():
            value = _arrow_type(data_type.valueType, f"{name}.value")
            return pa.map_(
                _arrow_type(data_type.keyType, f"{name}.key"),
                pa.field("value", value, nullable=data_type.valueContainsNull),
            )
        case _:
            text = data_type.simpleString()
            if text.startswith("time("):
                return pa.time64("ns")
            if text in _ARROW_TYPES:
                return _ARROW_TYPES[text]
            return spark_arrow_type(_iceberg_type(data_type, _no_id, name))


def _no_id() -> int:
    raise AssertionError("scalar types have no field ids")
