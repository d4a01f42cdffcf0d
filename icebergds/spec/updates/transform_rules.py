"""Checks the source columns of partition and sort fields (spec: Partitioning, Sorting)."""

from __future__ import annotations

from icebergds.errors import InvalidMetadataError
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    MAX_WIDTH,
    Transform,
    UnknownTransform,
    can_transform,
    width_of,
)
from icebergds.spec.types import StructType, is_scalar


def check_source_columns(
    source_ids: tuple[int, ...], transform: Transform, schema: Schema, what: str
) -> None:
    """Raises InvalidMetadataError if a source column is missing or not usable, or a number wrong.

    `what` names the field in errors.
    """
    for source_id in source_ids:
        column = schema.find_field(source_id)
        if column is None:
            raise InvalidMetadataError(
                f"{what} refers to column {source_id}, which the current schema does not have"
            )
        name = schema.find_name(source_id)
        around = schema.ancestors(source_id)
        if any(not isinstance(schema.fields_by_id[i].field_type, StructType) for i in around):
            raise InvalidMetadataError(
                f"{what} refers to column {name!r}, which is inside a list or map"
            )
        if isinstance(transform, UnknownTransform):
            continue
        if not 1 <= width_of(transform) <= MAX_WIDTH:
            raise InvalidMetadataError(
                f"{what}: transform {transform} needs a number from 1 to {MAX_WIDTH}"
            )
        if not is_scalar(column.field_type) or not can_transform(transform, column.field_type):
            raise InvalidMetadataError(
                f"{what}: transform {transform} does not accept column {name!r} of type "
                f"{column.field_type}"
            )
