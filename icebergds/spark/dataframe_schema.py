"""DataFrames to be written: their schema in Iceberg's types, and in the Arrow types they come in.

=========================================  =============================
tinyint, smallint, int                     int
timestamp / timestamp_ntz                  timestamptz / timestamp
char, varchar, string (any collation)      string
time                                       time
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
from icebergds.spark.types import spark_arrow_type
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
# Narrower or coarser in Iceberg than in the batches that Spark sends.
_ARROW_TYPES: dict[str, pa.DataType] = {"tinyint": pa.int8(), "smallint": pa.int16()}


def iceberg_schema(schema: spark.StructType) -> Schema:
    """The schema a table needs to hold a DataFrame; ids count from 1, parents first.

    Raises:
        InvalidDataError: a column of a type that Iceberg does not have.
    """
    ids = count(1)
    return Schema(_iceberg_fields(schema, lambda: next(ids), ""))


def optional_columns(schema: Schema) -> Schema:
    """A schema without its `NOT NULL`s, which say what a query knows of its rows: `lit(1)` is so.

    Spark makes tables from queries in the same way.
    """
    columns = all_optional(StructType(schema.fields))
    assert isinstance(columns, StructType), "a struct stays one"
    return Schema(columns.fields)


def incoming_arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of the batches in which Spark sends a DataFrame to a writer.

    Raises:
        InvalidDataError: a column of a type that Iceberg does not have.
    """
    return pa.schema([_arrow_field(field, field.name) for field in schema.fields])


def _iceberg_fields(
    struct: spark.StructType, next_id: Callable[[], int], prefix: str
) -> tuple[NestedField, ...]:
    # Ids of a level come before those below, as engines assign them.
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
            found = _ICEBERG_TYPES.get(text)
            if found is None:
                raise InvalidDataError(
                    f"column {name!r} has Spark's type {text}, which Iceberg tables do not have; "
                    "cast it before it is written"
                )
            return found


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
    raise AssertionError("scalar types have no ids")
