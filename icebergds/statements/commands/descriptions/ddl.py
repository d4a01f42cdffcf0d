"""Writes the columns, partitions and sort keys of tables as Spark SQL does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import types as spark

from icebergds.formats.arrow.types import repeat
from icebergds.spark.types import spark_type
from icebergds.spec.partition import PartitionField
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortField
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from icebergds.spec.types import IcebergType, NestedField
from icebergds.spec.values import dates
from icebergds.statements.names.table_names import shown_name


def escaped(text: str) -> str:
    """Escapes a text to stand between single quotes."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def listed(lines: Iterable[str]) -> str:
    """Lines in parentheses, as in the statements that Spark shows."""
    return "(\n  " + ",\n  ".join(lines) + ")\n"


def property_lines(properties: Iterable[tuple[str, str]]) -> list[str]:
    """Properties as in TBLPROPERTIES, sorted by name."""
    return [f"'{escaped(key)}' = '{escaped(value)}'" for key, value in sorted(properties)]


def column_line(field: NestedField) -> str:
    """A column as in CREATE TABLE."""
    default = default_text(field)
    words = [shown_name([field.name]), type_text(spark_type(field.field_type))]
    words += ["NOT NULL"] if field.required else []
    words += [] if default is None else [f"DEFAULT {default}"]
    words += [f"COMMENT '{escaped(field.doc)}'"] if field.doc else []
    return " ".join(words)


def default_text(field: NestedField) -> str | None:
    """The write default as a literal; None if there is none."""
    value = field.write_default
    return None if value is None else _literal(field.field_type, value)


def type_text(kind: spark.DataType) -> str:
    """A type as in CREATE TABLE."""
    match kind:
        case spark.StructType(fields=fields):
            return f"STRUCT<{', '.join(map(_member_text, fields))}>"
        case spark.ArrayType():
            return f"ARRAY<{type_text(kind.elementType)}>"
        case spark.MapType():
            return f"MAP<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
    return kind.simpleString().upper()


def partition_terms(schema: Schema, fields: Iterable[PartitionField]) -> list[str]:
    """The terms of PARTITIONED BY, without dropped partition fields."""
    return [
        _term(schema, field.transform, field.source_ids)
        for field in fields
        if not isinstance(field.transform, VoidTransform)
    ]


def sort_term(schema: Schema, field: SortField) -> str:
    """A sort key, such as `id DESC NULLS LAST`."""
    nulls = "FIRST" if field.null_order is NullOrder.NULLS_FIRST else "LAST"
    term = _term(schema, field.transform, field.source_ids)
    return f"{term} {field.direction.value.upper()} NULLS {nulls}"


_PERIODS = {
    YearTransform: "years",
    MonthTransform: "months",
    DayTransform: "days",
    HourTransform: "hours",
}


def _member_text(field: spark.StructField) -> str:
    comment = (field.metadata or {}).get("comment")
    text = f"{shown_name([field.name])}: {type_text(field.dataType)}"
    text += "" if field.nullable else " NOT NULL"
    return text if not comment else f"{text} COMMENT '{escaped(comment)}'"


def _term(schema: Schema, transform: Transform, source_ids: Iterable[int]) -> str:
    paths = (schema.paths_by_id.get(source_id) for source_id in source_ids)
    names = [shown_name(path) if path else "?" for path in paths]
    column = ", ".join(names)
    match transform:
        case IdentityTransform():
            return column
        case BucketTransform(num_buckets=count):
            return f"bucket({count}, {column})"
        case TruncateTransform(width=width):
            return f"truncate({width}, {column})"
    return f"{_PERIODS.get(type(transform), transform)}({column})"


def _literal(field_type: IcebergType, value: Any) -> str:
    """A value as Spark writes a literal of the type that it reads the column with."""
    match spark_type(field_type):
        case spark.StringType():
            return f"'{escaped(str(repeat(field_type, value, 1)[0].as_py()))}'"
        case spark.BinaryType():
            return f"X'{bytes(value).hex().upper()}'"
        case spark.BooleanType():
            return str(value).lower()
        case spark.IntegerType():
            return str(value)
        case spark.LongType():
            return f"{value}L"
        case spark.FloatType():
            return f"CAST('{value}' AS FLOAT)"
        case spark.DoubleType():
            return f"{value}D"
        case spark.DecimalType():
            return f"{repeat(field_type, value, 1)[0].as_py()}BD"
        case spark.DateType():
            return f"DATE '{dates.format_date(value)}'"
        case spark.TimestampNTZType():
            return f"TIMESTAMP_NTZ '{dates.format_timestamp(value)}'"
        case spark.TimestampType():
            # With its offset, to be independent of the session's time zone.
            return f"TIMESTAMP '{dates.format_timestamp(value)}+00:00'"
    return str(value)
