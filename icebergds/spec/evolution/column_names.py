"""Finds the columns that a path of names may mean (spec: Schemas and Data Types)."""

from __future__ import annotations

from collections.abc import Iterable

from icebergds.spec.schema import Schema
from icebergds.spec.types import ListType, MapType, NestedField, StructType, children


def find_column_ids(
    schema: Schema, path: tuple[str, ...], *, case_sensitive: bool
) -> tuple[int, ...]:
    """Ids of the fields that a path names; several if it is ambiguous.

    The exact path comes first, then the full dotted name (names may have dots), then the short
    name, which leaves out `element` and `value` around structs, as in Java Iceberg.
    """
    exact = tuple(i for i, names in schema.paths_by_id.items() if names == path)
    if exact:
        return exact
    full = {field_id: ".".join(names) for field_id, names in schema.paths_by_id.items()}
    short: dict[int, str] = {}
    _collect_short(schema.fields, (), None, short)
    wanted = ".".join(path)
    for fold in (str,) if case_sensitive else (str, str.lower):
        for names_by_id in (full, short):
            found = tuple(i for i, name in names_by_id.items() if fold(name) == fold(wanted))
            if found:
                return found
    return ()


def _collect_short(
    fields: Iterable[NestedField],
    prefix: tuple[str, ...],
    omitted: int | None,
    out: dict[int, str],
) -> None:
    for field in fields:
        path = (*prefix, field.name)
        out[field.field_id] = ".".join(path)
        kind = field.field_type
        is_omitted = field.field_id == omitted and isinstance(kind, StructType)
        match kind:
            case ListType(element_id=inner) | MapType(value_id=inner):
                omitted_inside: int | None = inner
            case _:
                omitted_inside = None
        _collect_short(children(kind), prefix if is_omitted else path, omitted_inside, out)
