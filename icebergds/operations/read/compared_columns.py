"""Matches the columns of two scans, and chooses the types that both are read as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError
from icebergds.formats.arrow.types import to_arrow
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.snapshot_read import chosen_columns, resolve_read
from icebergds.spec.evolution.field_tree import replaced
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.reserved import MAX_TABLE_FIELD_ID
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, is_scalar, walk
from icebergds.suggestions import nearest_of

Side: TypeAlias = tuple[TableState, ReadOptions]
"""One of the two scans."""


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A column that only one side has, or that the sides have differently.

    Attributes:
        name: its name; after a change, the new one.
        before, after: its name and type; None where it is missing.
    """

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ComparedColumns:
    """The columns of two scans.

    Attributes:
        shared: those that both have, as each side reads them.
        differing: those that differ, or that one side lacks.
        not_compared: those of both whose types are not compared.
    """

    shared: tuple[tuple[NestedField, NestedField], ...]
    differing: tuple[ColumnDifference, ...]
    not_compared: tuple[str, ...]


def compared_columns(before: Side, after: Side) -> ComparedColumns:
    """The columns of two scans: matched by ids in one table, by names in two."""
    old, new = (_chosen(*side) for side in (before, after))
    by_id = is_one_table(before, after)
    newest = max(before[0].metadata, after[0].metadata, key=lambda each: each.last_updated_ms)
    known = {(f.field_id if by_id else f.name): f for f in old.fields}
    shared, differing, not_compared = [], [], []
    for column in new.fields:
        match = known.pop(column.field_id if by_id else column.name, None)
        if match is None:
            differing.append(ColumnDifference(column.name, None, _shown(column)))
            continue
        if by_id:
            # The files of both are read by one type.
            wide = _widest(match, column, newest)
            shared.append((wide, wide))
        elif to_arrow(match.field_type).equals(to_arrow(column.field_type)):
            shared.append((match, column))
        else:
            not_compared.append(column.name)
        if _shown(match) != _shown(column):
            differing.append(ColumnDifference(column.name, _shown(match), _shown(column)))
    gone = [ColumnDifference(column.name, _shown(column), None) for column in known.values()]
    return ComparedColumns(tuple(shared), (*gone, *differing), tuple(not_compared))


def is_one_table(before: Side, after: Side) -> bool:
    """Whether two scans are of one table."""
    one, other = before[0].metadata, after[0].metadata
    # Tables of version 1 need not have a UUID.
    return (one.table_uuid or one.location) == (other.table_uuid or other.location)


def key_columns(
    after: Side, shared: Sequence[tuple[NestedField, NestedField]], by: Sequence[str] | None
) -> tuple[str, ...]:
    """The columns by which changed rows are known; by default the identifier fields.

    Raises:
        InvalidOptionError: one of `by` is not a column of both sides.
    """
    names = [column.name for _, column in shared]
    if by is None:
        _, schema = resolve_read(after[1], after[0].metadata, after[0].name)
        found = [schema.find_name(id) for id in schema.identifier_field_ids]
        return tuple(name for name in found if name) if set(found) <= set(names) else ()
    for name in by:
        if name not in names:
            raise InvalidOptionError(
                f"by = {name!r}: not a column that both sides have, with one type; "
                f"{nearest_of(name, names)}"
            )
    return tuple(by)


def _widest(old: NestedField, new: NestedField, metadata: TableMetadata) -> NestedField:
    """The column as `new` names it, so that the files of all snapshots can be read by it.

    Types are those that it and what is in it were promoted to last; what was optional at any time
    is optional.
    """
    if old == new or new.field_id > MAX_TABLE_FIELD_ID:
        return new
    history = metadata.schema_history

    def widest(field: NestedField) -> NestedField:
        found = [schema.find_field(field.field_id) for schema in history]
        known = [each for each in found if each is not None]
        kind = known[0].field_type if is_scalar(field.field_type) else field.field_type
        is_required = all(each.required for each in known)
        return replace(field, field_type=kind, required=is_required)

    for inner in walk((new,)):
        (new,) = replaced((new,), inner.field_id, widest)
    return new


def _chosen(state: TableState, options: ReadOptions) -> Schema:
    _, schema = resolve_read(options, state.metadata, state.name)
    return chosen_columns(options, state.metadata, schema)


def _shown(column: NestedField) -> str:
    return f"{column.name} {column.field_type}{' required' if column.required else ''}"
