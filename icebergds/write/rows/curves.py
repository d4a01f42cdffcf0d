"""Computes positions along the z-order and the Hilbert curve, of many points at once.

A point is given as bytes of one array for each dimension, a row each, most significant first, and
so is its position along the curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from icebergds.write.rows.ordered_bits import Bytes

_Coordinates = npt.NDArray[np.unsignedinteger]

HILBERT_BYTES = 8
"""How many leading bytes of a dimension the Hilbert curve uses at most."""


def z_order(dimensions: Sequence[Bytes]) -> Bytes:
    """Positions along the z-order curve: the first bit of each dimension, then the second, ...

    Dimensions that have no more bytes are left out of further rounds.

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
    width = min(max(part.shape[1] for part in dimensions), HILBERT_BYTES)
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
    """For each of `count` dimensions, for each word of the result, the bits of each byte in it."""
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
            # Where the bit is set, the low bits of the first dimension are inverted; elsewhere
            # they are exchanged with those of this dimension.
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
