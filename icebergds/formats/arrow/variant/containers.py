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
_OBJECT, _ARRAY = 2, 3
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
    headers = data[starts].astype(np.int64)
    others = int(np.count_nonzero(headers & _BASIC_TYPE != _OBJECT))
    if others:
        raise CorruptFileError(
            f"{where}: {others} of {len(values)} partially shredded objects are not objects; the "
            "file does not follow the specification"
        )
    offset_widths = 1 + ((headers >> 2) & 0b11)
    id_widths = 1 + ((headers >> 4) & 0b11)
    count_widths = np.where((headers >> 6) & 1, 4, 1)
    _check(bool((1 + count_widths <= lengths).all()), where)
    counts = little_endian(data, starts + 1, count_widths)
    heads = 1 + count_widths + counts * id_widths + (counts + 1) * offset_widths
    _check(bool((heads <= lengths).all()), where)

    ids = _numbers(strings, starts + 1 + count_widths, id_widths, counts)
    before_offsets = starts + 1 + count_widths + counts * id_widths
    offsets = _numbers(strings, before_offsets, offset_widths, counts)
    _check(bool((offsets < np.repeat(lengths - heads, counts)).all()), where)
    return ObjectFields(counts, ids, offsets, heads)


def _numbers(
    strings: ByteStrings, starts: Integers, widths: Integers, counts: Integers
) -> Integers:
    """The numbers of each value: `counts` of `widths` bytes from `starts` on."""
    widths_of_numbers = np.repeat(widths, counts)
    places = np.repeat(starts, counts) + ordinals(counts) * widths_of_numbers
    return little_endian(strings.data, places, widths_of_numbers)


def _heads(
    present: Mask, counts: Integers, offsets: Integers, sizes: Integers, ids: Integers | None
) -> pa.Array:
    is_large = counts > _MAX_SMALL
    offset_widths = width_of(sizes)
    if ids is None:
        per_element = 1
        id_widths: Integers = np.zeros(len(counts), np.int64)
        headers = _ARRAY | ((offset_widths - 1) << 2) | (is_large.astype(np.int64) << 4)
    else:
        per_element = 2
        id_widths = width_of(_greatest(ids, counts))
        headers = (
            _OBJECT
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
        raise CorruptFileError(f"{where}: an object is damaged")
