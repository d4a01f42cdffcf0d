"""Computes the partition summaries of a manifest (spec: `field_summary`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from icebergds.formats.manifests.partitions import partition_tuples
from icebergds.spec.manifest import FieldSummary
from icebergds.spec.types import UNKNOWN, IcebergType, NestedField, StructType
from icebergds.spec.values.binary import to_bytes


def partition_summaries(
    partition_type: StructType, partitions: Sequence[tuple[Any, ...]]
) -> tuple[FieldSummary, ...]:
    """Computes one summary for each partition field.

    Args:
        partitions: the partition tuple of each file; duplicates are fine.
    """
    columns = zip(*partitions, strict=True) if partitions else ((),) * len(partition_type.fields)
    return tuple(
        _summary(field.field_type, set(values))
        for field, values in zip(partition_type.fields, columns, strict=True)
    )


def column_summaries(
    partition_type: StructType, columns: Sequence[pa.Array]
) -> tuple[FieldSummary, ...]:
    """Computes the same from the columns of `EntryColumns.partition`."""
    return tuple(
        _summary(field.field_type, {value for (value,) in _distinct(field, column)})
        for field, column in zip(partition_type.fields, columns, strict=True)
    )


def _distinct(field: NestedField, column: pa.Array) -> list[tuple[Any, ...]]:
    distinct = column.unique()
    return partition_tuples(StructType((field,)), (distinct,), len(distinct))


def _summary(field_type: IcebergType, values: set[Any]) -> FieldSummary:
    has_null = None in values
    known = [value for value in values if value is not None and value == value]
    has_nan = len(known) + has_null < len(values)
    # The result type of an unknown transform is not known, so there are no bounds.
    if not known or field_type == UNKNOWN:
        return FieldSummary(has_null, has_nan)
    lower, upper = min(known), max(known)
    return FieldSummary(has_null, has_nan, to_bytes(field_type, lower), to_bytes(field_type, upper))
