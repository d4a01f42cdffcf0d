"""Edits partition specs field by field (spec: Partition Evolution)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icebergds.errors import InvalidOptionError
from icebergds.spec.partition import NO_FIELD_ID, PartitionField
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from icebergds.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class SpecDraft:
    """The fields of a partition spec that is being edited.

    Attributes:
        known: the fields of all specs of the table.
        before: the fields that the spec had before the edits.
        added: names of fields that an edit has added.
    """

    fields: tuple[PartitionField, ...]
    known: tuple[PartitionField, ...]
    format_version: int
    before: tuple[PartitionField, ...] = ()
    added: frozenset[str] = frozenset()


def add_partition_field(
    draft: SpecDraft, schema: Schema, source_id: int, transform: Transform, name: str | None
) -> SpecDraft:
    """Adds a field, under the id and name that an earlier spec had it with, if any.

    A field that an edit before has removed comes back to its place.

    Args:
        name: `ts_day`, `id_bucket_16` and so on by default, as in Java Iceberg.

    Raises:
        InvalidOptionError: the field is there already, the name is taken, or another field of time
            has been added for the column.
    """
    equal = [f for f in draft.fields if (f.source_ids, f.transform) == ((source_id,), transform)]
    column = schema.find_name(source_id)
    if equal and not isinstance(transform, VoidTransform):
        raise InvalidOptionError(
            f"the partition spec has {transform} of column {column!r} already, as field "
            f"{equal[0].name!r}"
        )
    for removed in draft.before:
        if (removed.source_ids, removed.transform) == ((source_id,), transform) and not equal:
            return _restored(draft, removed, name)
    if isinstance(transform, _TIMES):
        for field in draft.fields:
            same = field.name in draft.added and field.source_id == source_id
            if same and isinstance(field.transform, _TIMES):
                raise InvalidOptionError(
                    f"partition field {transform} of column {column!r} is redundant beside "
                    f"{field.transform}, which was added too; keep the finer one"
                )
    earlier = [f for f in draft.known if (f.source_ids, f.transform) == ((source_id,), transform)]
    if name is None:
        name = earlier[-1].name if earlier else partition_field_name(schema, source_id, transform)
    voids = _freed(draft, name)
    fields = (*voids, PartitionField((source_id,), NO_FIELD_ID, transform, name))
    return replace(draft, fields=fields, added=draft.added | {name})


def remove_partition_field(draft: SpecDraft, name: str) -> SpecDraft:
    """Removes a field; in format version 1, which keeps all fields, it becomes void.

    Raises:
        InvalidOptionError: there is no such field.
    """
    field = find_partition_field(draft, name)
    if draft.format_version > 1 or field.field_id == NO_FIELD_ID:
        kept = tuple(one for one in draft.fields if one is not field)
    else:
        void = replace(field, transform=VoidTransform())
        kept = tuple(void if one is field else one for one in draft.fields)
    return replace(draft, fields=kept, added=draft.added - {name})


def rename_partition_field(draft: SpecDraft, name: str, new_name: str) -> SpecDraft:
    """Renames a field.

    Raises:
        InvalidOptionError: there is no such field, or the name is taken.
    """
    field = find_partition_field(draft, name)
    if new_name == name:
        return draft
    fields = _freed(draft, new_name)
    renamed = tuple(replace(one, name=new_name) if one is field else one for one in fields)
    added = draft.added - {name} | ({new_name} if name in draft.added else set())
    return replace(draft, fields=renamed, added=added)


def find_partition_field(draft: SpecDraft, name: str) -> PartitionField:
    """The field of this name that is not void.

    Raises:
        InvalidOptionError: there is none.
    """
    live = [f for f in draft.fields if not isinstance(f.transform, VoidTransform)]
    found = [field for field in live if field.name == name]
    if not found:
        names = [field.name for field in live]
        listed = f"fields are {', '.join(names)}" if names else "the table is not partitioned"
        hint = did_you_mean(name, names) or listed
        raise InvalidOptionError(f"there is no partition field {name!r}; {hint}")
    return found[0]


def partition_field_name(schema: Schema, source_id: int, transform: Transform) -> str:
    """The name of a field that nobody named, as Java Iceberg's updates give it."""
    column = schema.find_name(source_id)
    match transform:
        case BucketTransform(num_buckets=number):
            return f"{column}_bucket_{number}"
        case TruncateTransform(width=width):
            return f"{column}_trunc_{width}"
        case IdentityTransform():
            return str(column)
        case VoidTransform():
            return f"{column}_null"
        case _:
            return f"{column}_{transform}"


_TIMES = (YearTransform, MonthTransform, DayTransform, HourTransform)


def _restored(draft: SpecDraft, removed: PartitionField, name: str | None) -> SpecDraft:
    """The fields with one that was removed, and in format version 1 became void, as it was."""
    field = removed if name is None else replace(removed, name=name)
    others = [one for one in _freed(draft, field.name) if one.field_id != field.field_id]
    ahead = {one.field_id for one in draft.before[: draft.before.index(removed)]}
    at = sum(one.field_id in ahead for one in others)
    return replace(draft, fields=(*others[:at], field, *others[at:]))


def _freed(draft: SpecDraft, name: str) -> Sequence[PartitionField]:
    """The fields, without that of a name if it is void: it gets another one."""
    if not name:
        raise InvalidOptionError("a partition field's name must not be empty")
    freed = []
    for field in draft.fields:
        if field.name == name:
            if not isinstance(field.transform, VoidTransform):
                raise InvalidOptionError(
                    f"a partition field named {name!r} exists already, {field.transform}; give the "
                    "new one another name, or remove it first"
                )
            field = replace(field, name=f"{name}_{field.field_id}")
        freed.append(field)
    return tuple(freed)
