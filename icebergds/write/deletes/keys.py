"""Extracts equality keys from incoming rows, hashes them, builds rows of delete files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError, InvalidOptionError
from icebergds.formats.arrow.types import schema_to_arrow, to_arrow
from icebergds.formats.deletes.key_columns import encode_column
from icebergds.formats.deletes.key_hash import Hashes, hash_columns, new_seed
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    TypeId,
)
from icebergds.write.rows.matching import Matching, plan_matching
from icebergds.write.rows.source_columns import column_path

# Floating point columns cannot be equality keys (spec: Equality Delete Files).
_NO_KEYS = frozenset(
    {TypeId.FLOAT, TypeId.DOUBLE, TypeId.UNKNOWN, TypeId.VARIANT, TypeId.GEOMETRY, TypeId.GEOGRAPHY}
)


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """Extracts keys from incoming rows; created by `plan_keys`.

    Attributes:
        fields: the key columns, in the order of `equality_ids`.
        schema: of equality delete files: the key columns, inside their structs.
        seed: for hashes; the same in all tasks.
    """

    fields: tuple[NestedField, ...]
    schema: Schema
    seed: int
    _matching: Matching
    _paths: tuple[tuple[int, ...], ...]

    def take(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The key columns of incoming rows, in the order of `fields`.

        Raises:
            InvalidDataError: a required key is null, or a value does not fit.
        """
        columns = batch.select(_key_columns(batch.schema, self._matching.schema))
        rows = self._matching.fitting(columns.schema).apply(columns)
        return [_leaf(rows, path) for path in self._paths]

    def delete_rows(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        """Keys as rows of equality delete files.

        Args:
            columns: the key columns, from `take`.
        """
        leaves = {f.field_id: column for f, column in zip(self.fields, columns, strict=True)}
        arrays = [_delete_column(field, leaves) for field in self.schema.fields]
        return pa.RecordBatch.from_arrays(arrays, schema=schema_to_arrow(self.schema))

    def hashes(self, columns: Sequence[pa.Array]) -> Hashes:
        """Hashes of keys; equal keys have equal hashes in all tasks of the operation."""
        encoded = [
            encode_column(column, field) for column, field in zip(columns, self.fields, strict=True)
        ]
        return hash_columns(encoded, len(columns[0]), self.seed)


def plan_keys(
    schema: Schema,
    key_ids: Sequence[int],
    incoming: pa.Schema,
    *,
    table: str,
    time_zone: str | None = None,
) -> KeyPlan:
    """Plans how to extract a table's keys from incoming rows.

    Args:
        schema: the table's schema.
        key_ids: the key columns, which may be inside structs.
        incoming: the columns of incoming rows; columns that are not keys are ignored.
        table: the table, for messages.
        time_zone: as for `plan_matching`, for columns next to keys inside structs.

    Raises:
        InvalidOptionError: no key is given, one is given twice, or a column cannot be a key.
        InvalidDataError: a key column is missing, or its type does not fit.
    """
    if not key_ids:
        raise InvalidOptionError(
            f"table {table} has no identifier fields, and no key columns are given; name the "
            "columns that identify rows"
        )
    if len(set(key_ids)) < len(key_ids):
        raise InvalidOptionError(f"table {table}: a key column is given twice")
    fields = tuple(_key_field(schema, field_id, table) for field_id in key_ids)
    kept = {i for key_id in key_ids for i in (key_id, *schema.ancestors(key_id))}
    tops = tuple(
        _relaxed(field, frozenset(kept)) for field in schema.fields if field.field_id in kept
    )
    top_schema = Schema(tops)
    columns = pa.schema([incoming.field(at) for at in _key_columns(incoming, top_schema)])
    _refuse_missing(columns, top_schema, table)
    return KeyPlan(
        fields,
        schema.select(key_ids),
        new_seed(),
        plan_matching(
            columns, top_schema, table=table, time_zone=time_zone, keys=frozenset(key_ids)
        ),
        tuple(column_path(top_schema, key_id, f"keys of table {table}") for key_id in key_ids),
    )


def _key_field(schema: Schema, field_id: int, table: str) -> NestedField:
    field = schema.find_field(field_id)
    if field is None:
        raise InvalidOptionError(f"table {table} has no column with field id {field_id} as a key")
    name = schema.find_name(field_id)
    for ancestor in schema.ancestors(field_id):
        ancestor_type = schema.fields_by_id[ancestor].field_type
        if not isinstance(ancestor_type, StructType):
            raise InvalidOptionError(
                f"column {name!r} of table {table} cannot be a key: it is inside a list or map"
            )
    if not _is_key_type(field.field_type):
        raise InvalidOptionError(
            f"column {name!r} of table {table} cannot be a key: type {field.field_type} is not "
            "supported for keys; choose columns of integers, strings, dates or the like"
        )
    return field


def _is_key_type(field_type: IcebergType) -> bool:
    match field_type:
        case PrimitiveType(type_id=type_id):
            return type_id not in _NO_KEYS
        case DecimalType() | FixedType():
            return True
        case _:
            return False


def _relaxed(field: NestedField, kept: frozenset[int]) -> NestedField:
    """Makes a field optional, except for keys and their parent structs."""
    required = field.required and field.field_id in kept
    return replace(field, required=required, field_type=_relaxed_type(field.field_type, kept))


def _relaxed_type(field_type: IcebergType, kept: frozenset[int]) -> IcebergType:
    match field_type:
        case StructType(fields=fields):
            return StructType(tuple(_relaxed(field, kept) for field in fields))
        case ListType():
            element = _relaxed_type(field_type.element_type, kept)
            return replace(field_type, element_type=element, element_required=False)
        case MapType():
            value = _relaxed_type(field_type.value_type, kept)
            return replace(field_type, value_type=value, value_required=False)
        case _:
            return field_type


def _key_columns(incoming: pa.Schema, tops: Schema) -> list[int]:
    """Indices of the incoming columns that contain keys."""
    wanted = {field.name for field in tops.fields}
    folded = {name.lower() for name in wanted}
    exact = {name for name in incoming.names if name in wanted}
    found = {name.lower() for name in exact}
    return [
        at
        for at, name in enumerate(incoming.names)
        if name in exact or (name.lower() in folded and name.lower() not in found)
    ]


def _refuse_missing(columns: pa.Schema, tops: Schema, table: str) -> None:
    given = {name.lower() for name in columns.names}
    missing = [repr(field.name) for field in tops.fields if field.name.lower() not in given]
    if missing:
        raise InvalidDataError(
            f"the incoming rows lack {', '.join(missing)}, which are key columns of table {table}; "
            "add them"
        )


def _leaf(rows: pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    column = rows.column(path[0])
    # A key inside a null struct is null.
    return column if len(path) == 1 else pc.struct_field(column, list(path[1:]))


def _delete_column(field: NestedField, leaves: Mapping[int, pa.Array]) -> pa.Array:
    """A column of a delete file; an optional struct is null if all keys in it are null."""
    if not isinstance(field.field_type, StructType):
        return leaves[field.field_id]
    parts = [_delete_column(part, leaves) for part in field.field_type.fields]
    if field.required:
        return pa.StructArray.from_arrays(parts, fields=list(to_arrow(field.field_type)))
    nulls: Any = np.logical_and.reduce([p.is_null().to_numpy(zero_copy_only=False) for p in parts])
    return pa.StructArray.from_arrays(
        parts, fields=list(to_arrow(field.field_type)), mask=pa.array(nulls)
    )
