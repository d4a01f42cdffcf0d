"""Matches incoming rows to the table's schema by name.

Matching is planned once, on the driver, so that errors in names and types are raised before any
file is written. Columns that already have the right type are not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.arrays import all_null, storage
from icebergds.formats.arrow.converters import (
    Constant,
    Converter,
    FieldSource,
    FromColumn,
    ListConverter,
    MapConverter,
    StructConverter,
)
from icebergds.formats.arrow.spatial import is_spatial_struct, spatial_obstacle
from icebergds.formats.arrow.types import schema_to_arrow, to_arrow
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    VARIANT,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    ScalarType,
    StructType,
    children,
)
from icebergds.suggestions import did_you_mean
from icebergds.write.rows.conversion import convert, fits, storage_type
from icebergds.write.rows.store_assignment import (
    assign,
    assign_exactly,
    can_assign,
    can_assign_exactly,
    needs_time_zone,
)


@dataclass(frozen=True, slots=True)
class Matching:
    """Converts incoming batches to batches of the table's schema.

    Attributes:
        incoming: the Arrow schema of the incoming batches.
        schema: the table's columns.
        case_sensitive: whether names are case-sensitive.
        table: the table, for messages.
        time_zone: of dates and local times; None for the zone of each incoming timestamp.
        keys: the ids of fields whose values must not be rounded.
    """

    incoming: pa.Schema
    schema: Schema
    case_sensitive: bool
    table: str
    time_zone: str | None
    keys: frozenset[int]
    _target: pa.Schema
    _fields: tuple[FieldSource, ...]

    def fitting(self, incoming: pa.Schema) -> Matching:
        """The matching for an Arrow schema: this one, or a new one if the schema differs.

        Raises:
            InvalidDataError: as for `plan_matching`.
        """
        if incoming.equals(self.incoming):
            return self
        return plan_matching(
            incoming,
            self.schema,
            case_sensitive=self.case_sensitive,
            table=self.table,
            time_zone=self.time_zone,
            keys=self.keys,
        )

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Converts rows to the exact Arrow schema `schema_to_arrow(schema)`.

        Args:
            batch: rows of the schema `incoming`.

        Raises:
            InvalidDataError: a required field is null, or a value does not fit.
        """
        # `columns` creates new objects at each call.
        given = batch.columns
        columns = [field.take(given, batch.num_rows, 0) for field in self._fields]
        return pa.RecordBatch.from_arrays(columns, schema=self._target)


def plan_matching(
    incoming: pa.Schema,
    schema: Schema,
    *,
    case_sensitive: bool = False,
    table: str,
    time_zone: str | None = None,
    keys: frozenset[int] = frozenset(),
) -> Matching:
    """Matches incoming columns with the table's, at every level of nesting.

    Names match exactly, or else ignoring case if that is unique. Missing fields get their write
    default, or null. Values of other types are converted (`write.rows.store_assignment`).

    Args:
        incoming: the columns of the rows to write.
        schema: the table's schema.
        case_sensitive: whether names are case-sensitive.
        table: the table's name or location, for messages.
        time_zone: of dates and local times; None for the zone of each incoming timestamp.
        keys: the ids of fields whose values are refused if they would be rounded.

    Raises:
        InvalidDataError: a column is unknown, given twice, required but missing, or of a type that
            cannot be assigned to the column.
    """
    place = _Place((), table, case_sensitive, time_zone, keys)
    return Matching(
        incoming,
        schema,
        case_sensitive,
        table,
        time_zone,
        keys,
        schema_to_arrow(schema),
        _plan_fields(list(incoming), schema.fields, place),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A column of the table, for messages, and how its values are matched (`Matching`)."""

    path: tuple[str, ...]
    table: str
    case_sensitive: bool
    time_zone: str | None
    keys: frozenset[int]
    keeps_values: bool = False

    def __truediv__(self, name: str) -> _Place:
        return replace(self, path=(*self.path, name))

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)!r} of table {self.table}"

    def null_in_required(self, count: int) -> InvalidDataError:
        return InvalidDataError(
            f"{self} is required, but {count} of the incoming values are null; fill or filter them"
        )


@dataclass(frozen=True, slots=True)
class _AsIs:
    """Passes a column on without conversion."""

    def convert(self, array: pa.Array) -> pa.Array:
        return array


@dataclass(frozen=True, slots=True)
class _Scalars:
    field_type: ScalarType
    target: pa.DataType
    place: _Place

    def convert(self, array: pa.Array) -> pa.Array:
        return convert(storage(array), self.field_type, self.target, str(self.place))


@dataclass(frozen=True, slots=True)
class _Spatial:
    """Takes the WKB of Spark's geometries and geographies, all of one SRID."""

    target: pa.DataType

    def convert(self, array: pa.Array) -> pa.Array:
        # Flattened, so that it is null where the struct is.
        return storage(array).flatten()[1].cast(self.target)


@dataclass(frozen=True, slots=True)
class _Assigned:
    field_type: ScalarType
    target: pa.DataType
    place: _Place

    def convert(self, array: pa.Array) -> pa.Array:
        array, where = storage(array), str(self.place)
        if self.place.keeps_values:
            return assign_exactly(array, self.field_type, self.target, where)
        return assign(array, self.field_type, self.target, self.place.time_zone, where)


@dataclass(frozen=True, slots=True)
class _Nulls:
    """Reads a column of Arrow's null type: all values are null."""

    field_type: IcebergType

    def convert(self, array: pa.Array) -> pa.Array:
        return all_null(self.field_type, len(array))


def _plan_fields(
    incoming: Sequence[pa.Field], fields: tuple[NestedField, ...], parent: _Place
) -> tuple[FieldSource, ...]:
    indexes: dict[int, int] = {}
    for at, column in enumerate(incoming):
        field = _find(column.name, fields, parent)
        if field.field_id in indexes:
            other = incoming[indexes[field.field_id]].name
            raise InvalidDataError(
                f"{parent / field.name} is given twice, as {other!r} and {column.name!r}; "
                "rename or drop one"
            )
        indexes[field.field_id] = at
    return tuple(
        _plan_field(incoming, indexes.get(field.field_id), field, _place_of(field, parent))
        for field in fields
    )


def _place_of(field: NestedField, parent: _Place) -> _Place:
    keeps_values = parent.keeps_values or field.field_id in parent.keys
    return replace(parent / field.name, keeps_values=keeps_values)


def _find(name: str, fields: tuple[NestedField, ...], parent: _Place) -> NestedField:
    """The table's field for an incoming name."""
    exact = [field for field in fields if field.name == name]
    if exact:
        return exact[0]
    folded = [field for field in fields if field.name.lower() == name.lower()]
    if len(folded) == 1 and not parent.case_sensitive:
        return folded[0]
    what = f"incoming column {'.'.join((*parent.path, name))!r}"
    if len(folded) > 1 and not parent.case_sensitive:
        raise InvalidDataError(
            f"{what} is ambiguous, matches {', '.join(repr(field.name) for field in folded)} of "
            f"table {parent.table}; use the exact case"
        )
    near = did_you_mean(name, (field.name for field in fields), shown=repr)
    hint = f" ({near})" if near else ""
    raise InvalidDataError(
        f"{what} is not a column of table {parent.table}{hint}; drop or rename it, or write with "
        "the option 'merge-schema', which adds columns to the table"
    )


def _plan_field(
    incoming: Sequence[pa.Field], index: int | None, field: NestedField, place: _Place
) -> FieldSource:
    if index is not None:
        converter = _plan_type(incoming[index].type, field.field_type, place)
        return FromColumn(index, converter, place if field.required else None)
    filling = _write_default(field)
    if field.required and filling is None:
        raise InvalidDataError(
            f"{place} is required and has no write default, but the incoming rows do not have it; "
            "add the column"
        )
    return Constant(field.field_type, filling)


def _plan_type(incoming: pa.DataType, wanted: IcebergType, place: _Place) -> Converter:
    stored = storage_type(incoming)
    target = to_arrow(wanted)
    if incoming.equals(target, check_metadata=True) and not _has_required(wanted):
        return _AsIs()
    if pa.types.is_null(stored):
        return _Nulls(wanted)
    match wanted:
        case StructType(fields=fields) if pa.types.is_struct(stored):
            return StructConverter(_plan_fields(_members(stored), fields, place), target)
        case ListType() if _is_list(stored):
            inside = place / "element"
            element = _plan_type(stored.value_type, wanted.element_type, inside)
            return ListConverter(element, target, inside if wanted.element_required else None)
        case MapType() if pa.types.is_map(stored):
            inside = place / "value"
            # Rounding could make two keys of a map equal.
            key = replace(place / "key", keeps_values=True)
            return MapConverter(
                _plan_type(stored.key_type, wanted.key_type, key),
                _plan_type(stored.item_type, wanted.value_type, inside),
                target,
                inside if wanted.value_required else None,
                key,
            )
        case StructType() | ListType() | MapType():
            pass
        case _ if wanted == VARIANT:
            if pa.types.is_struct(stored) and {f.name for f in _members(stored)} == _VARIANT_NAMES:
                return StructConverter(
                    _plan_fields(_members(stored), _VARIANT_PARTS, place), target
                )
        case GeometryType() | GeographyType() if is_spatial_struct(stored):
            obstacle = spatial_obstacle(stored, wanted)
            if obstacle is not None:
                raise InvalidDataError(f"{place} has values of type {wanted}, and {obstacle}")
            return _Spatial(target)
        case _ if fits(stored, wanted):
            return _Scalars(wanted, target, place)
        case _ if _is_assigned(incoming, stored, wanted, place):
            return _Assigned(wanted, target, place)
    raise InvalidDataError(
        f"{place} has type {wanted}, which cannot store every value of the incoming type "
        f"{incoming}; cast the incoming column to {wanted}"
    )


def _is_assigned(
    incoming: pa.DataType, stored: pa.DataType, wanted: ScalarType, place: _Place
) -> bool:
    if place.keeps_values:
        return can_assign_exactly(stored, wanted)
    if not can_assign(stored, wanted):
        return False
    if place.time_zone is None and needs_time_zone(stored, wanted):
        raise InvalidDataError(
            f"{place} has type {wanted}, and values of the incoming type {incoming} are local "
            "times, of a time zone that is not known here; set it with option('time-zone', ...), "
            f"or cast the incoming column to {wanted}"
        )
    return True


# Their ids are never written: a variant is one column.
_VARIANT_PARTS = (NestedField(0, "metadata", BINARY, True), NestedField(1, "value", BINARY, True))
_VARIANT_NAMES = {part.name for part in _VARIANT_PARTS}


def _members(struct: pa.StructType) -> list[pa.Field]:
    return [struct.field(at) for at in range(struct.num_fields)]


def _is_list(stored: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(stored)
        or pa.types.is_large_list(stored)
        or pa.types.is_fixed_size_list(stored)
    )


def _has_required(wanted: IcebergType) -> bool:
    """Whether a type has required nested fields, other than map keys."""
    if isinstance(wanted, MapType):
        inner: tuple[NestedField, ...] = (wanted.value_field, *children(wanted.key_type))
    else:
        inner = children(wanted)
    return wanted == VARIANT or any(
        field.required or _has_required(field.field_type) for field in inner
    )


def _write_default(field: NestedField) -> Any:
    """The value for rows without the field; a struct's default is completed with the defaults of
    its fields (spec: Default values).
    """
    default = field.write_default
    if default is None or not isinstance(field.field_type, StructType):
        return default
    given = dict(enumerate(default))
    return tuple(
        given[at] if given.get(at) is not None else _write_default(part)
        for at, part in enumerate(field.field_type.fields)
    )
