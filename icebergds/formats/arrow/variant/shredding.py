"""Shreds variants into typed columns (Parquet variant shredding), the inverse of `shredded`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.variant.byte_strings import (
    ByteStrings,
    Integers,
    Mask,
    of_lengths,
    substrings,
)
from icebergds.formats.arrow.variant.containers import object_heads
from icebergds.formats.arrow.variant.dictionaries import Dictionaries, read_dictionaries
from icebergds.formats.arrow.variant.typed_scalars import decode_scalars, scattered
from icebergds.formats.arrow.variant.values import Values

# Rows times columns that are worked on at once; some tens of bytes of memory each.
_MAX_CELLS = 1 << 21
_NULL = b"\x00"


@dataclass(frozen=True, slots=True)
class ScalarShape:
    """Scalars in a column; see `decode_scalars` for its types."""

    typed: pa.DataType


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """Arrays, whose elements have a shape."""

    element: Shape

    @property
    def typed(self) -> pa.DataType:
        """The type of the column."""
        return pa.list_(pa.field("element", group_type(self.element), nullable=False))


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """Objects, some of whose fields have shapes.

    Attributes:
        names: of these fields, at least one, each once, in the order of their bytes.
        fields: their shapes.
    """

    names: tuple[str, ...]
    fields: tuple[Shape, ...]

    @property
    def typed(self) -> pa.DataType:
        """The type of the column."""
        fields = zip(self.names, self.fields, strict=True)
        return pa.struct([pa.field(n, group_type(shape), nullable=False) for n, shape in fields])


Shape = ScalarShape | ArrayShape | ObjectShape
"""What a column `typed_value` holds."""


def group_type(shape: Shape) -> pa.StructType:
    """The group of a shredded value in objects and arrays."""
    return pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", shape.typed)])


def variant_type(shape: Shape) -> pa.StructType:
    """The group of a shredded variant."""
    return pa.struct([pa.field("metadata", pa.binary(), nullable=False), *group_type(shape)])


def num_leaves(shape: Shape) -> int:
    """How many leaf columns a group of a shape has."""
    match shape:
        case ObjectShape(fields=fields):
            return 1 + sum(map(num_leaves, fields))
        case ArrayShape(element=element):
            return 1 + num_leaves(element)
        case ScalarShape():
            return 2


def shredded(variants: pa.StructArray, shape: Shape, where: str) -> pa.StructArray:
    """A column of variants as a column of `variant_type`.

    Args:
        variants: structs of `metadata` and `value`, as `to_arrow` has them.
        where: the column, for errors.

    Raises:
        CorruptFileError: a value is not a variant.
    """
    step = max(1, _MAX_CELLS // num_leaves(shape))
    return pa.concat_arrays(
        [
            _shredded(variants.slice(first, step), shape, where)
            for first in range(0, max(len(variants), 1), step)
        ]
    )


def root_values(variants: pa.StructArray, where: str) -> tuple[Values, Dictionaries, Integers]:
    """The values of the rows that are not null, the dictionaries, and these rows.

    Raises:
        CorruptFileError: a value is not a variant.
    """
    rows = np.flatnonzero(np.asarray(variants.is_valid()))
    metadata, encoded = variants.field(0).cast(pa.binary()), variants.field(1).cast(pa.binary())
    if len(rows) < len(variants):
        metadata, encoded = metadata.take(pa.array(rows)), encoded.take(pa.array(rows))
    dictionaries = read_dictionaries(metadata, where)
    strings = ByteStrings.of(encoded)
    starts = strings.starts.astype(np.int64)
    values = Values.read(strings.data, starts, strings.lengths, dictionaries.of_row, where)
    return values, dictionaries, rows


def typed_columns(
    column: pa.StructArray, shape: Shape, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], pa.Array | None]]:
    """The shredded scalars of a column outside of arrays, by the path of their fields.

    Args:
        column: of `variant_type` or `group_type`, none of its parts null only by its parent.

    Returns:
        For each path the column of its values, or None if it has also values of other types; nulls
        of variants are left out.
    """
    match shape:
        case ScalarShape():
            others = pc.not_equal(column.field("value"), _NULL)
            is_mixed = pc.any(others, min_count=0).as_py()
            yield path, None if is_mixed else column.field("typed_value")
        case ObjectShape(names=names, fields=fields):
            typed = column.field("typed_value")
            for at, (name, inner) in enumerate(zip(names, fields, strict=True)):
                yield from typed_columns(typed.field(at), inner, (*path, name))
        case ArrayShape():
            pass


def _shredded(variants: pa.StructArray, shape: Shape, where: str) -> pa.StructArray:
    values, dictionaries, rows = root_values(variants, where)
    count = len(variants)
    group = _Shredder(dictionaries, where).group(values, shape, rows, count)
    metadata = variants.field(0).cast(pa.binary())
    mask = None
    if len(rows) < count:
        mask = variants.is_null()
        metadata = pc.if_else(mask, b"", metadata)
    fields = list(variant_type(shape))
    parts = [metadata, group.field(0), group.field(1)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)


@dataclass(frozen=True, slots=True)
class _Shredder:
    """Shreds values of some dictionaries."""

    dictionaries: Dictionaries
    where: str

    def group(self, values: Values, shape: Shape, slots: Integers, length: int) -> pa.StructArray:
        """A column of `group_type` with values in some slots, in order; others are missing."""
        match shape:
            case ScalarShape():
                array, held = decode_scalars(values, shape.typed)
                typed = scattered(array, slots[held], length)
                rest = self._rest(values, ~held)
            case ArrayShape():
                typed, rest = self._arrays(values, shape, slots, length)
            case ObjectShape():
                typed, rest = self._objects(values, shape, slots, length)
        value = scattered(rest, slots, length)
        return pa.StructArray.from_arrays([value, typed], fields=list(group_type(shape)))

    def _arrays(
        self, values: Values, shape: ArrayShape, slots: Integers, length: int
    ) -> tuple[pa.Array, pa.BinaryArray]:
        held = values.is_array
        inside, counts, _ = values.take(held).elements(self.where)
        group = self.group(inside, shape.element, np.arange(len(inside)), len(inside))
        lengths = np.zeros(length, np.int64)
        lengths[slots[held]] = counts
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        is_null = np.ones(length, np.bool_)
        is_null[slots[held]] = False
        mask = pa.array(is_null) if is_null.any() else None
        typed = pa.ListArray.from_arrays(pa.array(offsets), group, shape.typed, mask=mask)
        return typed, self._rest(values, ~held)

    def _objects(
        self, values: Values, shape: ObjectShape, slots: Integers, length: int
    ) -> tuple[pa.Array, pa.BinaryArray]:
        held = np.flatnonzero(values.is_object)
        inside, counts, ids = values.take(held).elements(self.where)
        owners = np.repeat(held, counts)
        ranks = self._ranks(inside.dictionaries, ids)
        column_of = np.full(len(self.dictionaries.names) + 1, -1)
        known = self.dictionaries.ranks_of([name.encode() for name in shape.names])
        column_of[known] = np.arange(len(known))
        # That of the names in no dictionary.
        column_of[-1] = -1
        columns = column_of[ranks]
        order = np.argsort(columns, kind="stable")
        cuts = np.searchsorted(columns[order], np.arange(len(known) + 1))
        groups = []
        for at, inner in enumerate(shape.fields):
            chosen = order[cuts[at] : cuts[at + 1]]
            owned = owners[chosen]
            if (np.diff(owned) == 0).any():
                raise CorruptFileError(
                    f"{self.where}: an object has two fields named {shape.names[at]!r}"
                )
            groups.append(self.group(inside.take(chosen), inner, slots[owned], length))
        is_null = np.ones(length, np.bool_)
        is_null[slots[held]] = False
        mask = pa.array(is_null) if is_null.any() else None
        typed = pa.StructArray.from_arrays(groups, fields=list(shape.typed), mask=mask)
        left = np.sort(order[: cuts[0]])
        return typed, self._rest_of_objects(values, inside.take(left), owners[left], ids[left])

    def _ranks(self, dictionaries: Integers, ids: Integers) -> Integers:
        if (ids >= self.dictionaries.sizes[dictionaries]).any():
            raise CorruptFileError(f"{self.where}: a field's name is not in the metadata")
        return self.dictionaries.ranks_of_ids(dictionaries, ids)

    @staticmethod
    def _rest(values: Values, left: Mask) -> pa.BinaryArray:
        """The values that are left, as they are; null for others."""
        found = values.take(left)
        texts = substrings(found.data, found.starts, found.sizes)
        return scattered(texts, np.flatnonzero(left), len(values))

    def _rest_of_objects(
        self, values: Values, fields: Values, owners: Integers, ids: Integers
    ) -> pa.BinaryArray:
        """Values that are not objects, as they are, and objects of the fields that are left."""
        count = len(values)
        if not len(fields):
            return self._rest(values, ~values.is_object)
        counts = np.bincount(owners, minlength=count)
        offsets = np.cumsum(fields.sizes) - fields.sizes
        sizes = np.bincount(owners, fields.sizes, minlength=count).astype(np.int64)
        firsts = np.repeat((np.cumsum(sizes) - sizes)[counts > 0], counts[counts > 0])
        heads = object_heads(counts > 0, counts, ids, offsets - firsts, sizes)
        texts = substrings(fields.data, fields.starts, fields.sizes)
        contents = of_lengths(sizes, ByteStrings.of(texts).data)
        others = self._rest(values, ~values.is_object)
        partial = pc.binary_join_element_wise(heads, contents, b"")
        return pc.if_else(pa.array(counts > 0), partial, others)
