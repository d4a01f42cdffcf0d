"""Matches the columns of two scans, and chooses the types that both are read as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError
from icebergds.formats.arrow.types import to_arrow
from icebergds.operations.read.options import ReadOptions
from icebergds.operations.read.snapshot_read import chosen_columns, resolve_read
from icebergds.spec.evolution.field_tree import replaced
from icebergds.spec.evolution.promotion import can_promote
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


def compared_columns(before: Side, after: Side, read_after: Side) -> ComparedColumns:
    """The columns of two scans: matched by ids in one table, by names in two.

    Args:
        read_after: `after` as `read_alike` gives it.
    """
    old, new = (_chosen(*side) for side in (before, after))
    by_id = is_one_table(before, after)
    read = {field.field_id: field for field in _chosen(*read_after).fields}
    known = {(f.field_id if by_id else f.name): f for f in old.fields}
    shared, differing, not_compared = [], [], []
    for column in new.fields:
        match = known.pop(column.field_id if by_id else column.name, None)
        if match is None:
            differing.append(ColumnDifference(column.name, None, _shown(column)))
            continue
        if by_id and _can_be_one(match, read[column.field_id]):
            # The files of both are read by one type.
            shared.append((read[column.field_id],) * 2)
        elif not by_id and to_arrow(match.field_type).equals(to_arrow(column.field_type)):
            shared.append((match, column))
        else:
            not_compared.append(column.name)
        if _shown(match) != _shown(column):
            differing.append(ColumnDifference(column.name, _shown(match), _shown(column)))
    gone = [ColumnDifference(column.name, _shown(column), None) for column in known.values()]
    return ComparedColumns(tuple(shared), (*gone, *differing), tuple(not_compared))


def read_alike(before: Side, after: Side) -> tuple[Side, Side]:
    """Two scans, of one table with schemas by which the files of both can be read.

    The types of these are those that columns, and what is in them, were promoted to last; what was
    optional at any time is optional.
    """
    if not is_one_table(before, after):
        return before, after
    newest = max(before[0].metadata, after[0].metadata, key=lambda each: each.last_updated_ms)
    history = newest.schema_history
    return _widened(before, history), _widened(after, history)


def _widened(side: Side, history: Sequence[Schema]) -> Side:
    state, options = side
    known: dict[int, list[NestedField]] = {}
    for schema in history:
        for field_id, field in schema.fields_by_id.items():
            known.setdefault(field_id, []).append(field)
    schemas = tuple(_widest(schema, known) for schema in state.metadata.schemas)
    return replace(state, metadata=replace(state.metadata, schemas=schemas)), options


def _widest(schema: Schema, known: Mapping[int, Sequence[NestedField]]) -> Schema:
    def widest(field: NestedField) -> NestedField:
        found = known.get(field.field_id, (field,))
        optional = replace(field, required=all(each.required for each in found))
        for each in found:
            if is_scalar(field.field_type) and can_promote(field.field_type, each.field_type):
                return replace(
                    optional,
                    field_type=each.field_type,
                    initial_default=each.initial_default,
                    write_default=each.write_default,
                )
        return optional

    fields = schema.fields
    for inner in walk(schema.fields):
        if widest(inner) != inner:
            fields = replaced(fields, inner.field_id, widest)
    return replace(schema, fields=fields)


def _can_be_one(old: NestedField, read: NestedField) -> bool:
    """Whether columns of one id have types that can be read as one; ids may be given again."""
    others = {field.field_id: field.field_type for field in walk((old,))}
    for field in walk((read,)):
        kind = others.get(field.field_id, field.field_type)
        is_nested = not is_scalar(kind) and type(kind) is type(field.field_type)
        if not is_nested and not can_promote(kind, field.field_type):
            return False
    return True


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


def _chosen(state: TableState, options: ReadOptions) -> Schema:
    _, schema = resolve_read(options, state.metadata, state.name)
    return chosen_columns(options, state.metadata, schema)


def _shown(column: NestedField) -> str:
    return f"{column.name} {column.field_type}{' required' if column.required else ''}"
