"""Decides which columns Spark's own Parquet reader reads as icebergds does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from icebergds.scan.column_paths import locate
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import MAX_TABLE_FIELD_ID
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    DOUBLE,
    FLOAT,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TypeId,
    is_scalar,
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


LackedColumns: TypeAlias = tuple[tuple[int, object], ...]
"""The ids of columns that a file may lack, each with its value for all rows of such a file."""

# Spark's vectorized reader fails for binary constants.
_OF_BYTES = frozenset({TypeId.BINARY, TypeId.FIXED})
# 0.0 equals -0.0, and NaN does not equal itself, so files cannot be grouped by these values.
_FLOATS = (FLOAT, DOUBLE)


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """The identity partition columns of a spec among the columns of a scan."""

    _places: tuple[tuple[int, int], ...]
    _untold: frozenset[int]

    @staticmethod
    def of(spec: PartitionSpec, columns: Sequence[NestedField]) -> PartitionColumns:
        """Finds the identity partition columns of a spec that a scan reads, at any depth."""
        types = {column.field_id: column.field_type for column in columns}
        read = [
            (part.source_id, index)
            for index, part in enumerate(spec.fields)
            if isinstance(part.transform, IdentityTransform)
            and locate(columns, part.source_id) is not None
        ]
        places = tuple(
            (field_id, index)
            for field_id, index in read
            if field_id in types and is_fillable(types[field_id]) and types[field_id] not in _FLOATS
        )
        return PartitionColumns(places, frozenset(dict(read)) - dict(places).keys())

    def lacked_by(self, file: DataFile) -> LackedColumns | None:
        """The columns that a file may lack, that is, those that its metrics do not prove it has.

        None if the value of one of them cannot be passed to Spark.
        """
        counts = file.value_counts or {}
        if not self._untold <= counts.keys():
            return None
        return tuple(
            (field_id, file.partition[index])
            for field_id, index in self._places
            if field_id not in counts and index < len(file.partition)
        )


def is_fillable(field_type: IcebergType) -> bool:
    """Whether Spark accepts a value for a top-level column of this type that a file lacks."""
    return is_scalar(field_type) and field_type.type_id not in _OF_BYTES
