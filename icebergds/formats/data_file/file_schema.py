"""Describes the columns of a data file as a tree with field ids, for any file format.

Ids come from the file or, if it has none, from a name mapping, from names or from positions
(spec: Column Projection). A column without an id is in the tree but not in the file's schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count

import pyarrow as pa

from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.formats.arrow.types import field_id_of
from icebergds.spec.name_mapping import MappedField, NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    ScalarType,
    StructType,
    children,
)

ENTRIES = "map entries whose key is optional"
"""Name of the elements of lists that stand for maps, where Arrow has no such maps."""


class ColumnKind(StrEnum):
    """Whether a column is a leaf or nested, and how."""

    LEAF = "leaf"
    STRUCT = "struct"
    LIST = "list"
    MAP = "map"


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column as a file stores it.

    `children` are a struct's fields, a list's element, or a map's key and value. `leaves` are the
    ordinals of the leaf columns at or below it, counted over the whole file; a struct without
    fields counts as one. `arrow_type` is the type the file declares; arrays read from it may have
    another physical type for it, such as a dictionary.
    """

    name: str
    kind: ColumnKind
    arrow_type: pa.DataType
    field_id: int | None
    required: bool
    leaves: range
    children: tuple[FileColumn, ...] = ()

    @property
    def has_optional_keys(self) -> bool:
        """Whether it is a map whose keys the file does not require."""
        return self.kind is ColumnKind.MAP and not pa.types.is_map(self.arrow_type)

    @property
    def is_variant(self) -> bool:
        """Whether it is a struct of a variant's parts, which have no ids."""
        names = {child.name for child in self.children if child.field_id is None}
        return (
            self.kind is ColumnKind.STRUCT
            and len(names) == len(self.children)
            and {"metadata"} < names <= {"metadata", "value", "typed_value"}
        )


def columns_of(
    arrow_schema: Iterable[pa.Field], id_of: Callable[[pa.Field], int | None] = field_id_of
) -> tuple[FileColumn, ...]:
    """The column tree of an Arrow schema; `id_of` returns the id of a field at any level."""
    columns: list[FileColumn] = []
    for field in arrow_schema:
        first_leaf = columns[-1].leaves.stop if columns else 0
        columns.append(_column_of(field, first_leaf, id_of))
    return tuple(columns)


def has_ids(columns: Iterable[FileColumn]) -> bool:
    """Whether any column at any level has an id."""
    return any(column.field_id is not None for column in walk_columns(columns))


def with_ids(
    columns: Sequence[FileColumn], schema: Schema, name_mapping: NameMapping | None
) -> tuple[FileColumn, ...]:
    """The columns as they are if any has an id, else with ids assigned by name.

    Names are looked up in the name mapping, or in the schema if there is none.
    """
    if has_ids(columns):
        return tuple(columns)
    fields = _mapping_of(schema.fields) if name_mapping is None else name_mapping.fields
    return _assign_ids(columns, [column.name for column in columns], fields)


def with_ids_by_position(columns: Sequence[FileColumn], schema: Schema) -> tuple[FileColumn, ...]:
    """Assigns ids by position: 1, 2, ... at the top level, those of the schema to nested columns.

    For files written before files had ids, when columns could only be appended.
    """
    by_id = {field.field_id: field for field in _mapping_of(schema.fields)}
    return tuple(
        replace(
            column,
            field_id=ordinal,
            children=_assign_ids(
                column.children,
                _standard_names(column),
                by_id[ordinal].fields if ordinal in by_id else (),
                by_position=True,
            ),
        )
        for ordinal, column in enumerate(columns, start=1)
    )


def to_schema(columns: Iterable[FileColumn]) -> Schema:
    """The Iceberg schema of the columns that have ids."""
    return Schema(_fields(columns))


def schema_from_arrow(arrow_schema: pa.Schema) -> Schema:
    """The Iceberg schema for an Arrow schema; ids are counted from 1.

    Raises:
        InvalidDataError: a column has a type that Iceberg does not have.
    """
    ids = count(1)
    columns = columns_of(arrow_schema, lambda _: next(ids))
    for column in walk_columns(columns):
        if column.kind is ColumnKind.LEAF and _type_of(column) is None:
            raise InvalidDataError(
                f"column {column.name!r} has the Arrow type {column.arrow_type}, which Iceberg "
                "does not have; cast it first"
            )
    return to_schema(columns)


def find_child(columns: Iterable[FileColumn], field_id: int, source: str) -> FileColumn | None:
    """The column with a field id among siblings; None if there is none.

    Raises:
        CorruptFileError: several columns have the id.
    """
    found = [column for column in columns if column.field_id == field_id]
    if len(found) > 1:
        names = ", ".join(repr(column.name) for column in found)
        raise CorruptFileError(f"{source}: columns {names} all have field id {field_id}")
    return found[0] if found else None


def restrict(columns: Iterable[FileColumn], leaves: AbstractSet[int]) -> tuple[FileColumn, ...]:
    """The columns that contain any of the leaves, at every level."""
    return tuple(
        replace(column, children=restrict(column.children, leaves))
        for column in columns
        if any(leaf in leaves for leaf in column.leaves)
    )


def walk_columns(columns: Iterable[FileColumn]) -> Iterator[FileColumn]:
    """Every column at every level, parents before their children."""
    for column in columns:
        yield column
        yield from walk_columns(column.children)


def storage_type(arrow_type: pa.DataType) -> pa.DataType:
    """The type under extension types."""
    while isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    return arrow_type


def _column_of(
    field: pa.Field, first_leaf: int, id_of: Callable[[pa.Field], int | None]
) -> FileColumn:
    stored = storage_type(field.type)
    kind, fields = _shape(stored)
    nested: list[FileColumn] = []
    next_leaf = first_leaf
    for child in fields:
        nested.append(_column_of(child, next_leaf, id_of))
        next_leaf = nested[-1].leaves.stop
    if not nested:
        next_leaf += 1
    return FileColumn(
        field.name,
        kind,
        field.type if kind is ColumnKind.LEAF else stored,
        id_of(field),
        not field.nullable,
        range(first_leaf, next_leaf),
        tuple(nested),
    )


def _shape(stored: pa.DataType) -> tuple[ColumnKind, list[pa.Field]]:
    if pa.types.is_struct(stored):
        return ColumnKind.STRUCT, list(stored)
    if pa.types.is_map(stored):
        return ColumnKind.MAP, [stored.key_field, stored.item_field]
    if pa.types.is_list(stored) and stored.value_field.name == ENTRIES:
        key, value = stored.value_type
        # Readers refuse null keys.
        return ColumnKind.MAP, [key.with_nullable(False), value]
    if (
        pa.types.is_list(stored)
        or pa.types.is_large_list(stored)
        or pa.types.is_fixed_size_list(stored)
        or pa.types.is_list_view(stored)
        or pa.types.is_large_list_view(stored)
    ):
        return ColumnKind.LIST, [stored.value_field]
    return ColumnKind.LEAF, []


_UNMAPPED = MappedField(())


def _standard_names(column: FileColumn) -> tuple[str, ...]:
    """The children's names in name mappings and schemas, whatever the file calls them."""
    match column.kind:
        case ColumnKind.LIST:
            return ("element",)
        case ColumnKind.MAP:
            return ("key", "value")
        case _:
            return tuple(child.name for child in column.children)


def _assign_ids(
    columns: Sequence[FileColumn],
    names: Sequence[str],
    mapped: Sequence[MappedField],
    *,
    by_position: bool = False,
) -> tuple[FileColumn, ...]:
    keys: Sequence[int | str] = range(len(columns)) if by_position else names
    by_key: dict[int | str, MappedField] = (
        dict(enumerate(mapped))
        if by_position
        else {n: field for field in mapped for n in field.names}
    )
    out = []
    for column, key in zip(columns, keys, strict=True):
        field = by_key.get(key, _UNMAPPED)
        nested = _assign_ids(
            column.children, _standard_names(column), field.fields, by_position=by_position
        )
        out.append(replace(column, field_id=field.field_id, children=nested))
    return tuple(out)


def _mapping_of(fields: Iterable[NestedField]) -> tuple[MappedField, ...]:
    return tuple(
        MappedField(
            names=(field.name,),
            field_id=field.field_id,
            fields=_mapping_of(children(field.field_type)),
        )
        for field in fields
    )


def _fields(columns: Iterable[FileColumn]) -> tuple[NestedField, ...]:
    typed = ((column, _type_of(column)) for column in columns)
    return tuple(
        NestedField(column.field_id, column.name, field_type, column.required)
        for column, field_type in typed
        if column.field_id is not None and field_type is not None
    )


def _type_of(column: FileColumn) -> IcebergType | None:
    """The column's Iceberg type; None if it has none, or if a list's or map's part has no id."""
    match column.kind:
        case ColumnKind.STRUCT:
            return VARIANT if column.is_variant else StructType(_fields(column.children))
        case ColumnKind.LIST:
            (element,) = column.children
            element_type = _type_of(element)
            if element.field_id is None or element_type is None:
                return None
            return ListType(element.field_id, element_type, element.required)
        case ColumnKind.MAP:
            key, value = column.children
            key_type, value_type = _type_of(key), _type_of(value)
            if key.field_id is None or value.field_id is None or not key_type or not value_type:
                return None
            return MapType(key.field_id, key_type, value.field_id, value_type, value.required)
        case ColumnKind.LEAF:
            return _scalar_of(column.arrow_type)


def _scalar_of(arrow_type: pa.DataType) -> ScalarType | None:
    if isinstance(arrow_type, pa.UuidType):
        return UUID
    stored = storage_type(arrow_type)
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_timestamp(stored):
        if stored.unit == "ns":
            return TIMESTAMP_NS if stored.tz is None else TIMESTAMPTZ_NS
        return TIMESTAMP if stored.tz is None else TIMESTAMPTZ
    if pa.types.is_decimal(stored):
        return DecimalType(stored.precision, stored.scale)
    if pa.types.is_fixed_size_binary(stored):
        return FixedType(stored.byte_width)
    if pa.types.is_integer(stored):
        fits_int = stored.bit_width < 32 or stored == pa.int32()
        return INT if fits_int else LONG
    return next((scalar for is_one, scalar in _SCALARS if is_one(stored)), None)


_SCALARS: tuple[tuple[Callable[[pa.DataType], bool], ScalarType], ...] = (
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_float16, FLOAT),
    (pa.types.is_float32, FLOAT),
    (pa.types.is_float64, DOUBLE),
    (pa.types.is_date, DATE),
    (pa.types.is_time, TIME),
    (pa.types.is_string, STRING),
    (pa.types.is_large_string, STRING),
    (pa.types.is_string_view, STRING),
    (pa.types.is_binary, BINARY),
    (pa.types.is_large_binary, BINARY),
    (pa.types.is_binary_view, BINARY),
    (pa.types.is_null, UNKNOWN),
)
