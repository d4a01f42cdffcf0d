"""Parquet files without field ids, as other tools write them, and the name mapping for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from built.rows import arrays

from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.spec.manifest import DataFile
from icebergds.spec.name_mapping import MappedField
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    children,
)


def without_field_ids(data_file: DataFile, schema: Schema, rows: Sequence[Any]) -> DataFile:
    """Writes a file again, with columns that only a mapping by `mapped_fields` finds."""
    named = Schema(tuple(map(_named, schema.fields)))
    plain = pa.schema([_plain(field) for field in schema_to_arrow(named)])
    written = pa.Table.from_arrays(arrays(named, rows), schema=plain)
    # In another order: readers without a mapping go by the positions of columns.
    pq.write_table(written.select(plain.names[::-1]), data_file.file_path)
    size = Path(data_file.file_path).stat().st_size
    return replace(data_file, file_size_in_bytes=size, split_offsets=())


def mapped_fields(fields: Iterable[NestedField]) -> tuple[MappedField, ...]:
    """The mapping of fields, of which some may be of one id and have other fields inside."""
    inside: dict[int, list[NestedField]] = {}
    names: dict[int, str] = {}
    for field in fields:
        in_struct = field.name not in ("element", "key", "value")
        names[field.field_id] = _name(field) if in_struct else field.name
        inside.setdefault(field.field_id, []).extend(children(field.field_type))
    return tuple(
        MappedField((name,), field_id, mapped_fields(inside[field_id]))
        for field_id, name in names.items()
    )


def _name(field: NestedField) -> str:
    # Names of a table may come again, for other columns.
    return f"c{field.field_id}"


def _named(field: NestedField) -> NestedField:
    return replace(field, name=_name(field), field_type=_with_names(field.field_type))


def _with_names(kind: IcebergType) -> IcebergType:
    match kind:
        case StructType(fields=fields):
            return StructType(tuple(map(_named, fields)))
        case ListType(element_type=element):
            return replace(kind, element_type=_with_names(element))
        case MapType(value_type=value):
            return replace(kind, value_type=_with_names(value))
        case _:
            return kind


def _plain(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_plain(inner) for inner in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(_plain(kind.key_field), _plain(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(_plain(kind.value_field))
    elif pa.types.is_large_list(kind):
        kind = pa.large_list(_plain(kind.value_field))
    return pa.field(field.name, kind, field.nullable)
