"""Casts floating point columns to string in Spark, if the table's columns are strings.

Only Spark's own cast writes these numbers as Spark does: the digits depend on its Java version.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as f, types as spark

from icebergds.expr.names import quote_name
from icebergds.spec.schema import Schema
from icebergds.spec.types import STRING, IcebergType, ListType, MapType, NestedField, StructType


def floats_as_text(df: DataFrame, schema: Schema) -> DataFrame:
    """Casts floating point numbers to text if the table has strings there, also nested.

    Args:
        df: rows whose columns have the names of the table's columns.
        schema: the table's schema.
    """
    casts = {
        field.name: f.col(quote_name((field.name,))).cast(wanted)
        for field, wanted in _with_texts(df.schema, schema.fields)
        if wanted != field.dataType
    }
    return df.withColumns(casts) if casts else df


def _with_texts(
    struct: spark.StructType, fields: tuple[NestedField, ...]
) -> list[tuple[spark.StructField, spark.DataType]]:
    types = {field.name.lower(): field.field_type for field in fields}
    types |= {field.name: field.field_type for field in fields}
    return [
        (field, _as_text(field.dataType, types.get(field.name, types.get(field.name.lower()))))
        for field in struct.fields
    ]


def _as_text(incoming: spark.DataType, wanted: IcebergType | None) -> spark.DataType:
    match incoming, wanted:
        case spark.FloatType() | spark.DoubleType(), _ if wanted == STRING:
            return spark.StringType()
        case spark.StructType(), StructType(fields=fields):
            return spark.StructType(
                [
                    spark.StructField(field.name, found, field.nullable)
                    for field, found in _with_texts(incoming, fields)
                ]
            )
        case spark.ArrayType(), ListType(element_type=element):
            return spark.ArrayType(_as_text(incoming.elementType, element), incoming.containsNull)
        case spark.MapType(), MapType(value_type=value):
            found = _as_text(incoming.valueType, value)
            return spark.MapType(incoming.keyType, found, incoming.valueContainsNull)
        case _:
            return incoming
