"""A file's batches as batches of the read schema, by field id (spec: Column Projection).

A projection is planned once a file. Columns whose layout already fits are passed on as they are;
nested ones whose names or nullability differ are wrapped anew around the same buffers; only values
of another type are converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import CorruptFileError, InvalidDataError, UnsupportedFeatureError
from icebergds.formats.arrow.cast import cast_stored
from icebergds.formats.arrow.types import default_value, repeat, schema_to_arrow, to_arrow
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn, find_child
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    UNKNOWN,
    VARIANT,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    ScalarType,
    StructType,
)


@dataclass(frozen=True, slots=True)
class Projection:
    """How rows of one file become rows of one read schema; `schema` is its Arrow schema."""

    schema: pa.Schema
    _slots: tuple[_Slot, ...]

    def apply(self, arrays: Sequence[pa.Array], num_rows: int) -> pa.RecordBatch:
        """Rows of the file in the read schema.

        Args:
            arrays: the columns that the projection was planned for, as read from the file.
            num_rows: how many rows there are.

        Raises:
            CorruptFileError: a column's stored type cannot be read as the table's.
            InvalidDataError: a value does not fit, or a required field is null.
        """
        columns = [slot.take(arrays, num_rows, None) for slot in self._slots]
        if columns:
            return pa.RecordBatch.from_arrays(columns, schema=self.schema)
        # Built from no columns, a batch has no rows.
        rows = pa.Array.from_buffers(pa.struct([]), num_rows, [None])
        return pa.RecordBatch.from_struct_array(rows)


def needed_leaves(columns: Sequence[FileColumn], schema: Schema, source: str) -> frozenset[int]:
    """The leaf columns of a file that hold the fields to read; none if all have to be filled.

    Raises:
        CorruptFileError: a column cannot be what the table says, or two have one id.
        UnsupportedFeatureError: a column is a shredded variant.
    """
    leaves: set[int] = set()
    for field in schema.fields:
        leaves |= _leaves_of_field(columns, field, _Place((), source))
    return frozenset(leaves)


def plan_projection(
    columns: Sequence[FileColumn], schema: Schema, constants: Mapping[int, Any], source: str
) -> Projection:
    """Matches columns with the fields to read.

    A field that the file lacks is filled with its constant if it has one, else with its initial
    default, else with null, at every level. A struct that the file lacks is not null where a
    constant inside of it says so. A field may stand more than once at the top of `schema`.

    Args:
        columns: the columns that will be read from the file, as narrow as they will be read
            (`restrict` to the needed leaves, or wider).
        schema: the fields to read, in order.
        constants: in-memory values, by id, of fields that the file may lack, at any depth of
            structs.
        source: the file, for messages.

    Raises:
        InvalidDataError: a required field is neither in the file nor has it a value.
    """
    top = _Place((), source)
    slots = tuple(_plan_field(columns, field, top, constants) for field in schema.fields)
    return Projection(schema_to_arrow(schema), slots)


@dataclass(frozen=True, slots=True)
class _Place:
    """A column of a file, for messages."""

    path: tuple[str, ...]
    source: str

    def __truediv__(self, name: str) -> _Place:
        return _Place((*self.path, name), self.source)

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)!r} of {self.source}"


def _leaves_of_field(
    siblings: Sequence[FileColumn], field: NestedField, parent: _Place
) -> set[int]:
    """The leaf columns that hold a field; none if the file lacks it."""
    column = find_child(siblings, field.field_id, parent.source)
    if column is None or field.field_type == UNKNOWN:
        return set()
    return _leaves_of_type(column, field.field_type, parent / field.name)


def _leaves_of_type(column: FileColumn, wanted: IcebergType, place: _Place) -> set[int]:
    _check_shape(column, wanted, place)
    match wanted:
        case StructType(fields=fields):
            leaves: set[int] = set()
            for field in fields:
                leaves |= _leaves_of_field(column.children, field, place)
            # A struct of which no field is read still says where it is null.
            return leaves or _narrowest_leaves(column)
        case ListType():
            return _leaves_of_type(column.children[0], wanted.element_type, place / "element")
        case MapType():
            key, value = column.children
            return _leaves_of_type(key, wanted.key_type, place / "key") | _leaves_of_type(
                value, wanted.value_type, place / "value"
            )
        case _:
            return set(column.leaves)


def _check_shape(column: FileColumn, wanted: IcebergType, place: _Place) -> None:
    match wanted:
        case StructType():
            fits = column.kind is ColumnKind.STRUCT
        case ListType():
            fits = column.kind is ColumnKind.LIST
        case MapType():
            fits = column.kind is ColumnKind.MAP
        case _ if wanted == VARIANT:
            names = {child.name for child in column.children}
            if column.kind is ColumnKind.STRUCT and "typed_value" in names:
                raise UnsupportedFeatureError(
                    f"{place}: shredded variants are not read; leave the column out or rewrite "
                    "the file without shredding"
                )
            fits = column.kind is ColumnKind.STRUCT and names == {"metadata", "value"}
        case _:
            fits = column.kind is ColumnKind.LEAF
    if not fits:
        raise CorruptFileError(f"{place}: the file stores a {column.kind}, the table has {wanted}")


def _narrowest_leaves(column: FileColumn) -> set[int]:
    """The fewest leaves that tell where a struct is null: not in lists or maps if there are others.

    A map is no map without its keys and its values.
    """
    match column.kind:
        case ColumnKind.STRUCT if column.children:
            return _narrowest_leaves(min(column.children, key=lambda child: _WIDTHS[child.kind]))
        case ColumnKind.LIST | ColumnKind.MAP:
            return set().union(*map(_narrowest_leaves, column.children))
        case _:
            return set(column.leaves)


_WIDTHS = {ColumnKind.LEAF: 0, ColumnKind.STRUCT: 1, ColumnKind.LIST: 2, ColumnKind.MAP: 3}


class _Reader(Protocol):
    """Turns a column as read into one of the target type.

    `aligned` says that fields stand in the same places on both sides, so that equal Arrow types
    mean equal columns.
    """

    @property
    def aligned(self) -> bool: ...

    def read(self, array: pa.Array) -> pa.Array: ...


class _Filler:
    """One value for all rows."""

    def __init__(self, field_type: IcebergType, value: Any) -> None:
        self._field_type = field_type
        self._value = value
        self._array = repeat(field_type, value, 0)

    def fill(self, num_rows: int) -> pa.Array:
        if len(self._array) < num_rows:
            self._array = repeat(self._field_type, self._value, num_rows)
        return self._array.slice(0, num_rows)


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a field's values come from: the column at `index`, or a filler."""

    index: int | None
    source: _Reader | _Filler
    required: bool
    place: _Place

    def take(
        self, arrays: Sequence[pa.Array], num_rows: int, parent: pa.StructArray | None
    ) -> pa.Array:
        """The field's values; `parent` is the struct around it, whose nulls excuse its own."""
        if isinstance(self.source, _Filler):
            return self.source.fill(num_rows)
        assert self.index is not None
        array = self.source.read(arrays[self.index])
        if self.required and array.null_count and _has_own_null(array, parent):
            raise _null_in_required(self.place)
        return array


@dataclass(frozen=True, slots=True)
class _ScalarReader:
    field_type: ScalarType
    target: pa.DataType
    place: _Place

    @property
    def aligned(self) -> bool:
        return True

    def read(self, array: pa.Array) -> pa.Array:
        return cast_stored(array, self.target, self.field_type, str(self.place))


@dataclass(frozen=True, slots=True)
class _StructReader:
    slots: tuple[_Slot, ...]
    target: pa.DataType
    aligned: bool

    def read(self, array: pa.Array) -> pa.Array:
        array = _storage(array)
        if self.aligned and array.type == self.target:
            return array
        fields = [array.field(index) for index in range(array.type.num_fields)]
        children = [slot.take(fields, len(array), array) for slot in self.slots]
        validity = array.is_valid().buffers()[1] if array.null_count else None
        return pa.Array.from_buffers(
            self.target, len(array), [validity], array.null_count, children=children
        )


@dataclass(frozen=True, slots=True)
class _ListReader:
    element: _Reader
    element_required: bool
    target: pa.DataType
    place: _Place

    @property
    def aligned(self) -> bool:
        return self.element.aligned

    def read(self, array: pa.Array) -> pa.Array:
        array = _as_list(_storage(array))
        if self.aligned and array.type == self.target:
            return array
        values = self.element.read(array.values)
        if self.element_required and values.null_count and array.flatten().null_count:
            raise _null_in_required(self.place / "element")
        return _with_children(array, self.target, values)


@dataclass(frozen=True, slots=True)
class _MapReader:
    key: _Reader
    value: _Reader
    value_required: bool
    target: pa.DataType
    place: _Place

    @property
    def aligned(self) -> bool:
        return self.key.aligned and self.value.aligned

    def read(self, array: pa.Array) -> pa.Array:
        array = _storage(array)
        if self.aligned and array.type == self.target:
            return array
        values = self.value.read(array.items)
        if self.value_required and values.null_count:
            raise _null_in_required(self.place / "value")
        entries = pa.StructArray.from_arrays(
            [self.key.read(array.keys), values],
            fields=[self.target.key_field, self.target.item_field],
        )
        return _with_children(array, self.target, entries)


def _plan_field(
    siblings: Sequence[FileColumn],
    field: NestedField,
    parent: _Place,
    constants: Mapping[int, Any],
) -> _Slot:
    place = parent / field.name
    at = next((i for i, column in enumerate(siblings) if column.field_id == field.field_id), None)
    if at is not None and field.field_type != UNKNOWN:
        reader = _plan_type(siblings[at], field.field_type, place, constants)
        return _Slot(at, reader, field.required, place)
    filling = _filling(field, default_value(field), constants, place)
    return _Slot(None, _Filler(field.field_type, filling), field.required, place)


def _filling(field: NestedField, default: Any, constants: Mapping[int, Any], place: _Place) -> Any:
    """The value of a field that the file lacks, `default` where no constant says otherwise."""
    value = None if field.field_type == UNKNOWN else constants.get(field.field_id, default)
    if isinstance(field.field_type, StructType) and (
        value is not None or _is_set(field, constants)
    ):
        fields = field.field_type.fields
        defaults = value or [default_value(child) for child in fields]
        return tuple(
            _filling(child, inner, constants, place / child.name)
            for child, inner in zip(fields, defaults, strict=True)
        )
    if value is None and field.required:
        raise InvalidDataError(
            f"{place} is required, but the file lacks field id {field.field_id} and the field has "
            "no initial default"
        )
    return value


def _is_set(field: NestedField, constants: Mapping[int, Any]) -> bool:
    """Whether a field, or one inside of its struct, has a constant that is not null."""
    if isinstance(field.field_type, StructType):
        return any(_is_set(child, constants) for child in field.field_type.fields)
    return constants.get(field.field_id) is not None


def _plan_type(
    column: FileColumn, wanted: IcebergType, place: _Place, constants: Mapping[int, Any]
) -> _Reader:
    target = to_arrow(wanted)
    match wanted:
        case StructType(fields=fields):
            slots = tuple(_plan_field(column.children, field, place, constants) for field in fields)
            return _struct_reader(column, slots, target)
        case ListType():
            (element,) = column.children
            reader = _plan_type(element, wanted.element_type, place / "element", constants)
            return _ListReader(reader, wanted.element_required, target, place)
        case MapType():
            key, value = column.children
            return _MapReader(
                _plan_type(key, wanted.key_type, place / "key", constants),
                _plan_type(value, wanted.value_type, place / "value", constants),
                wanted.value_required,
                target,
                place,
            )
        case _ if wanted == VARIANT:
            return _struct_reader(column, _variant_slots(column, place), target)
        case _:
            return _ScalarReader(wanted, target, place)


def _struct_reader(
    column: FileColumn, slots: tuple[_Slot, ...], target: pa.DataType
) -> _StructReader:
    same_places = [slot.index for slot in slots] == list(range(len(column.children)))
    aligned = same_places and all(
        not isinstance(slot.source, _Filler) and slot.source.aligned for slot in slots
    )
    return _StructReader(slots, target, aligned)


def _variant_slots(column: FileColumn, place: _Place) -> tuple[_Slot, ...]:
    indexes = {child.name: index for index, child in enumerate(column.children)}
    return tuple(
        _Slot(indexes[name], _ScalarReader(BINARY, pa.binary(), place / name), True, place / name)
        for name in ("metadata", "value")
    )


def _storage(array: pa.Array) -> pa.Array:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array


def _as_list(array: pa.Array) -> pa.Array:
    """Large, fixed-size and view lists as plain lists."""
    if pa.types.is_list(array.type):
        return array
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return pa.ListArray.from_arrays(
        pa.array(offsets).cast(pa.int32()),
        array.flatten(),
        type=pa.list_(array.type.value_field),
        mask=array.is_null(),
    )


def _with_children(array: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or map of the same shape around other elements, which are not sliced."""
    return pa.Array.from_buffers(
        target,
        len(array),
        array.buffers()[:2],
        array.null_count,
        array.offset,
        children=[child],
    )


def _has_own_null(array: pa.Array, parent: pa.StructArray | None) -> bool:
    if parent is None or not parent.null_count:
        return True
    return bool(pc.any(pc.and_(array.is_null(), parent.is_valid())).as_py())


def _null_in_required(place: _Place) -> InvalidDataError:
    return InvalidDataError(f"{place} is required, but holds nulls")
