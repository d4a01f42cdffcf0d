"""Decides which columns Spark's own Parquet reader reads as icebergds does."""

from __future__ import annotations

from dataclasses import replace

from icebergds.scan.plan.lacked_columns import is_fillable
from icebergds.spec.reserved import MAX_TABLE_FIELD_ID
from icebergds.spec.types import (
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TypeId,
)

NATIVE_PREFIX = "_icebergds_"
"""Prefix of the names under which Spark reads columns. No column of a file may have it: Spark
matches pushed filters by name."""

# Spark has neither time nor uuid: it would read times as numbers, whatever the unit in a file, and
# it converts UUID bytes to text more slowly than icebergds.
_NATIVE_TYPES = frozenset(
    {
        TypeId.BOOLEAN,
        TypeId.INT,
        TypeId.LONG,
        TypeId.FLOAT,
        TypeId.DOUBLE,
        TypeId.DATE,
        TypeId.TIMESTAMP,
        TypeId.TIMESTAMPTZ,
        TypeId.STRING,
        TypeId.BINARY,
        TypeId.FIXED,
    }
)


def is_native_column(column: NestedField) -> bool:
    """Whether Spark reads a column of this type and default correctly, from any file."""
    if column.initial_default is not None and is_fillable(column.field_type):
        column = replace(column, initial_default=None)
    return _is_native(column)


def _is_native(field: NestedField) -> bool:
    # For a field of a struct that a file lacks, Spark would read null.
    return (
        field.field_id <= MAX_TABLE_FIELD_ID
        and field.initial_default is None
        and _is_native_type(field.field_type)
    )


def _is_native_type(field_type: IcebergType) -> bool:
    match field_type:
        case StructType(fields=fields):
            return bool(fields) and all(map(_is_native, fields))
        case ListType():
            return _is_native(field_type.element_field)
        case MapType():
            return _is_native(field_type.key_field) and _is_native(field_type.value_field)
        case DecimalType():
            return True
        case _:
            return field_type.type_id in _NATIVE_TYPES
