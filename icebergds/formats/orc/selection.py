"""Chooses what pyarrow reads of an ORC file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
