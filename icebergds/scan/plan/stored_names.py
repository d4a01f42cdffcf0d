"""Derives from a table's schemas how its data files may store columns.

A file keeps the names and types that its columns had when it was written, or its writer's
replacements of the names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from icebergds.formats.manifests.header import parsed_schema
from icebergds.spec.schema import Schema
from icebergds.spec.types import DecimalType

# Names that no writer replaces. Some writers replace other characters with `_x` and their code, and
# prepend `_` to a leading digit, so a name that looks like this may belong to another column.
_KEPT = re.compile(r"(?!_[0-9])(?!.*_x[0-9A-Fa-f])[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def all_schemas(listed: Sequence[Schema], written_with: Iterable[bytes | None]) -> Sequence[Schema]:
    """All schemas that files may have been written with, as far as they are known.

    Metadata may lack some: schemas that no snapshot uses any more can be removed, and version 1
    need list only the current one. Each manifest has the schema that it was written with.

    Args:
        listed: the schemas in the table's metadata.
        written_with: the schemas of manifests as JSON; None for unknown ones.

    Returns:
        Schemas for the functions below; a gap in their ids shows that some are missing.
    """
    known = list(listed)
    for stored in written_with:
        schema = None if stored is None else parsed_schema(stored)
        last = max((one.schema_id for one in known), default=-1)
        if schema is None:
            # Leaves a gap in the ids.
            known.append(Schema((), last + 2))
        elif not any(one.fields == schema.fields for one in known):
            known.append(replace(schema, schema_id=last + 1))
    return known


def own_names(history: Sequence[Schema]) -> frozenset[int]:
    """Fields whose name, ignoring case, no file uses for a sibling field.

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
    """The fields of `own_names` that were never renamed, so all files use their names."""
    names: dict[int, set[str]] = defaultdict(set)
    for schema in history:
        for field_id, field in schema.fields_by_id.items():
            names[field_id].add(field.name)
    return frozenset(field_id for field_id in own_names(history) if len(names[field_id]) == 1)


def widened_decimals(history: Sequence[Schema]) -> frozenset[int]:
    """The fields whose decimal type has had several precisions."""
    types: dict[int, set[DecimalType]] = defaultdict(set)
    for schema in history:
        for field_id, field in schema.fields_by_id.items():
            if isinstance(field.field_type, DecimalType):
                types[field_id].add(field.field_type)
    return frozenset(field_id for field_id, found in types.items() if len(found) > 1)


def _is_whole(history: Sequence[Schema]) -> bool:
    return {schema.schema_id for schema in history} == set(range(len(history)))
