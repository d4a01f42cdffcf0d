"""Finds and replaces the leaves of nested arrays, by their ordinals in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from icebergds.formats.arrow.arrays import with_child, with_entries, with_fields
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn


def leaves_of(
    columns: Sequence[FileColumn], arrays: Sequence[pa.Array]
) -> Iterator[tuple[int, pa.Array]]:
    """The ordinal and the array of each leaf."""
    for column, array in zip(columns, arrays, strict=True):
        if column.children:
            yield from leaves_of(column.children, _children(column, array))
        else:
            yield column.leaves[0], array


def with_leaves(array: pa.Array, column: FileColumn, replaced: Mapping[int, pa.Array]) -> pa.Array:
    """The column's array with other leaves."""
    if replaced.keys().isdisjoint(column.leaves):
        return array
    if not column.children:
        return replaced[column.leaves[0]]
    children = [
        with_leaves(child, below, replaced)
        for below, child in zip(column.children, _children(column, array), strict=True)
    ]
    match column.kind:
        case ColumnKind.STRUCT:
            fields = [
                field.with_type(child.type)
                for field, child in zip(array.type, children, strict=True)
            ]
            return with_fields(array, pa.struct(fields), children)
        case ColumnKind.MAP:
            key, item = children
            target = pa.map_(
                array.type.key_field.with_type(key.type),
                array.type.item_field.with_type(item.type),
            )
            return with_entries(array, target, key, item)
        case _:
            target = pa.list_(array.type.value_field.with_type(children[0].type))
            return with_child(array, target, children[0])


def _children(column: FileColumn, array: pa.Array) -> list[pa.Array]:
    match column.kind:
        case ColumnKind.STRUCT:
            return [array.field(at) for at in range(array.type.num_fields)]
        case ColumnKind.MAP:
            return [array.keys, array.items]
        case _:
            return [array.values]
