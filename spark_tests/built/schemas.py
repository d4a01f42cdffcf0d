"""Builds fields and partition specs in few words."""

from __future__ import annotations

from typing import Any

from icebergds.spec.partition import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from icebergds.spec.transforms import Transform
from icebergds.spec.types import IcebergType, NestedField


def optional(field_id: int, name: str, field_type: IcebergType, **more: Any) -> NestedField:
    """A field that may be null; `more` are other members of `NestedField`."""
    return NestedField(field_id, name, field_type, **more)


def required(field_id: int, name: str, field_type: IcebergType, **more: Any) -> NestedField:
    """A field that is never null; `more` are other members of `NestedField`."""
    return NestedField(field_id, name, field_type, True, **more)


def spec_of(*fields: tuple[int, Transform], spec_id: int = 3) -> PartitionSpec:
    """A partition spec of source columns' ids and their transforms; its fields are p0, p1, ...

    Its id is not that of a new table's spec, so that a lost id shows.
    """
    return PartitionSpec(
        spec_id,
        tuple(
            PartitionField((source,), FIRST_PARTITION_FIELD_ID + at, transform, f"p{at}")
            for at, (source, transform) in enumerate(fields)
        ),
    )
