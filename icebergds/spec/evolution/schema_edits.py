"""Edits schemas column by column (spec: Schema Evolution).

Each edit takes a draft and returns another one. Columns are named by their paths, from the root:
names of fields, with `element`, `key` and `value` inside lists and maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias

from icebergds.errors import InvalidOptionError
from icebergds.spec.evolution.column_names import find_column_ids
from icebergds.spec.evolution.field_tree import rearranged, replaced
from icebergds.spec.evolution.fresh_ids import with_fresh_ids_inside
from icebergds.spec.evolution.promotion import can_promote
from icebergds.spec.evolution.union_by_name import merge_schema
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    TIMESTAMP_NS,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    is_scalar,
)
from icebergds.spec.values.dates import MICROS_PER_DAY, NANOS_PER_MICRO, format_date
from icebergds.suggestions import did_you_mean

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaDraft:
    """A schema that is being edited.

    Attributes:
        last_column_id: the greatest id that the table has ever assigned to a column.
        format_version: of the table; it decides which edits are possible.
        allow_incompatible: whether rows that are stored may break what the schema demands: columns
            may become required, and names may differ by case alone.
        case_sensitive: whether columns are found only by the exact case of their names.
        added: ids of columns that an edit has added.
    """

    schema: Schema
    last_column_id: int
    format_version: int
    allow_incompatible: bool = False
    case_sensitive: bool = True
    added: frozenset[int] = frozenset()


def union_by_name(draft: SchemaDraft, incoming: Schema) -> SchemaDraft:
    """Adds and widens columns so that the schema can hold data of another one; see `merge_schema`.

    Raises:
        InvalidDataError: a column of it does not fit.
        InvalidOptionError: a new name would differ from another one by case alone.
    """
    schema, last = merge_schema(
        draft.schema, incoming, draft.last_column_id, case_sensitive=draft.case_sensitive
    )
    siblings: dict[Path, list[NestedField]] = {}
    for field_id, path in schema.paths_by_id.items():
        field = schema.fields_by_id[field_id]
        known = siblings.setdefault(path[:-1], [])
        if field_id > draft.last_column_id:
            _check_free(draft, path, known)
        known.append(field)
    return replace(draft, schema=schema, last_column_id=last)


def add_column(draft: SchemaDraft, path: Path, column: NestedField) -> SchemaDraft:
    """Adds a column at the end of its struct, with fresh ids at every level.

    Args:
        path: of the column; a list or map before its last name stands for the struct inside it.
        column: its name and ids do not matter.

    Raises:
        InvalidOptionError: the struct does not exist or is the key of a map, the name is taken, or
            the column is required without a default.
    """
    name = path[-1]
    parent = _struct_around(draft, path)
    siblings = draft.schema.fields if parent is None else _fields_of(parent)
    _check_free(draft, path, siblings)
    if column.required and column.initial_default is None and not draft.allow_incompatible:
        raise InvalidOptionError(
            f"column {_dotted(path)!r} cannot be added as required without a default, because rows "
            "that are stored have no value for it; add it as optional, give default_value (format "
            "version 3), or allow_incompatible_changes if the table has no rows"
        )
    ids = count(draft.last_column_id + 1)
    own_id = next(ids)
    inner = with_fresh_ids_inside(column.field_type, ids)
    added = replace(column, field_id=own_id, name=name, field_type=inner)
    fields = (*siblings, added)
    draft = replace(draft, added=draft.added | {own_id})
    if parent is None:
        return _with_fields(draft, fields)
    return _with_fields(
        draft, replaced(draft.schema.fields, parent.field_id, lambda f: _with_inner(f, fields))
    )


def delete_column(draft: SchemaDraft, path: Path) -> SchemaDraft:
    """Deletes a field of a struct, with all inside it.

    What the deletions of an update have left is checked after all edits, by `check_deletions`.

    Raises:
        InvalidOptionError: it does not exist, or it is not a field of a struct or inside the key
            of a map.
    """
    field = find_column(draft, path)
    _check_editable(draft, field, path, "deleted")

    def without(siblings: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
        return tuple(one for one in siblings if one.field_id != field.field_id)

    return _with_fields(draft, rearranged(draft.schema.fields, field.field_id, without))


def rename_column(draft: SchemaDraft, path: Path, new_name: str) -> SchemaDraft:
    """Renames a field of a struct.

    Raises:
        InvalidOptionError: it does not exist or is not a field of a struct, or the name is taken.
    """
    field = find_column(draft, path)
    _check_editable(draft, field, path, "renamed")
    others = [one for one in _siblings(draft, field) if one.field_id != field.field_id]
    _check_free(draft, (*path[:-1], new_name), others)
    return _edited(draft, field, lambda one: replace(one, name=new_name))


def update_type(draft: SchemaDraft, path: Path, new_type: IcebergType) -> SchemaDraft:
    """Promotes a column to a wider type.

    Raises:
        InvalidOptionError: the column does not exist or is inside the key of a map, or its type
            cannot be promoted to this one in the table's format version.
    """
    field = find_column(draft, path)
    _check_not_in_key(draft, field, path, "change")
    if field.field_type == new_type:
        return draft
    scalars = is_scalar(field.field_type) and is_scalar(new_type)
    if not scalars or not can_promote(field.field_type, new_type, draft.format_version):
        later = scalars and can_promote(field.field_type, new_type)
        remedy = (
            f"format version {draft.format_version} does not support it; upgrade the table to 3"
            if later
            else "possible are int to long, float to double, decimals to more digits of the same "
            "scale, and since version 3 date to timestamp or timestamp_ns"
        )
        raise InvalidOptionError(
            f"column {_dotted(path)!r} cannot change from {field.field_type} to {new_type}: "
            f"{remedy}"
        )
    default, written = (
        _promoted(path, value, field.field_type, new_type)
        for value in (field.initial_default, field.write_default)
    )
    return _edited(
        draft,
        field,
        lambda one: replace(
            one, field_type=new_type, initial_default=default, write_default=written
        ),
    )


def update_doc(draft: SchemaDraft, path: Path, doc: str | None) -> SchemaDraft:
    """Sets the comment of a field of a struct; None removes it.

    Raises:
        InvalidOptionError: it does not exist, or is a list's element or the key or value of a map.
    """
    field = find_column(draft, path)
    if not _is_struct_field(draft, field):
        raise InvalidOptionError(
            f"{_dotted(path)!r} cannot have a comment: only columns and fields of structs can"
        )
    return _edited(draft, field, lambda one: replace(one, doc=doc))


def make_optional(draft: SchemaDraft, path: Path) -> SchemaDraft:
    """Lets a column hold nulls.

    Raises:
        InvalidOptionError: it does not exist, is the key of a map, or an identifier field needs it.
    """
    field = find_column(draft, path)
    _check_not_in_key(draft, field, path, "become optional")
    for identifier in draft.schema.identifier_field_ids:
        if field.required and field.field_id in _with_ancestors(draft, identifier):
            raise InvalidOptionError(
                f"column {_dotted(path)!r} cannot become optional: the identifier field "
                f"{draft.schema.find_name(identifier)!r} needs it required; set other identifier "
                "fields first, with set_identifier_fields"
            )
    return _edited(draft, field, lambda one: replace(one, required=False))


def make_required(draft: SchemaDraft, path: Path) -> SchemaDraft:
    """Lets a column hold no nulls any more.

    Raises:
        InvalidOptionError: it does not exist, or it is optional and incompatible changes are not
            allowed; but a column that the same update has added with a default has no nulls.
    """
    field = find_column(draft, path)
    has_values = field.field_id in draft.added and field.initial_default is not None
    if field.optional and not has_values and not draft.allow_incompatible:
        raise InvalidOptionError(
            f"column {_dotted(path)!r} is optional and cannot become required, because rows that "
            "are stored may have nulls; if they have none, allow it by "
            "update_schema(allow_incompatible_changes=True)"
        )
    return _edited(draft, field, lambda one: replace(one, required=True))


def set_write_default(draft: SchemaDraft, path: Path, value: Any) -> SchemaDraft:
    """Sets what writers store where rows lack the column (spec: Default Values).

    Rows that are stored keep their values.

    Args:
        value: in-memory value of the column's type; None removes the default.

    Raises:
        InvalidOptionError: the column does not exist or is not a scalar field of a struct, or the
            table's format version is below 3.
    """
    field = find_column(draft, path)
    check_default(draft, path, field, value)
    if not _is_struct_field(draft, field):
        raise InvalidOptionError(
            f"{_dotted(path)!r} cannot have a default: only columns and fields of structs can"
        )
    return _edited(draft, field, lambda one: replace(one, write_default=value))


def check_default(draft: SchemaDraft, path: Path, field: NestedField, value: Any) -> None:
    """Raises InvalidOptionError if a column cannot have a default other than null."""
    if value is None:
        return
    if draft.format_version < 3:
        raise InvalidOptionError(
            f"column {_dotted(path)!r} cannot have a default: format version "
            f"{draft.format_version} has none; upgrade the table to version 3"
        )
    if not is_scalar(field.field_type):
        raise InvalidOptionError(
            f"column {_dotted(path)!r} of type {field.field_type} cannot have a default; give the "
            "fields inside it one"
        )


def move_column(
    draft: SchemaDraft, path: Path, *, before: Path | None = None, after: Path | None = None
) -> SchemaDraft:
    """Moves a field of a struct before or after another one of the same struct, else to its start.

    Raises:
        InvalidOptionError: a column does not exist, or they are not two fields of one struct.
    """
    field = find_column(draft, path)
    _check_editable(draft, field, path, "moved")
    beside = before or after
    target = None if beside is None else find_column(draft, beside)
    if target is not None and beside is not None:
        if target.field_id == field.field_id:
            raise InvalidOptionError(f"column {_dotted(path)!r} cannot be moved beside itself")
        if _parent(draft, target) != _parent(draft, field):
            raise InvalidOptionError(
                f"column {_dotted(path)!r} cannot be moved to {_dotted(beside)!r}: they are in "
                "different structs, and columns stay in theirs"
            )

    def moved(siblings: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
        others = [one for one in siblings if one.field_id != field.field_id]
        at = 0 if target is None else others.index(target) + (0 if before else 1)
        return (*others[:at], field, *others[at:])

    return _with_fields(draft, rearranged(draft.schema.fields, field.field_id, moved))


def set_identifier_fields(draft: SchemaDraft, paths: Sequence[Path]) -> SchemaDraft:
    """Sets the columns that identify a row (spec: Identifier Field IDs); none removes them.

    Raises:
        InvalidOptionError: a column does not exist.
    """
    ids = dict.fromkeys(find_column(draft, path).field_id for path in paths)
    return replace(draft, schema=replace(draft.schema, identifier_field_ids=tuple(ids)))


def find_column(draft: SchemaDraft, path: Path) -> NestedField:
    """The field at a path.

    Raises:
        InvalidOptionError: there is none, or it is ambiguous.
    """
    found = find_column_ids(draft.schema, path, case_sensitive=draft.case_sensitive)
    if len(found) > 1:
        names = ", ".join(repr(draft.schema.find_name(field_id)) for field_id in found)
        raise InvalidOptionError(
            f"column {_dotted(path)!r} is ambiguous: it may be {names}; give the exact name, with "
            "case_sensitive=True"
        )
    if not found:
        near_name = did_you_mean(_dotted(path), draft.schema.ids_by_name)
        raise InvalidOptionError(
            f"there is no column {_dotted(path)!r}; "
            + (near_name or f"columns are {', '.join(f.name for f in draft.schema.fields)}")
        )
    return draft.schema.fields_by_id[found[0]]


def _struct_around(draft: SchemaDraft, path: Path) -> NestedField | None:
    """The field whose type is the struct that a new column goes into; None for the root."""
    if len(path) == 1:
        return None
    parent = find_column(draft, path[:-1])
    if isinstance(parent.field_type, ListType):
        parent = parent.field_type.element_field
    elif isinstance(parent.field_type, MapType):
        parent = parent.field_type.value_field
    if not isinstance(parent.field_type, StructType):
        raise InvalidOptionError(
            f"column {_dotted(path)!r} cannot be added: {_dotted(path[:-1])!r} is of type "
            f"{parent.field_type}, expected a struct; if the dot is part of the name, give the "
            f"name as a tuple: ({_dotted(path)!r},)"
        )
    _check_not_in_key(draft, parent, path, "be added")
    return parent


def _check_free(draft: SchemaDraft, path: Path, siblings: Sequence[NestedField]) -> None:
    name = path[-1]
    if not name:
        raise InvalidOptionError("a column's name must not be empty")
    for other in siblings:
        if other.name == name:
            raise InvalidOptionError(f"column {_dotted(path)!r} already exists")
        if other.name.lower() != name.lower():
            continue
        if not draft.case_sensitive:
            raise InvalidOptionError(
                f"column {_dotted(path)!r} already exists, as {other.name!r}: this update ignores "
                "case"
            )
        if not draft.allow_incompatible:
            raise InvalidOptionError(
                f"column {_dotted(path)!r} would differ from {other.name!r} by case alone, and "
                "Spark could not tell them apart; choose another name, or allow it by "
                "update_schema(allow_incompatible_changes=True)"
            )


def _check_editable(draft: SchemaDraft, field: NestedField, path: Path, what: str) -> None:
    _check_not_in_key(draft, field, path, f"be {what}")
    if not _is_struct_field(draft, field):
        raise InvalidOptionError(
            f"{_dotted(path)!r} cannot be {what}: it is the inside of a list or map; only columns "
            "and fields of structs can"
        )


def _check_not_in_key(draft: SchemaDraft, field: NestedField, path: Path, what: str) -> None:
    """The fields of a map's key identify the entry: they never change."""
    for own in _with_ancestors(draft, field.field_id):
        parent = draft.schema.fields_by_id.get(draft.schema.parents_by_id.get(own, 0))
        around = None if parent is None else parent.field_type
        if isinstance(around, MapType) and around.key_id == own:
            raise InvalidOptionError(
                f"column {_dotted(path)!r} cannot {what}: it is in the key of a map, and keys do "
                "not change"
            )


def _with_ancestors(draft: SchemaDraft, field_id: int) -> tuple[int, ...]:
    return (field_id, *draft.schema.ancestors(field_id))


def _parent(draft: SchemaDraft, field: NestedField) -> int | None:
    return draft.schema.parents_by_id.get(field.field_id)


def _is_struct_field(draft: SchemaDraft, field: NestedField) -> bool:
    parent = _parent(draft, field)
    return parent is None or isinstance(draft.schema.fields_by_id[parent].field_type, StructType)


def _siblings(draft: SchemaDraft, field: NestedField) -> tuple[NestedField, ...]:
    parent = _parent(draft, field)
    return draft.schema.fields if parent is None else _fields_of(draft.schema.fields_by_id[parent])


def _promoted(path: Path, value: Any, before: IcebergType, after: IcebergType) -> Any:
    """A default as a value of the wider type; that of a date is its midnight."""
    if value is None or before != DATE or after == DATE:
        return value
    micros = value * MICROS_PER_DAY
    promoted = micros * NANOS_PER_MICRO if after == TIMESTAMP_NS else micros
    if not -(2**63) <= promoted < 2**63:
        raise InvalidOptionError(
            f"column {_dotted(path)!r} cannot change to {after}, which has no value for its "
            f"default, {format_date(value)}"
        )
    return promoted


def _fields_of(struct: NestedField) -> tuple[NestedField, ...]:
    assert isinstance(struct.field_type, StructType)
    return struct.field_type.fields


def _edited(
    draft: SchemaDraft, field: NestedField, change: Callable[[NestedField], NestedField]
) -> SchemaDraft:
    return _with_fields(draft, replaced(draft.schema.fields, field.field_id, change))


def _with_fields(draft: SchemaDraft, fields: tuple[NestedField, ...]) -> SchemaDraft:
    schema = replace(draft.schema, fields=fields)
    last = max(draft.last_column_id, schema.highest_field_id)
    return replace(draft, schema=schema, last_column_id=last)


def _with_inner(struct: NestedField, fields: tuple[NestedField, ...]) -> NestedField:
    assert isinstance(struct.field_type, StructType)
    return replace(struct, field_type=replace(struct.field_type, fields=fields))


def _dotted(path: Path) -> str:
    return ".".join(path)
