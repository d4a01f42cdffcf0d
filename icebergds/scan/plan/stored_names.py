"""Tells from a table's schemas how its data files may have stored columns.

A file keeps the names and types that its columns had when it was written, or what its writer made
of the names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from icebergds.spec.schema import Schema
from icebergds.spec.types import DecimalType

# What no writer replaces. Some replace other characters by `_x` and their code, and write `_`
# before a digit, so that a name that looks like this may be another column's.
_KEPT = re.compile(r"(?!_[0-9])(?!.*_x[0-9A-Fa-f])[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def own_names(history: Sequence[Schema]) -> frozenset[int]:
    """Fields whose name no file has for another field beside them, whatever their case.

    Args:
        history: all schemas of the table.

    Returns:
        Their ids; none if schemas were removed, because files may have been written with them.
    """
    if not _is_whole(history):
        return frozenset()
    ids: dict[tuple[int | None, str], set[int]] = defaultdict(set)
    names: dict[int, set[str]] = defaultdict(set)
    for schema in history:
        for field_id, field in schema.fields_by_id.items():
            ids[schema.parents_by_id.get(field_id), field.name.lower()].add(field_id)
            names[field_id].add(field.name)
    shared = frozenset().union(*(found for found in ids.values() if len(found) > 1))
    return frozenset(
        field_id
        for field_id, found in names.items()
        if field_id not in shared and all(map(_KEPT.fullmatch, found))
    )


def constant_names(history: Sequence[Schema]) -> frozenset[int]:
    """The fields among `own_names` that never had another name; every file has them under it."""
    names: dict[int, set[str]] = defaultdict(set)
    for schema in history:
        for field_id, field in schema.fields_by_id.items():
            names[field_id].add(field.name)
    return frozenset(field_id for field_id in own_names(history) if len(names[field_id]) == 1)


def widened_decimals(history: Sequence[Schema]) -> frozenset[int]:
    """The fields that had decimal types of several precisions."""
    types: dict[int, set[DecimalType]] = defaultdict(set)
    for schema in history:
        for field_id, field in schema.fields_by_id.items():
            if isinstance(field.field_type, DecimalType):
                types[field_id].add(field.field_type)
    return frozenset(field_id for field_id, found in types.items() if len(found) > 1)


def _is_whole(history: Sequence[Schema]) -> bool:
    return {schema.schema_id for schema in history} == set(range(len(history)))
