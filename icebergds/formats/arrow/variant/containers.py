"""Encodes and decodes the heads of objects and arrays (Parquet variant encoding: Value Data).

The head of an object or array is all that stands before the values inside: number of elements, ids
of the fields, offsets of the values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.variant.byte_strings import (
    Bytes,
    ByteStrings,
    Integers,
    Mask,
    little_endian,
    of_lengths,
    ordinals,
    packed,
    width_of,
)

_BASIC_TYPE = 0b11
OBJECT, ARRAY = 2, 3
# A larger number of elements takes four bytes instead of one.
_MAX_SMALL = 255


@dataclass(frozen=True, slots=True)
class ObjectFields:
    """The fields of objects.

    Attributes:
        counts: how many fields each object has; those of the first object come first.
        ids: of the names in the object's dictionary.
        offsets: where the values begin, behind the head.
        heads: the size of the head of each object.
    """

    counts: Integers
    ids: Integers
    offsets: Integers
    heads: Integers


def array_heads(is_array: Mask, counts: Integers, offsets: Integers, sizes: Integers) -> pa.Array:
    """The heads of the arrays among some values; of others, empty strings.

    Args:
        is_array: which of the values are arrays.
        counts: the number of elements of each value.
        offsets: where the elements begin behind the head.
        sizes: the bytes of all elements of each value.
    """
    return _heads(is_array, counts, offsets, sizes, None)


def object_heads(
    is_object: Mask, counts: Integers, ids: Integers, offsets: Integers, sizes: Integers
) -> pa.Array:
    """The heads of the objects among some values, as `array_heads`.

    `ids` are those of the fields' names; fields are in the order of their names.
    """
    return _heads(is_object, counts, offsets, sizes, ids)


def object_fields(values: pa.BinaryArray, where: str) -> ObjectFields:
    """The fields of encoded objects, none of them null.

    Raises:
        CorruptFileError: a value is not an object, or damaged.
    """
    strings = ByteStrings.of(values)
    starts, lengths, data = strings.starts.astype(np.int64), strings.lengths, strings.data
    others = int(np.count_nonzero(data[starts] & _BASIC_TYPE != OBJECT))
    if others:
        raise CorruptFileError(
            f"{where}: {others} of {len(values)} partially shredded objects are not objects; the "
            "file does not follow the specification"
        )
    heads = read_heads(data, starts, lengths, where)
    offsets = heads.offsets(data)
    _check(bool((offsets < np.repeat(lengths - heads.sizes, heads.counts)).all()), where)
    return ObjectFields(heads.counts, heads.ids(data), offsets, heads.sizes)


@dataclass(frozen=True, slots=True)
class Heads:
    """Where the numbers stand in the heads of objects and arrays.

    Attributes:
        starts: of the heads.
        counts: how many elements each has.
        id_widths, offset_widths: the bytes of an id, 0 in arrays, and of an offset.
        sizes: the bytes of each head.
    """

    starts: Integers
    counts: Integers
    id_widths: Integers
    offset_widths: Integers
    sizes: Integers

    def ids(self, data: Bytes) -> Integers:
        """The ids of the fields of all objects."""
        before = self.sizes - (self.counts + 1) * self.offset_widths - self.counts * self.id_widths
        return _numbers(data, self.starts + before, self.id_widths, self.counts)

    def offsets(self, data: Bytes) -> Integers:
        """Where the elements begin behind the heads."""
        before = self.sizes - (self.counts + 1) * self.offset_widths
        return _numbers(data, self.starts + before, self.offset_widths, self.counts)

    def content_sizes(self, data: Bytes) -> Integers:
        """How many bytes the elements of each take: the last offset."""
        return little_endian(
            data, self.starts + self.sizes - self.offset_widths, self.offset_widths
        )


def read_heads(data: Bytes, starts: Integers, limits: Integers, where: str) -> Heads:
    """The heads of objects and arrays.

    Args:
        data: the bytes they are in.
        starts: where the values begin.
        limits: how many bytes a value may have.

    Raises:
        CorruptFileError: a head is longer.
    """
    headers = data[starts].astype(np.int64)
    is_object = headers & _BASIC_TYPE == OBJECT
    offset_widths = 1 + ((headers >> 2) & 0b11)
    id_widths = np.where(is_object, 1 + ((headers >> 4) & 0b11), 0)
    count_widths = np.where((headers >> np.where(is_object, 6, 4)) & 1, 4, 1)
    _check(bool((1 + count_widths <= limits).all()), where)
    counts = little_endian(data, starts + 1, count_widths)
    sizes = 1 + count_widths + counts * id_widths + (counts + 1) * offset_widths
    _check(bool((sizes <= limits).all()), where)
    return Heads(starts, counts, id_widths, offset_widths, sizes)


def _numbers(data: Bytes, starts: Integers, widths: Integers, counts: Integers) -> Integers:
    """The numbers of each value: `counts` of `widths` bytes from `starts` on."""
    widths_of_numbers = np.repeat(widths, counts)
    places = np.repeat(starts, counts) + ordinals(counts) * widths_of_numbers
    return little_endian(data, places, widths_of_numbers)


def _heads(
    present: Mask, counts: Integers, offsets: Integers, sizes: Integers, ids: Integers | None
) -> pa.Array:
    is_large = counts > _MAX_SMALL
    offset_widths = width_of(sizes)
    if ids is None:
        per_element = 1
        id_widths: Integers = np.zeros(len(counts), np.int64)
        headers = ARRAY | ((offset_widths - 1) << 2) | (is_large.astype(np.int64) << 4)
    else:
        per_element = 2
        id_widths = width_of(_greatest(ids, counts))
        headers = (
            OBJECT
            | ((offset_widths - 1) << 2)
            | ((id_widths - 1) << 4)
            | (is_large.astype(np.int64) << 6)
        )

    # All numbers of all heads: header, number of elements, ids, offsets, size of all values.
    lengths = np.where(present, 3 + per_element * counts, 0).astype(np.int64)
    ends = np.cumsum(lengths)
    firsts = ends - lengths
    numbers = np.zeros(ends[-1] if len(ends) else 0, np.uint32)
    widths = np.zeros(len(numbers), np.uint8)
    numbers[firsts[present]] = headers[present]
    widths[firsts[present]] = 1
    numbers[firsts[present] + 1] = counts[present]
    widths[firsts[present] + 1] = np.where(is_large, 4, 1)[present]
    places = np.repeat(firsts + 2, counts) + ordinals(counts)
    if ids is not None:
        numbers[places] = ids
        widths[places] = np.repeat(id_widths, counts)
        places += np.repeat(counts, counts)
    numbers[places] = offsets
    widths[places] = np.repeat(offset_widths, counts)
    numbers[ends[present] - 1] = sizes[present]
    widths[ends[present] - 1] = offset_widths[present]

    octets = 1 + np.where(is_large, 4, 1) + counts * id_widths + (counts + 1) * offset_widths
    return of_lengths(np.where(present, octets, 0), packed(numbers, widths))


def _greatest(numbers: Integers, counts: Integers) -> Integers:
    """The greatest of each group of numbers, 0 for empty groups."""
    greatest = np.zeros(len(counts), np.int64)
    filled = counts > 0
    if filled.any():
        firsts = np.cumsum(counts) - counts
        greatest[filled] = np.maximum.reduceat(numbers, firsts[filled])
    return greatest


def _check(holds: bool, where: str) -> None:
    if not holds:
        raise CorruptFileError(f"{where}: an object or array is damaged")
