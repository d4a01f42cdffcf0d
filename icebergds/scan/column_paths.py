"""Finds columns in batches by field id, at any depth; a batch may hold a column twice."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.spec.types import NestedField, StructType


def locate(fields: Sequence[NestedField], field_id: int) -> tuple[int, ...] | None:
    """Child indices from the top level to a field, through structs only; None if not found."""
    for index, candidate in enumerate(fields):
        if candidate.field_id == field_id:
            return (index,)
        if isinstance(candidate.field_type, StructType):
            below = locate(candidate.field_type.fields, field_id)
            if below is not None:
                return (index, *below)
    return None


def column_at(batch: pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    """The column at a path; null if an enclosing struct is null."""
    column = batch.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column
