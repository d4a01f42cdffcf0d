"""Tells whether a data file's column metrics contradict its partition.

Some imports take an identity partition from the name of a folder, though its files have the column,
too. What a file has is read (spec: Column Projection), so such a partition decides nothing.
`formats.manifests.contradictions` does the same for many files at once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from icebergds.expr.metrics import might_match
from icebergds.expr.nodes import BoundPredicate, Operation
from icebergds.spec.manifest import DataFile
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import DOUBLE, FLOAT, IcebergType, TypeId, is_scalar
from icebergds.spec.values.binary import to_bytes

# Bounds of these are values of the column; those of texts and bytes may be truncated.
_EXACT = frozenset(
    {
        *(TypeId.INT, TypeId.LONG, TypeId.DATE, TypeId.TIME),
        *(TypeId.TIMESTAMP, TypeId.TIMESTAMPTZ, TypeId.TIMESTAMP_NS, TypeId.TIMESTAMPTZ_NS),
    }
)


@dataclass(frozen=True, slots=True)
class IdentitySources:
    """The columns that identity partition fields of a spec promise the values of.

    Attributes:
        places: the position of each field in the partition, its column's id and type.
    """

    places: tuple[tuple[int, int, IcebergType], ...]

    @staticmethod
    def of(
        spec: PartitionSpec, schema: Schema, field_ids: Collection[int] | None = None
    ) -> IdentitySources:
        """The columns of a schema, or those of them with some ids."""
        places = []
        for index, part in enumerate(spec.fields):
            source = schema.find_field(part.source_id)
            # Zeros have two signs, and bounds do not tell NaN.
            if (
                isinstance(part.transform, IdentityTransform)
                and (field_ids is None or part.source_id in field_ids)
                and source is not None
                and is_scalar(source.field_type)
                and source.field_type not in (FLOAT, DOUBLE)
            ):
                places.append((index, part.source_id, source.field_type))
        return IdentitySources(tuple(places))

    def contradict(self, file: DataFile) -> bool:
        """Whether metrics of a file prove that it has other values than its partition says."""
        return any(
            _contradicts(file, field_id, field_type, file.partition[index])
            for index, field_id, field_type in self.places
            if index < len(file.partition)
        )


def _contradicts(file: DataFile, field_id: int, field_type: IcebergType, value: object) -> bool:
    lower, upper = file.lower_bounds.get(field_id), file.upper_bounds.get(field_id)
    has_bounds = lower is not None or upper is not None
    if value is None:
        return has_bounds
    if has_bounds and not might_match(
        BoundPredicate(Operation.EQ, field_id, field_type, (value,)), file
    ):
        return True
    if lower is not None and upper is not None and lower != upper:
        if _is_exact(field_type):
            return True
        # Truncated, both are no longer the value, and the lower one is shorter.
        stored = to_bytes(field_type, value)
        if stored in (lower, upper) or len(lower) >= len(stored):
            return True
    # Counts of another number of values than of rows are not those of a column of the file.
    nulls = file.null_value_counts.get(field_id, 0)
    return nulls > 0 and file.value_counts.get(field_id) == file.record_count


def _is_exact(field_type: IcebergType) -> bool:
    return is_scalar(field_type) and field_type.type_id in _EXACT
