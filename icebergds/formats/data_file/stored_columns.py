"""Converts columns to the types a file format stores; drops columns of type unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.arrow.arrays import with_child, with_entries, with_fields, without_nulls
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    UNKNOWN,
    VARIANT,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a format stores columns.

    Attributes:
        name: of the format, for errors.
        data_type: the stored Arrow type of a scalar column; raises UnsupportedFeatureError.
        attributes: the metadata of a column's Arrow field.
    """

    name: str
    data_type: Callable[[NestedField], pa.DataType]
    attributes: Callable[[NestedField], Mapping[str, str]]


def stored_schema(schema: Schema, dialect: Dialect, location: str) -> pa.Schema:
    """The Arrow schema that a format stores, without columns of type unknown.

    Raises:
        UnsupportedFeatureError: the format cannot store a column, or there is none to store.
    """
    fields = _stored_fields(schema.fields, dialect)
    if not fields:
        raise UnsupportedFeatureError(
            f"{location}: {dialect.name} files need at least one column, "
            "but the schema has none to store"
        )
    return pa.schema(fields)


def stored_batch(batch: pa.RecordBatch, schema: Schema, stored: pa.Schema) -> pa.RecordBatch:
    """Converts a batch to the stored schema; columns that already fit are not copied."""
    kept = [
        (column, field)
        for column, field in zip(batch.columns, schema.fields, strict=True)
        if field.field_type != UNKNOWN
    ]
    arrays = [
        _stored_array(column, field.field_type, target.type)
        for (column, field), target in zip(kept, stored, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=stored)


def _stored_fields(fields: Iterable[NestedField], dialect: Dialect) -> list[pa.Field]:
    return [_stored_field(f, dialect) for f in fields if f.field_type != UNKNOWN]


def _stored_field(field: NestedField, dialect: Dialect) -> pa.Field:
    return pa.field(
        field.name,
        _stored_type(field, dialect),
        nullable=field.optional,
        metadata=dict(dialect.attributes(field)),
    )


def _stored_type(field: NestedField, dialect: Dialect) -> pa.DataType:
    match field.field_type:
        case StructType(fields=fields):
            stored = _stored_fields(fields, dialect)
            if not stored:
                raise UnsupportedFeatureError(
                    f"column {field.name!r}: {dialect.name} cannot store a struct without fields"
                )
            return pa.struct(stored)
        case ListType(element_type=element) if element != UNKNOWN:
            return pa.list_(_stored_field(field.field_type.element_field, dialect))
        case MapType(value_type=value) if value != UNKNOWN:
            return pa.map_(
                _stored_field(field.field_type.key_field, dialect),
                _stored_field(field.field_type.value_field, dialect),
            )
        case ListType() | MapType():
            raise UnsupportedFeatureError(
                f"column {field.name!r}: {dialect.name} cannot store {field.field_type}"
            )
        case _:
            return dialect.data_type(field)


def _stored_array(array: pa.Array, field_type: IcebergType, target: pa.DataType) -> pa.Array:
    match field_type:
        case StructType(fields=fields):
            kept = [(at, f) for at, f in enumerate(fields) if f.field_type != UNKNOWN]
            arrays = [
                _stored_child(array.field(at), f.field_type, stored)
                for (at, f), stored in zip(kept, target, strict=True)
            ]
            return with_fields(array, target, arrays)
        case ListType(element_type=element):
            values = _stored_child(array.values, element, target.value_field)
            return with_child(array, target, values)
        case MapType(key_type=key, value_type=value):
            stored_entries = array.values
            keys = _stored_child(stored_entries.field(0), key, target.key_field)
            items = _stored_child(stored_entries.field(1), value, target.item_field)
            return with_entries(array, target, keys, items)
        case _ if field_type == VARIANT:
            children = [_stored_child(array.field(at), BINARY, target.field(at)) for at in (0, 1)]
            return with_fields(array, target, children)
        case _:
            return _stored_scalars(array, target)


def _stored_child(array: pa.Array, field_type: IcebergType, target: pa.Field) -> pa.Array:
    """Nested values; required ones are null only if their parent is, so they lose their nulls."""
    stored = _stored_array(array, field_type, target.type)
    return stored if target.nullable or not stored.null_count else without_nulls(stored)


def _stored_scalars(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target:
        return array
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, array)
    if pa.types.is_fixed_size_binary(array.type):
        return array.cast(target)
    return array.view(target)
