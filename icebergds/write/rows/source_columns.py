"""Computes partition values and sort keys from their source columns, which may be nested."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.formats.arrow.transforms import apply_transform
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    KNOWN_TRANSFORMS,
    Transform,
    UnknownTransform,
    can_transform,
)
from icebergds.spec.types import IcebergType, StructType

_REPLACE = "replace the field in the table's partition spec or sort order"


@dataclass(frozen=True, slots=True)
class TransformedColumn:
    """A transform of a source column.

    Attributes:
        path: child indices of the column, from the top level through structs.
        source_type: the column's type.
        transform: the transform to apply.
    """

    path: tuple[int, ...]
    source_type: IcebergType
    transform: Transform

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """The transformed values of a batch of the schema; null inside null structs."""
        column = batch.column(self.path[0])
        if len(self.path) > 1:
            column = pc.struct_field(column, list(self.path[1:]))
        return apply_transform(self.transform, self.source_type, column)


def transformed_column(
    schema: Schema, source_ids: tuple[int, ...], transform: Transform, what: str
) -> TransformedColumn:
    """Finds the column of a partition or sort field.

    Args:
        schema: the schema of the rows.
        source_ids: the field's source columns.
        transform: the field's transform.
        what: describes the field in messages.

    Raises:
        UnsupportedFeatureError: the transform is unknown.
        InvalidMetadataError: the schema has no such column, or the transform does not accept it.
    """
    if isinstance(transform, UnknownTransform) or len(source_ids) != 1:
        raise UnsupportedFeatureError(
            f"{what}: the transform {transform} of the columns with field ids {list(source_ids)} "
            f"is not supported; expected {KNOWN_TRANSFORMS} of one column; {_REPLACE}"
        )
    field = schema.find_field(source_ids[0])
    if field is None:
        raise InvalidMetadataError(
            f"{what}: its source column, field id {source_ids[0]}, is not in the table's schema; "
            f"{_REPLACE}"
        )
    if not can_transform(transform, field.field_type):
        raise InvalidMetadataError(
            f"{what}: transform {transform} does not accept its source column {field.name!r} of "
            f"type {field.field_type}; {_REPLACE}"
        )
    return TransformedColumn(column_path(schema, source_ids[0], what), field.field_type, transform)


def column_path(schema: Schema, field_id: int, what: str) -> tuple[int, ...]:
    """Child indices of a column, from the top level through structs.

    Raises:
        InvalidMetadataError: the column is inside a list or map.
    """
    fields = schema.fields
    path = []
    for ancestor in (*reversed(schema.ancestors(field_id)), field_id):
        at = next(i for i, field in enumerate(fields) if field.field_id == ancestor)
        path.append(at)
        if ancestor != field_id:
            parent = fields[at].field_type
            if not isinstance(parent, StructType):
                raise InvalidMetadataError(
                    f"{what}: column {schema.find_name(field_id)!r} is inside a list or "
                    "map; expected a column outside lists and maps"
                )
            fields = parent.fields
    return tuple(path)
