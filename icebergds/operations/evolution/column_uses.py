"""Protects the columns that partitioning and sorting need (spec: Schema Evolution)."""

from __future__ import annotations

from icebergds.errors import InvalidOptionError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import BucketTransform, IdentityTransform, Transform, VoidTransform
from icebergds.spec.types import DATE


def check_column_uses(metadata: TableMetadata, schema: Schema) -> None:
    """Raises InvalidOptionError if a new schema takes what the table's layout needs.

    Columns of the current partition spec and sort order stay. Columns that any spec of the table
    partitions by are not promoted if partition values would change.
    """
    before, now = metadata.schema(), schema.fields_by_id
    uses = [
        (f"partition field {part.name!r}", "update_spec", part.source_ids, part.transform)
        for part in metadata.spec().fields
    ]
    uses += [
        ("the table's sort order", "update_sort_order", part.source_ids, part.transform)
        for part in metadata.sort_order().fields
    ]
    for what, verb, source_ids, transform in uses:
        gone = [i for i in source_ids if i not in now and i in before.fields_by_id]
        if gone and not isinstance(transform, VoidTransform):
            raise InvalidOptionError(
                f"column {before.find_name(gone[0])!r} cannot be deleted: {what} needs it; change "
                f"that first, by {verb}"
            )
    for part in [part for spec in metadata.partition_specs for part in spec.fields]:
        for source_id in part.source_ids:
            _check_promotion(before, schema, source_id, part.transform, part.name)


def _check_promotion(
    before: Schema, after: Schema, source_id: int, transform: Transform, name: str
) -> None:
    old, new = before.find_field(source_id), after.find_field(source_id)
    if old is None or new is None or old.field_type == new.field_type:
        return
    # The others give the same partition values.
    if old.field_type == DATE and isinstance(transform, IdentityTransform | BucketTransform):
        raise InvalidOptionError(
            f"column {before.find_name(source_id)!r} cannot change from {old.field_type} to "
            f"{new.field_type}: the values of partition field {name!r}, {transform} of it, would "
            "be others; add a column of the other type instead"
        )
