"""Finds the fields of entries in a manifest's Avro schema (spec: Manifest Entry Fields)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

from icebergds.formats.avro.columns import is_number, is_slice, key_value
from icebergds.formats.avro.records import record_schema
from icebergds.formats.avro.schema import (
    AvroArray,
    AvroField,
    AvroMap,
    AvroNode,
    AvroPrimitive,
    AvroRecord,
    AvroUnion,
    parse_avro_schema,
    without_null,
)

STATUS = 0
SNAPSHOT_ID = 1
DATA_FILE = 2
SEQUENCE_NUMBER = 3
FILE_SEQUENCE_NUMBER = 4
CONTENT = 134
FILE_PATH = 100
FILE_FORMAT = 101
PARTITION = 102
RECORD_COUNT = 103
FILE_SIZE_IN_BYTES = 104
COLUMN_SIZES = 108
VALUE_COUNTS = 109
NULL_VALUE_COUNTS = 110
NAN_VALUE_COUNTS = 137
LOWER_BOUNDS = 125
UPPER_BOUNDS = 128
KEY_METADATA = 131
SPLIT_OFFSETS = 132
EQUALITY_IDS = 135
SORT_ORDER_ID = 140
FIRST_ROW_ID = 142
REFERENCED_DATA_FILE = 143
CONTENT_OFFSET = 144
CONTENT_SIZE_IN_BYTES = 145


class Shape(Enum):
    """The shape of a field's decoded values."""

    NUMBER = "number"
    SLICE = "slice"
    NUMBERS = "numbers"
    COUNTS = "counts"
    BOUNDS = "bounds"


ENTRY_IDS = {
    "status": STATUS,
    "snapshot_id": SNAPSHOT_ID,
    "sequence_number": SEQUENCE_NUMBER,
    "file_sequence_number": FILE_SEQUENCE_NUMBER,
    "data_file": DATA_FILE,
}
DATA_FILE_IDS = {
    "content": CONTENT,
    "file_path": FILE_PATH,
    "file_format": FILE_FORMAT,
    "partition": PARTITION,
    "record_count": RECORD_COUNT,
    "file_size_in_bytes": FILE_SIZE_IN_BYTES,
    "column_sizes": COLUMN_SIZES,
    "value_counts": VALUE_COUNTS,
    "null_value_counts": NULL_VALUE_COUNTS,
    "nan_value_counts": NAN_VALUE_COUNTS,
    "lower_bounds": LOWER_BOUNDS,
    "upper_bounds": UPPER_BOUNDS,
    "key_metadata": KEY_METADATA,
    "split_offsets": SPLIT_OFFSETS,
    "equality_ids": EQUALITY_IDS,
    "sort_order_id": SORT_ORDER_ID,
    "first_row_id": FIRST_ROW_ID,
    "referenced_data_file": REFERENCED_DATA_FILE,
    "content_offset": CONTENT_OFFSET,
    "content_size_in_bytes": CONTENT_SIZE_IN_BYTES,
}
SHAPES = {
    STATUS: Shape.NUMBER,
    SNAPSHOT_ID: Shape.NUMBER,
    SEQUENCE_NUMBER: Shape.NUMBER,
    FILE_SEQUENCE_NUMBER: Shape.NUMBER,
    CONTENT: Shape.NUMBER,
    FILE_PATH: Shape.SLICE,
    FILE_FORMAT: Shape.SLICE,
    RECORD_COUNT: Shape.NUMBER,
    FILE_SIZE_IN_BYTES: Shape.NUMBER,
    COLUMN_SIZES: Shape.COUNTS,
    VALUE_COUNTS: Shape.COUNTS,
    NULL_VALUE_COUNTS: Shape.COUNTS,
    NAN_VALUE_COUNTS: Shape.COUNTS,
    LOWER_BOUNDS: Shape.BOUNDS,
    UPPER_BOUNDS: Shape.BOUNDS,
    KEY_METADATA: Shape.SLICE,
    SPLIT_OFFSETS: Shape.NUMBERS,
    EQUALITY_IDS: Shape.NUMBERS,
    SORT_ORDER_ID: Shape.NUMBER,
    FIRST_ROW_ID: Shape.NUMBER,
    REFERENCED_DATA_FILE: Shape.SLICE,
    CONTENT_OFFSET: Shape.NUMBER,
    CONTENT_SIZE_IN_BYTES: Shape.NUMBER,
}
CAN_BE_LEFT_OUT = frozenset(
    {
        FILE_PATH,
        KEY_METADATA,
        SPLIT_OFFSETS,
        EQUALITY_IDS,
        SORT_ORDER_ID,
        REFERENCED_DATA_FILE,
        CONTENT_OFFSET,
        CONTENT_SIZE_IN_BYTES,
    }
)
"""Fields that entries can be read without, by `without_fields`."""

_REQUIRED = (STATUS, FILE_PATH, FILE_FORMAT, RECORD_COUNT, FILE_SIZE_IN_BYTES)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field of the entries, flattened out of the records around it.

    `path` holds the Avro names that lead to it. It is identified by `field_id` or by its index in
    the partition struct; if it has neither, it is skipped.
    """

    path: tuple[str, ...]
    node: AvroNode
    field_id: int | None = None
    partition_index: int | None = None


@dataclass(frozen=True, slots=True)
class ManifestLayout:
    """A manifest's schema: its leaves in stored order, and the fields of its partition struct.

    `anchor` is the index of the leaf `file_format`. If `is_flat` is false, a record around a leaf
    may be null, and entries cannot be decoded column by column.
    """

    leaves: tuple[Leaf, ...]
    partition_fields: tuple[AvroField, ...]
    anchor: int
    is_flat: bool
    record_schema: Any


@lru_cache(maxsize=128)
def manifest_layout(schema_json: str) -> ManifestLayout:
    """The layout of manifests with this schema.

    Fields are matched by id, or by name in records without ids.

    Raises:
        ValueError: it is not the schema of a manifest.
    """
    root = parse_avro_schema(schema_json)
    if not isinstance(root, AvroRecord):
        raise ValueError("the Avro schema is not a record")
    _refuse_empty_elements(root)
    leaves = tuple(_entry_leaves(root))
    positions = {leaf.field_id: index for index, leaf in enumerate(leaves)}
    if missing := [name_of(i) for i in _REQUIRED if i not in positions]:
        raise ValueError(f"the Avro schema lacks {', '.join(missing)}")
    data_file = _member(root, DATA_FILE, ENTRY_IDS)
    partition = data_file and _member(data_file, PARTITION, DATA_FILE_IDS)
    return ManifestLayout(
        leaves=leaves,
        partition_fields=partition.fields if partition else (),
        anchor=positions[FILE_FORMAT],
        is_flat=_is_flat(root),
        record_schema=record_schema(schema_json),
    )


def without_fields(layout: ManifestLayout, left_out: frozenset[int]) -> ManifestLayout:
    """The layout of the same manifests, whose entries are read without some fields.

    Args:
        left_out: ids among `CAN_BE_LEFT_OUT`.
    """
    if not left_out:
        return layout
    leaves = (
        replace(leaf, field_id=None) if leaf.field_id in left_out else leaf
        for leaf in layout.leaves
    )
    return replace(layout, leaves=tuple(leaves))


def name_of(field_id: int) -> str:
    """The specification's name of a field of the entries."""
    return next(name for name, i in (ENTRY_IDS | DATA_FILE_IDS).items() if i == field_id)


def known_id(field: AvroField, record: AvroRecord, ids: Mapping[str, int]) -> int | None:
    """The field's id, if it is one of `ids`; in records without ids, the id of its name."""
    if any(member.field_id is not None for member in record.fields):
        return field.field_id if field.field_id in ids.values() else None
    return ids.get(field.name)


def _entry_leaves(root: AvroRecord) -> Iterator[Leaf]:
    for field in root.fields:
        field_id = known_id(field, root, ENTRY_IDS)
        path = (field.avro_name,)
        inner = without_null(field.node)
        if field_id == DATA_FILE and isinstance(inner, AvroRecord):
            yield from _data_file_leaves(inner, path)
        else:
            yield _leaf(path, field.node, field_id)


def _data_file_leaves(record: AvroRecord, path: tuple[str, ...]) -> Iterator[Leaf]:
    for field in record.fields:
        field_id = known_id(field, record, DATA_FILE_IDS)
        here = (*path, field.avro_name)
        inner = without_null(field.node)
        if field_id == PARTITION and isinstance(inner, AvroRecord):
            for index, part in enumerate(inner.fields):
                yield Leaf((*here, part.avro_name), part.node, partition_index=index)
        else:
            yield _leaf(here, field.node, field_id)


def _leaf(path: tuple[str, ...], node: AvroNode, field_id: int | None) -> Leaf:
    """A known field, or one to skip; statistics of an unexpected shape are skipped."""
    shape = None if field_id is None else SHAPES.get(field_id)
    if shape is None or not _has_shape(node, shape):
        if shape not in (None, Shape.COUNTS, Shape.BOUNDS):
            raise ValueError(f"{'.'.join(path)} has an unexpected type in the Avro schema")
        return Leaf(path, node)
    return Leaf(path, node, field_id)


def _has_shape(node: AvroNode, shape: Shape) -> bool:
    inner = without_null(node)
    items = inner.items if isinstance(inner, AvroArray) else None
    pair = None if items is None else key_value(items)
    match shape:
        case Shape.NUMBER:
            return is_number(inner)
        case Shape.SLICE:
            return is_slice(inner)
        case Shape.NUMBERS:
            return items is not None and is_number(without_null(items))
        case Shape.COUNTS:
            return pair is not None and is_number(without_null(pair[1]))
        case Shape.BOUNDS:
            return pair is not None and is_slice(without_null(pair[1]))


def _member(record: AvroRecord, field_id: int, ids: Mapping[str, int]) -> AvroRecord | None:
    for field in record.fields:
        inner = without_null(field.node)
        if known_id(field, record, ids) == field_id and isinstance(inner, AvroRecord):
            return inner
    return None


def _is_flat(root: AvroRecord) -> bool:
    """Whether both the data file and its partition are required."""
    data_files = [f.node for f in root.fields if known_id(f, root, ENTRY_IDS) == DATA_FILE]
    record = data_files[0]
    return isinstance(record, AvroRecord) and not any(
        isinstance(field.node, AvroUnion)
        for field in record.fields
        if known_id(field, record, DATA_FILE_IDS) == PARTITION
    )


def _refuse_empty_elements(node: AvroNode) -> None:
    """Rejects arrays of empty elements, of which a few bytes could claim any number."""
    match node:
        case AvroArray(items=items):
            if _is_empty(items):
                raise ValueError("the Avro schema has an array of elements without bytes")
            _refuse_empty_elements(items)
        case AvroMap(values=values):
            _refuse_empty_elements(values)
        case AvroUnion(branches=branches):
            for branch in branches:
                _refuse_empty_elements(branch)
        case AvroRecord(fields=fields):
            for field in fields:
                _refuse_empty_elements(field.node)


def _is_empty(node: AvroNode) -> bool:
    match node:
        case AvroPrimitive(kind=kind, size=size):
            return kind == "null" or (kind == "fixed" and size == 0)
        case AvroRecord(fields=fields):
            return all(_is_empty(field.node) for field in fields)
        case _:
            return False
