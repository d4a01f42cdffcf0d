"""Projects a file's columns to the read schema by field id (spec: Column Projection).

A projection is planned once per file. Columns whose layout already fits are not changed; nested
ones whose names or nullability differ are re-created around the same buffers; only values of
another type are converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.formats.arrow.arrays import storage
from icebergds.formats.arrow.cast import cast_stored
from icebergds.formats.arrow.converters import (
    Constant,
    Converter,
    FieldSource,
    FromColumn,
    ListConverter,
    MapConverter,
    StructConverter,
)
from icebergds.formats.arrow.types import default_value, schema_to_arrow, to_arrow
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn, find_child
from icebergds.formats.data_file.shredded_variants import (
    METADATA,
    TYPED_VALUE,
    VALUE,
    is_shredded,
    plan_shredded_value,
)
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
    """Converts rows of one file to the read schema; `schema` is its Arrow schema."""

    schema: pa.Schema
    _fields: tuple[FieldSource, ...]

    def apply(self, arrays: Sequence[pa.Array], num_rows: int) -> pa.RecordBatch:
        """Converts rows of the file to the read schema.

        Args:
            arrays: the columns that the projection was planned for, as read from the file.
            num_rows: how many rows there are.

        Raises:
            CorruptFileError: a column's stored type cannot be read as the table's.
            InvalidDataError: a value does not fit, or a required field is null.
        """
        columns = [field.take(arrays, num_rows, 0) for field in self._fields]
        if columns:
            return pa.RecordBatch.from_arrays(columns, schema=self.schema)
        # A batch built from no columns has no rows.
        rows = pa.Array.from_buffers(pa.struct([]), num_rows, [None])
        return pa.RecordBatch.from_struct_array(rows)


def needed_leaves(columns: Sequence[FileColumn], schema: Schema, source: str) -> frozenset[int]:
    """The leaf columns of a file that hold the fields to read; empty if it has none of the fields.

    Raises:
        CorruptFileError: a column's type is incompatible with the table's, or two have one id.
    """
    leaves: set[int] = set()
    for field in schema.fields:
        leaves |= _leaves_of_field(columns, field, _Place((), source))
    return frozenset(leaves)


def plan_projection(
    columns: Sequence[FileColumn], schema: Schema, constants: Mapping[int, Any], source: str
) -> Projection:
    """Matches a file's columns to the fields to read.

    A field that the file lacks is filled with its constant if it has one, else with its initial
    default, else with null, at every level. A struct that the file lacks is not null if a field
    inside it has a constant. A field may occur more than once at the top level of `schema`.

    Args:
        columns: the columns that will be read from the file, narrowed as they will be read
            (`restrict` to the needed leaves, or wider).
        schema: the fields to read, in order.
        constants: in-memory values, by id, of fields that the file may lack, at any depth of
            structs.
        source: the file, for errors.

    Raises:
        CorruptFileError: the columns of a shredded variant are not those of the specification.
        InvalidDataError: the file lacks a required field that has no constant and no default.
        UnsupportedFeatureError: a variant is shredded into a type that variants do not have.
    """
    top = _Place((), source)
    fields = tuple(_plan_field(columns, field, top, constants) for field in schema.fields)
    return Projection(schema_to_arrow(schema), fields)


@dataclass(frozen=True, slots=True)
class _Place:
    """A column of a file, for errors."""

    path: tuple[str, ...]
    source: str

    def __truediv__(self, name: str) -> _Place:
        return _Place((*self.path, name), self.source)

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)!r} of {self.source}"

    def null_in_required(self, count: int) -> InvalidDataError:
        return InvalidDataError(f"{self} is required, but holds {count} nulls")


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
            # If no field of a struct is read, some leaf must tell which structs are null.
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
            fits = column.kind is ColumnKind.STRUCT and (
                {METADATA} < names <= {METADATA, VALUE, TYPED_VALUE}
            )
        case _:
            fits = column.kind is ColumnKind.LEAF
    if not fits:
        raise CorruptFileError(
            f"{place}: the file stores a {column.kind}, but the table's type is {wanted}"
        )


def _narrowest_leaves(column: FileColumn) -> set[int]:
    """The fewest leaves that tell which structs are null, outside lists and maps if possible.

    A map needs both its keys and its values.
    """
    match column.kind:
        case ColumnKind.STRUCT if column.children:
            return _narrowest_leaves(min(column.children, key=lambda child: _WIDTHS[child.kind]))
        case ColumnKind.LIST | ColumnKind.MAP:
            return set().union(*map(_narrowest_leaves, column.children))
        case _:
            return set(column.leaves)


_WIDTHS = {ColumnKind.LEAF: 0, ColumnKind.STRUCT: 1, ColumnKind.LIST: 2, ColumnKind.MAP: 3}


@dataclass(frozen=True, slots=True)
class _Scalars:
    """Casts a scalar column from the type that the file stores."""

    field_type: ScalarType
    target: pa.DataType
    place: _Place

    def convert(self, array: pa.Array) -> pa.Array:
        return cast_stored(array, self.target, self.field_type, str(self.place))


@dataclass(frozen=True, slots=True)
class _UnlessFitting:
    """Returns columns that already have the target type as they are.

    Only for columns whose fields are in the same order on both sides: then equal Arrow types mean
    equal columns.
    """

    converter: Converter
    target: pa.DataType

    def convert(self, array: pa.Array) -> pa.Array:
        array = storage(array)
        return array if array.type == self.target else self.converter.convert(array)


def _plan_field(
    siblings: Sequence[FileColumn],
    field: NestedField,
    parent: _Place,
    constants: Mapping[int, Any],
) -> FieldSource:
    place = parent / field.name
    at = next((i for i, column in enumerate(siblings) if column.field_id == field.field_id), None)
    if at is not None and field.field_type != UNKNOWN:
        converter = _plan_type(siblings[at], field.field_type, place, constants)
        return FromColumn(at, converter, place if field.required else None)
    return Constant(field.field_type, _filling(field, default_value(field), constants, place))


def _filling(field: NestedField, default: Any, constants: Mapping[int, Any], place: _Place) -> Any:
    """The value of a field that the file lacks: `default` unless there is a constant."""
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
    """Whether a field, or one inside its struct, has a constant that is not null."""
    if isinstance(field.field_type, StructType):
        return any(_is_set(child, constants) for child in field.field_type.fields)
    return constants.get(field.field_id) is not None


def _plan_type(
    column: FileColumn, wanted: IcebergType, place: _Place, constants: Mapping[int, Any]
) -> Converter:
    target = to_arrow(wanted)
    converter: Converter
    match wanted:
        case StructType(fields=fields):
            sources = tuple(_plan_field(column.children, f, place, constants) for f in fields)
            converter = StructConverter(sources, target)
        case ListType():
            (element,) = column.children
            inside = place / "element"
            inner = _plan_type(element, wanted.element_type, inside, constants)
            converter = ListConverter(inner, target, inside if wanted.element_required else None)
        case MapType():
            key, value = column.children
            inside = place / "value"
            converter = MapConverter(
                _plan_type(key, wanted.key_type, place / "key", constants),
                _plan_type(value, wanted.value_type, inside, constants),
                target,
                inside if wanted.value_required else None,
                place / "key",
            )
        case _ if wanted == VARIANT:
            converter = StructConverter(_variant_parts(column, place), target)
        case _:
            return _Scalars(wanted, target, place)
    return _UnlessFitting(converter, target) if _in_same_order(column, wanted) else converter


def _variant_parts(column: FileColumn, place: _Place) -> tuple[FieldSource, ...]:
    metadata = _variant_part(column, METADATA, place)
    if is_shredded(column):
        return metadata, plan_shredded_value(column, place)
    return metadata, _variant_part(column, VALUE, place)


def _variant_part(column: FileColumn, name: str, place: _Place) -> FieldSource:
    index = next(at for at, part in enumerate(column.children) if part.name == name)
    return FromColumn(index, _Scalars(BINARY, pa.binary(), place / name), place / name)


def _in_same_order(column: FileColumn, wanted: IcebergType) -> bool:
    """Whether the file has the fields of a type in the same order, at every level."""
    match wanted:
        case StructType(fields=fields):
            return [child.field_id for child in column.children] == [
                field.field_id for field in fields
            ] and all(
                field.field_type != UNKNOWN and _in_same_order(child, field.field_type)
                for child, field in zip(column.children, fields, strict=True)
            )
        case ListType(element_type=element_type):
            return _in_same_order(column.children[0], element_type)
        case MapType(key_type=key_type, value_type=value_type):
            key, value = column.children
            return _in_same_order(key, key_type) and _in_same_order(value, value_type)
        case _ if wanted == VARIANT:
            return tuple(child.name for child in column.children) == (METADATA, VALUE)
        case _:
            return True
