"""Builds Arrow rows of in-memory values (see `spec.types`), a tuple a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.spec.schema import Schema


def arrays(schema: Schema, rows: Sequence[Sequence[Any]]) -> list[pa.Array]:
    """The columns of rows, one a top-level field."""
    return [
        to_array(field.field_type, [row[at] for row in rows])
        for at, field in enumerate(schema.fields)
    ]


def record_batch(schema: Schema, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """One batch of rows of a schema, whose fields carry their ids."""
    return pa.RecordBatch.from_arrays(arrays(schema, rows), schema=schema_to_arrow(schema))


def arrow_table(schema: Schema, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """An Arrow table of rows of a schema, whose fields carry their ids."""
    return pa.Table.from_arrays(arrays(schema, rows), schema=schema_to_arrow(schema))
