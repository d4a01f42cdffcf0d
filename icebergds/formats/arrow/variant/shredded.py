"""Rebuilds values from the columns they are shredded into (Parquet variant shredding).

A value is a row of a group: its column `value` holds variants as they are, its column `typed_value`
those of one type. Missing values, which only fields of objects may be, are empty byte strings here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.formats.arrow.arrays import compacted, storage
from icebergds.formats.arrow.variant.byte_strings import (
    ByteStrings,
    Integers,
    concatenated,
    without_heads,
)
from icebergds.formats.arrow.variant.containers import array_heads, object_fields, object_heads
from icebergds.formats.arrow.variant.dictionaries import Dictionaries, read_dictionaries
from icebergds.formats.arrow.variant.scalars import Encoder

_NULL = b"\x00"
_EMPTY = b""
# Rows times columns that are worked on at once; some tens of bytes of memory each.
_MAX_CELLS = 1 << 21


class TypedValues(Protocol):
    """How values are stored in a column `typed_value`."""

    def encode(self, typed: pa.Array, rest: pa.BinaryArray, rows: Rows) -> pa.BinaryArray:
        """Encodes values.

        Args:
            typed: the column.
            rest: the values that are null in `typed`, or what is not shredded of an object.
            rows: the dictionaries of the values.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that values belong to: the ordinals of their dictionaries."""

    dictionaries: Dictionaries
    ordinals: Integers


@dataclass(frozen=True, slots=True)
class Group:
    """The columns of one value.

    Attributes:
        value, typed_value: indexes of the columns; None if there is none.
        shape: how `typed_value` holds values; None if there is none.
        where: the group, for errors.
    """

    value: int | None
    typed_value: int | None
    shape: TypedValues | None
    where: str

    def encode(self, columns: Sequence[pa.Array], rows: Rows, *, required: bool) -> pa.BinaryArray:
        """The values; missing ones are null if they are required, else empty.

        Args:
            columns: those of the group, null where the group or anything around it is.
            rows: the dictionaries of the values.
            required: whether values must not be missing.
        """
        if self.value is None:
            values = pa.nulls(len(rows.ordinals), pa.binary())
        else:
            values = storage(columns[self.value]).cast(pa.binary())
            if pc.any(pc.equal(values, _EMPTY)).as_py():
                raise CorruptFileError(f"{self.where}: a variant is empty")
        if self.shape is None or self.typed_value is None:
            return values.fill_null(_NULL if required else _EMPTY)
        typed = storage(columns[self.typed_value])
        if required:
            is_missing = pc.and_(values.is_null(), typed.is_null())
            values = pc.if_else(is_missing, _NULL, values)
        return self.shape.encode(typed, values, rows)


@dataclass(frozen=True, slots=True)
class Scalars:
    """Values of a scalar type."""

    encoder: Encoder
    where: str

    def encode(self, typed: pa.Array, rest: pa.BinaryArray, rows: Rows) -> pa.BinaryArray:
        _check_apart(typed, rest, self.where)
        encoded = self.encoder(typed, self.where)
        return pc.if_else(typed.is_valid(), encoded, rest.fill_null(_EMPTY))


@dataclass(frozen=True, slots=True)
class Arrays:
    """Arrays of values."""

    element: Group
    where: str

    def encode(self, typed: pa.Array, rest: pa.BinaryArray, rows: Rows) -> pa.BinaryArray:
        _check_apart(typed, rest, self.where)
        typed = compacted(typed)
        if typed.values.null_count:
            raise _null_groups(self.element.where)
        bounds = np.asarray(typed.offsets)
        counts = np.diff(bounds)
        rows_of_elements = Rows(rows.dictionaries, np.repeat(rows.ordinals, counts))
        elements = ByteStrings.of(
            self.element.encode(storage(typed.values).flatten(), rows_of_elements, required=True)
        )
        inside = ByteStrings(elements.offsets[bounds], elements.data)
        offsets = elements.starts - np.repeat(inside.starts, counts)
        heads = array_heads(np.asarray(typed.is_valid()), counts, offsets, inside.lengths)
        return _joined([heads, inside.array(), rest.fill_null(_EMPTY)])


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects, some or all of whose fields are shredded.

    Attributes:
        names: the names of the shredded fields, in the order of their bytes.
        indexes: the index of each field's column.
        fields: the groups of the fields.
        where: the column, for errors.
    """

    names: tuple[bytes, ...]
    indexes: tuple[int, ...]
    fields: tuple[Group, ...]
    where: str

    def encode(self, typed: pa.Array, rest: pa.BinaryArray, rows: Rows) -> pa.BinaryArray:
        groups = typed.flatten()
        columns = []
        for field, index in zip(self.fields, self.indexes, strict=True):
            if groups[index].null_count > typed.null_count:
                raise _null_groups(field.where)
            inside = storage(groups[index]).flatten()
            columns.append(field.encode(inside, rows, required=False))
        shredded = self._shredded_fields(columns, rows)
        rest = rest.fill_null(_EMPTY)
        is_object = np.asarray(typed.is_valid())
        is_partial = is_object & (np.asarray(pc.binary_length(rest)) > 0)
        if is_partial.any():
            fields, heads = self._with_fields_of(rest, np.flatnonzero(is_partial), shredded, rows)
            rest = without_heads(rest, heads)
        else:
            fields = shredded
        sizes = shredded.sizes + np.where(is_object, np.asarray(pc.binary_length(rest)), 0)
        counts = np.bincount(fields.rows, minlength=len(typed))
        heads = object_heads(is_object, counts, fields.ids, fields.offsets, sizes)
        return _joined([heads, *columns, rest])

    def _shredded_fields(self, columns: Sequence[pa.BinaryArray], rows: Rows) -> _Fields:
        lengths = np.stack([np.asarray(pc.binary_length(column)) for column in columns], axis=1)
        present = lengths > 0
        ranks = rows.dictionaries.ranks_of(self.names)
        ids = rows.dictionaries.ids_of(ranks)[rows.ordinals]
        unnamed = present & (ids < 0)
        if unnamed.any():
            name = self.names[int(np.flatnonzero(unnamed.any(axis=0))[0])].decode()
            raise CorruptFileError(
                f"{self.where}: the metadata of {np.count_nonzero(unnamed)} variants lacks the "
                f"name of their shredded field {name!r}; the file does not follow the specification"
            )
        offsets = np.cumsum(lengths, axis=1, dtype=np.int64) - lengths
        places, at = np.nonzero(present)
        return _Fields(places, ranks[at], ids[present], offsets[present], lengths.sum(axis=1))

    def _with_fields_of(
        self, rest: pa.BinaryArray, partial: Integers, shredded: _Fields, rows: Rows
    ) -> tuple[_Fields, Integers]:
        """All fields, and the bytes of `rest` to drop, if some objects have others in `rest`."""
        others = object_fields(rest.take(pa.array(partial)), self.where)
        places = np.repeat(partial, others.counts)
        dictionaries = rows.ordinals[places]
        if (others.ids >= rows.dictionaries.sizes[dictionaries]).any():
            raise CorruptFileError(f"{self.where}: a field's name is not in the metadata")
        ranks = rows.dictionaries.ranks_of_ids(dictionaries, others.ids)
        if np.isin(ranks, rows.dictionaries.ranks_of(self.names)).any():
            raise self._repeated("a field of an object is both shredded and not")
        offsets = others.offsets + shredded.sizes[places]
        merged = _Fields(
            np.concatenate([shredded.rows, places]),
            np.concatenate([shredded.ranks, ranks]),
            np.concatenate([shredded.ids, others.ids]),
            np.concatenate([shredded.offsets, offsets]),
            shredded.sizes,
        ).sorted()
        if ((np.diff(merged.rows) == 0) & (np.diff(merged.ranks) == 0)).any():
            raise self._repeated("an object has two fields of one name")
        heads = np.zeros(len(rest), np.int64)
        heads[partial] = others.heads
        return merged, heads

    def _repeated(self, what: str) -> CorruptFileError:
        return CorruptFileError(f"{self.where}: {what}; the file does not follow the specification")


@dataclass(frozen=True, slots=True)
class ShreddedValue:
    """Takes the values of a shredded variant column from the columns of its group.

    Attributes:
        metadata: the index of the column of metadata.
        group: the columns of the values.
        num_columns: how many leaf columns the values are shredded into.
    """

    metadata: int
    group: Group
    num_columns: int

    def take(self, arrays: Sequence[pa.Array], num_rows: int, parent_nulls: int) -> pa.Array:
        """The values, arbitrary where the parent is null; see `FieldSource.take`.

        Raises:
            CorruptFileError: values are damaged, or shredded as the specification forbids.
            UnsupportedFeatureError: the values are too large for one batch.
        """
        step = max(1, _MAX_CELLS // self.num_columns)
        try:
            return concatenated(
                [
                    self._take([array.slice(first, step) for array in arrays])
                    for first in range(0, max(num_rows, 1), step)
                ]
            )
        except pa.ArrowCapacityError as error:
            raise UnsupportedFeatureError(
                f"{self.group.where}: {num_rows} values take more than 2 GiB; read fewer rows at "
                "once (option batch-size)"
            ) from error

    def _take(self, arrays: Sequence[pa.Array]) -> pa.BinaryArray:
        metadata = storage(arrays[self.metadata]).cast(pa.binary())
        dictionaries = read_dictionaries(metadata, self.group.where)
        return self.group.encode(arrays, Rows(dictionaries, dictionaries.of_row), required=True)


@dataclass(frozen=True, slots=True)
class _Fields:
    """Fields of objects, in the order of the objects and names.

    Attributes:
        rows: the object of each field.
        ranks: of the fields' names.
        ids: of the fields' names.
        offsets: where the fields' values begin, behind the head.
        sizes: the bytes of the values of each object.
    """

    rows: Integers
    ranks: Integers
    ids: Integers
    offsets: Integers
    sizes: Integers

    def sorted(self) -> _Fields:
        order = np.lexsort((self.ranks, self.rows))
        return _Fields(
            self.rows[order], self.ranks[order], self.ids[order], self.offsets[order], self.sizes
        )


def _check_apart(typed: pa.Array, rest: pa.BinaryArray, where: str) -> None:
    both = pc.sum(pc.and_(typed.is_valid(), rest.is_valid())).as_py()
    if both:
        raise CorruptFileError(
            f"{where}: {both} of {len(typed)} values are both shredded and not; the file does not "
            "follow the specification"
        )


def _null_groups(where: str) -> CorruptFileError:
    return CorruptFileError(
        f"{where}: the group of a shredded value is null; the file does not follow the "
        "specification"
    )


def _joined(parts: Sequence[pa.BinaryArray]) -> pa.BinaryArray:
    """The parts of each value, one after the other."""
    return pc.binary_join_element_wise(*parts, b"")
