"""Turns in-memory rows of a metadata table into Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.operations.metadata_tables.metadata_rows import Row
from icebergds.spec.schema import Schema
from icebergds.spec.types import IcebergType, ListType, MapType, StructType

_AT_A_TIME = 20_000


def row_batches(rows: Iterable[Row], table: Schema, columns: Schema) -> Iterator[pa.RecordBatch]:
    """Batches of rows.

    Args:
        rows: values of all columns of `table`.
        columns: the columns of the batches; structs may be narrowed.
    """
    places = {field.field_id: (at, field.field_type) for at, field in enumerate(table.fields)}
    schema = schema_to_arrow(columns)
    left = iter(rows)
    while some := list(islice(left, _AT_A_TIME)):
        arrays = []
        for field in columns.fields:
            at, whole = places[field.field_id]
            values = [_narrowed(row[at], whole, field.field_type) for row in some]
            arrays.append(to_array(field.field_type, values))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _narrowed(value: Any, whole: IcebergType, part: IcebergType) -> Any:
    """A value without the fields that the narrower type lacks."""
    if value is None or whole == part:
        return value
    match whole, part:
        case StructType(fields=fields), StructType(fields=kept):
            places = {field.field_id: (at, field.field_type) for at, field in enumerate(fields)}
            return tuple(
                _narrowed(value[at], inner, field.field_type)
                for field in kept
                for at, inner in (places[field.field_id],)
            )
        case ListType(), ListType():
            return [_narrowed(one, whole.element_type, part.element_type) for one in value]
        case MapType(), MapType():
            return [
                (key, _narrowed(item, whole.value_type, part.value_type)) for key, item in value
            ]
        case _:
            return value
