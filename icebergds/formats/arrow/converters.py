"""Converts nested columns: fields are chosen, filled in and converted at every level.

Converters are planned once, from names or from field ids, and applied to batches. Values that keep
their type are not copied. Nulls in required fields are errors if nothing around them is null;
values outside an array's slice and in null lists do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from icebergds.errors import InvalidDataError
from icebergds.formats.arrow.arrays import (
    all_null,
    as_list_of_entries,
    compacted,
    storage,
    with_child,
    with_entries,
    with_fields,
    without_nulls,
)
from icebergds.formats.arrow.types import repeat
from icebergds.spec.types import IcebergType


class Place(Protocol):
    """A required column, for messages."""

    def null_in_required(self, count: int) -> InvalidDataError:
        """The error that the column is required, but has nulls."""
        ...


class Converter(Protocol):
    """Converts a column to one type."""

    def convert(self, array: pa.Array) -> pa.Array: ...


class FieldSource(Protocol):
    """Where the values of a field come from."""

    def take(self, arrays: Sequence[pa.Array], num_rows: int, parent_nulls: int) -> pa.Array:
        """The field's values.

        Args:
            arrays: the columns of the parent, null where the parent struct is null.
            num_rows: their length.
            parent_nulls: how many of the parent structs are null; 0 at the top.

        Raises:
            InvalidDataError: the field is required and null where its parent is not.
        """
        ...


@dataclass(frozen=True, slots=True)
class FromColumn:
    """Takes a field's values from the column at an index.

    `required` names a field that must not be null; None if it may.
    """

    index: int
    converter: Converter
    required: Place | None = None

    def take(self, arrays: Sequence[pa.Array], num_rows: int, parent_nulls: int) -> pa.Array:
        array = self.converter.convert(arrays[self.index])
        if self.required is None or not array.null_count:
            return array
        if array.null_count > parent_nulls:
            raise self.required.null_in_required(array.null_count - parent_nulls)
        return without_nulls(array)


class Constant:
    """One value for all rows; None is null."""

    def __init__(self, field_type: IcebergType, value: Any) -> None:
        self._field_type = field_type
        self._value = value
        self._array = self._repeated(0)

    def take(self, arrays: Sequence[pa.Array], num_rows: int, parent_nulls: int) -> pa.Array:
        array = self._array
        if len(array) < num_rows:
            array = self._array = self._repeated(num_rows)
        return array.slice(0, num_rows)

    def _repeated(self, num_rows: int) -> pa.Array:
        if self._value is None:
            return all_null(self._field_type, num_rows)
        return repeat(self._field_type, self._value, num_rows)


@dataclass(frozen=True, slots=True)
class StructConverter:
    """Converts structs to an Arrow type, with a source for each of its fields."""

    fields: tuple[FieldSource, ...]
    target: pa.DataType

    def convert(self, array: pa.Array) -> pa.Array:
        array = storage(array)
        given = array.flatten()
        fields = [field.take(given, len(array), array.null_count) for field in self.fields]
        return with_fields(array, self.target, fields)


@dataclass(frozen=True, slots=True)
class ListConverter:
    """Converts lists of any layout to an Arrow type; `required` as in `FromColumn`."""

    element: Converter
    target: pa.DataType
    required: Place | None = None

    def convert(self, array: pa.Array) -> pa.Array:
        array = compacted(storage(array))
        values = self.element.convert(array.values)
        if self.required is not None and values.null_count:
            raise self.required.null_in_required(values.null_count)
        return with_child(array, self.target, values)


@dataclass(frozen=True, slots=True)
class MapConverter:
    """Converts maps, or lists of entries, to an Arrow type.

    `required` names values as in `FromColumn`, and `keys` likewise keys.
    """

    key: Converter
    value: Converter
    target: pa.DataType
    required: Place | None = None
    keys: Place | None = None

    def convert(self, array: pa.Array) -> pa.Array:
        array = compacted(as_list_of_entries(storage(array)))
        keys, values = array.values.flatten()
        if self.keys is not None and keys.null_count:
            raise self.keys.null_in_required(keys.null_count)
        values = self.value.convert(values)
        if self.required is not None and values.null_count:
            raise self.required.null_in_required(values.null_count)
        return with_entries(array, self.target, self.key.convert(keys), values)
