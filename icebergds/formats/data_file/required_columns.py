"""Checks that required columns have no nulls."""

from __future__ import annotations

import pyarrow as pa

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.arrays import as_list_of_entries
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.spec.schema import Schema


class RequiredColumns:
    """Checks batches of one schema before they are written."""

    def __init__(self, schema: Schema, location: str) -> None:
        self._arrow_schema = schema_to_arrow(schema)
        self._location = location

    def check(self, batch: pa.RecordBatch) -> None:
        """Checks that a batch has the schema, and no nulls in required columns at any level.

        Raises:
            InvalidDataError: the batch has another schema, or nulls in a required column.
        """
        if not batch.schema.equals(self._arrow_schema):
            raise InvalidDataError(
                f"{self._location}: cannot write rows of the schema {batch.schema.to_string()}, "
                f"expected {self._arrow_schema.to_string()}"
            )
        for field, column in zip(self._arrow_schema, batch.columns, strict=True):
            self._check(field, column, field.name)

    def _check(self, field: pa.Field, array: pa.Array, name: str) -> None:
        """Checks values whose parents are not null."""
        if array.null_count and not field.nullable:
            raise InvalidDataError(
                f"{self._location}: required column {name!r} has {array.null_count} nulls among "
                f"{len(array)} values; it must have none"
            )
        if not _has_required(field.type):
            return
        if array.null_count:
            array = array.drop_null()
        if pa.types.is_struct(field.type):
            inside = [array.field(at) for at in range(array.type.num_fields)]
            nested = list(zip(field.type, inside, strict=True))
        elif pa.types.is_map(field.type):
            entries = as_list_of_entries(array).flatten()
            nested = [
                (field.type.key_field, entries.field(0)),
                (field.type.item_field, entries.field(1)),
            ]
        else:
            nested = [(field.type.value_field, array.flatten())]
        for child, values in nested:
            self._check(child, values, f"{name}.{child.name}")


def _has_required(arrow_type: pa.DataType) -> bool:
    """Whether a field below is required."""
    if pa.types.is_struct(arrow_type):
        fields = list(arrow_type)
    elif pa.types.is_map(arrow_type):
        fields = [arrow_type.key_field, arrow_type.item_field]
    elif pa.types.is_list(arrow_type):
        fields = [arrow_type.value_field]
    else:
        return False
    return any(not field.nullable or _has_required(field.type) for field in fields)
