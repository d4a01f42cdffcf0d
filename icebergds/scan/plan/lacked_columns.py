"""Finds values of partition columns that a data file may lack (spec: Column Projection)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from icebergds.scan.column_paths import locate
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import DOUBLE, FLOAT, IcebergType, NestedField, TypeId, is_scalar

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
