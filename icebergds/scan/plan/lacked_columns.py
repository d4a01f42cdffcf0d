"""Tells the values of partition columns that a data file may lack (spec: Column Projection)."""

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

# The vectorized reader of Spark fails for constants of bytes.
_OF_BYTES = frozenset({TypeId.BINARY, TypeId.FIXED})
# Zeros of both signs are equal, NaN is not equal to itself: files could not be grouped by them.
_FLOATS = (FLOAT, DOUBLE)


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """The identity partition columns of a spec among the columns of a scan."""

    _places: tuple[tuple[int, int], ...]
    _untold: frozenset[int]

    @staticmethod
    def of(spec: PartitionSpec, columns: Sequence[NestedField]) -> PartitionColumns:
        """The identity partition columns of a spec that a scan reads, at any depth."""
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
        """The columns that a file may lack, as far as its metrics do not prove that it has them.

        None if Spark cannot be told the value of one of them.
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
    """Whether Spark can be told the value of a top-level column that a file lacks."""
    return is_scalar(field_type) and field_type.type_id not in _OF_BYTES
