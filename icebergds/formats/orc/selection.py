"""Chooses what pyarrow reads of an ORC file, and finds leaves in what it read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from icebergds.formats.arrow.arrays import with_child, with_entries, with_fields
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns to read with pyarrow: their `names` (None for all) and their `leaves`."""

    names: list[str] | None
    leaves: frozenset[int]


def select(columns: Sequence[FileColumn], leaves: frozenset[int]) -> Selection:
    """The narrowest selection by name that contains the leaves.

    Names are paths through structs, joined with dots; lists add nothing to a path and maps can
    only be read whole. If a path is ambiguous, all columns are read.
    """
    paths = Counter(_paths(columns, ""))
    names: list[str] = []
    selected: set[int] = set()
    for path, column in _parts(columns, "", leaves):
        names.append(path)
        selected.update(column.leaves)
    if any(paths[name] > 1 for name in names):
        return Selection(None, frozenset(leaf for column in columns for leaf in column.leaves))
    return Selection(names, frozenset(selected))


def _paths(columns: Sequence[FileColumn], prefix: str) -> Iterator[str]:
    """The paths by which pyarrow finds columns."""
    for column in columns:
        yield prefix + column.name
        yield from _paths(_named_below(column), f"{prefix}{column.name}.")


def _parts(
    columns: Sequence[FileColumn], prefix: str, leaves: frozenset[int]
) -> Iterator[tuple[str, FileColumn]]:
    """Disjoint columns that together contain the leaves, each with its path."""
    for column in columns:
        needed = leaves.intersection(column.leaves)
        path = prefix + column.name
        below = _named_below(column)
        whole = len(needed) == len(column.leaves) or not below or _holds_map(column)
        if needed and whole:
            yield path, column
        elif needed:
            yield from _parts(below, f"{path}.", leaves)


def _named_below(column: FileColumn) -> tuple[FileColumn, ...]:
    """The nearest columns below that are fields of structs, and so have names."""
    if column.kind is ColumnKind.STRUCT:
        return column.children
    return tuple(named for child in column.children for named in _named_below(child))


def _holds_map(column: FileColumn) -> bool:
    """Whether a map lies between the column and the nearest named columns below."""
    if column.kind is ColumnKind.LIST:
        return _holds_map(column.children[0])
    return column.kind is ColumnKind.MAP


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
