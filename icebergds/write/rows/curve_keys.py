"""Computes sort keys along a z-order or Hilbert curve through several columns.

Rows sorted by such a key are near each other in all columns, so that files and row groups can be
skipped by filters on any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.errors import InvalidOptionError
from icebergds.spec.types import IcebergType
from icebergds.write.rows.ordered_bits import (
    Bytes,
    is_byte_string,
    is_number,
    leading_bytes,
    ordered_integers,
    plain_array,
)
from icebergds.write.rows.ranks import Ranks

_Coordinates = npt.NDArray[np.unsignedinteger]

_HILBERT_BYTES = 8
"""How many leading bytes of a dimension the Hilbert curve uses at most."""


def z_order(dimensions: Sequence[Bytes]) -> Bytes:
    """Positions along the z-order curve: the first bit of each dimension, then the second, ...

    Dimensions without further bytes are left out of later rounds.

    Args:
        dimensions: for each dimension, an array of points by bytes.
    """
    rounds = max(part.shape[1] for part in dimensions)
    return np.concatenate(
        [
            _interleaved([part[:, at] for part in dimensions if at < part.shape[1]])
            for at in range(rounds)
        ],
        axis=1,
    )


def hilbert(dimensions: Sequence[Bytes]) -> Bytes:
    """Positions along the Hilbert curve, whose neighbours differ by one in one dimension.

    All dimensions are as wide as the widest, at most 8 bytes; zeros are appended to others.

    Args:
        dimensions: for each dimension, an array of points by bytes.
    """
    width = min(max(part.shape[1] for part in dimensions), _HILBERT_BYTES)
    coordinates = [_as_integers(part, width) for part in dimensions]
    _transpose(coordinates, 8 * width)
    return z_order([_as_bytes(part, width) for part in coordinates])


def _interleaved(parts: Sequence[Bytes]) -> Bytes:
    """Interleaves one byte of each dimension."""
    tables = _spread(len(parts))
    words = [
        reduce(
            np.bitwise_or, (table[at].take(part) for table, part in zip(tables, parts, strict=True))
        )
        for at in range(tables.shape[1])
    ]
    spread = np.stack(words, axis=1).view(np.uint8)
    return spread[:, : len(parts)]


@cache
def _spread(count: int) -> npt.NDArray[np.unsignedinteger]:
    """For each of `count` dimensions and each result word, where a byte's bits go in it."""
    size = min(1 << (count - 1).bit_length(), 8)
    words = -(-count // size)
    bits = np.zeros((count, 256, words * size * 8), np.uint8)
    every_byte = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    for dimension in range(count):
        bits[dimension, :, dimension : 8 * count : count] = every_byte
    packed = np.packbits(bits, axis=2).view(f"u{size}")
    return np.ascontiguousarray(packed.transpose(0, 2, 1))


def _transpose(coordinates: Sequence[_Coordinates], bits: int) -> None:
    """Changes coordinates so that their interleaved bits are positions along the curve.

    J. Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707 (2004).
    """
    first, last = coordinates[0], coordinates[-1]
    kind = first.dtype.type
    one = kind(1)
    for shift in range(bits - 1, 0, -1):
        low = kind((1 << shift) - 1)
        for part in coordinates:
            # If the bit is set, the low bits of the first dimension are inverted; otherwise they
            # are exchanged with those of this dimension.
            inverted = ((part >> kind(shift)) & one) * low
            exchanged = (first ^ part) & (inverted ^ low)
            part ^= exchanged
            first ^= exchanged | inverted
    for before, part in pairwise(coordinates):
        part ^= before
    flips = np.zeros_like(last)
    for shift in range(bits - 1, 0, -1):
        flips ^= ((last >> kind(shift)) & one) * kind((1 << shift) - 1)
    for part in coordinates:
        part ^= flips


def _as_integers(part: Bytes, width: int) -> _Coordinates:
    size = 1 << (width - 1).bit_length()
    padded = np.zeros((len(part), size), np.uint8)
    kept = part[:, :width]
    padded[:, size - width : size - width + kept.shape[1]] = kept
    integers = padded.view(f">u{size}").ravel()
    return integers.astype(f"u{size}")


def _as_bytes(integers: _Coordinates, width: int) -> Bytes:
    size = integers.dtype.itemsize
    every_byte = integers.astype(f">u{size}").view(np.uint8).reshape(-1, size)
    return every_byte[:, size - width :]


CurveName = Literal["zorder", "hilbert"]

_CURVES = {"zorder": z_order, "hilbert": hilbert}
# Intermediate results of this many rows stay in the processor's cache.
_CHUNK_ROWS = 16_384
_INTEGER_BYTES = 8
_RANK_BYTES = 2


def can_order(field_type: IcebergType) -> bool:
    """Whether columns of a type can be part of a key: all that have an order."""
    return is_number(field_type) or is_byte_string(field_type)


def curve_keys(
    curve: CurveName,
    columns: Sequence[pa.Array | pa.ChunkedArray],
    types: Sequence[IcebergType],
    *,
    ranks: Sequence[Ranks | None] | None = None,
    var_length_contribution: int = _INTEGER_BYTES,
) -> pa.Array:
    """The key of each row; ascending keys follow the curve.

    A column with ranks (`ranks.sample_ranks`) contributes 2 bytes, and as much as the others to
    the position of a row. A column without ranks contributes its raw values: 8 bytes of numbers,
    and `var_length_contribution` bytes of text, bytes and uuids. Nulls are lowest; without ranks,
    they are equal to the lowest value.

    Keys depend only on the row and the arguments, so keys of different batches can be compared.
    They are not null: signed integers if they have at most 8 bytes, else byte strings of one
    length, which compare by unsigned bytes.

    Args:
        curve: "zorder" or "hilbert"; the latter uses at most 8 bytes of each column.
        columns: the values of each column, equally long; at least one column.
        types: the columns' types, for which `can_order` holds; uuids are binaries of 16 bytes.
        ranks: for each column, its ranks or None; None if no column has any.
        var_length_contribution: in bytes, at least 1.

    Raises:
        InvalidOptionError: there are no columns, a type has no order, or a size is less than 1.
    """
    width = _key_width(curve, types, ranks, var_length_contribution)
    ranked = ranks or [None] * len(types)
    count = len(columns[0])
    # Keys that are used as integers are padded with zeros.
    keys = np.zeros((count, max(width, _INTEGER_BYTES)), np.uint8)
    for first in range(0, count, _CHUNK_ROWS):
        parts = [
            _ordered_bytes(column.slice(first, _CHUNK_ROWS), kind, one, var_length_contribution)
            for column, kind, one in zip(columns, types, ranked, strict=True)
        ]
        keys[first : first + _CHUNK_ROWS, :width] = _CURVES[curve](parts)[:, :width]
    if width <= _INTEGER_BYTES:
        # Signed integers are in the order of the bytes if the first bit is flipped.
        integers = keys.view(">u8").ravel().astype(np.uint64) ^ np.uint64(1 << 63)
        return pa.array(integers.view(np.int64))
    fixed = pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(keys)])
    return fixed.cast(pa.binary())


def _key_width(
    curve: CurveName,
    types: Sequence[IcebergType],
    ranks: Sequence[Ranks | None] | None,
    var_length_contribution: int,
) -> int:
    """How many bytes each key has."""
    if not types:
        raise InvalidOptionError(f"{curve} needs one column or more to sort by, but none is given")
    if var_length_contribution < 1:
        raise InvalidOptionError(
            f"var-length-contribution is {var_length_contribution}; expected a number of bytes, at "
            "least 1"
        )
    for field_type in types:
        if not can_order(field_type):
            raise InvalidOptionError(
                f"{curve} cannot sort by a column of type {field_type}, which has no order; choose "
                "columns of numbers, dates, times, text, bytes or uuids"
            )
    widths = [
        _RANK_BYTES
        if one is not None
        else (_INTEGER_BYTES if is_number(field_type) else var_length_contribution)
        for field_type, one in zip(types, ranks or [None] * len(types), strict=True)
    ]
    if curve == "hilbert":
        widths = [min(max(widths), _HILBERT_BYTES)] * len(widths)
    return sum(widths)


def _ordered_bytes(
    column: pa.Array | pa.ChunkedArray,
    field_type: IcebergType,
    ranks: Ranks | None,
    var_length_contribution: int,
) -> Bytes:
    """The bytes of a column; each value is one row of the result."""
    array = plain_array(column, field_type)
    if ranks is not None:
        return ranks.of(array).astype(">u2").view(np.uint8).reshape(-1, _RANK_BYTES)
    if is_number(field_type):
        integers = ordered_integers(array, field_type)
        return integers.astype(">u8").view(np.uint8).reshape(-1, _INTEGER_BYTES)
    return leading_bytes(array, var_length_contribution)
