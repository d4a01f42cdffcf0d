"""Encodes and decodes 64-bit Roaring bitmaps, portable form (Puffin spec: deletion-vector-v1)."""

from __future__ import annotations

from pyroaring import BitMap64

from icebergds.errors import CorruptFileError
from icebergds.formats.deletes.positions import PositionSet


def decode_roaring64(data: bytes, source: str) -> PositionSet:
    """The positions of a serialised bitmap, which stays as small as it is stored.

    Args:
        data: the serialised bitmap.
        source: where it is stored, for errors.

    Raises:
        CorruptFileError: the bytes are not such a bitmap, or hold positions of 2^63 and more.
    """
    try:
        bitmap = BitMap64.deserialize(data)
    except (ValueError, IndexError) as error:
        raise CorruptFileError(f"{source}: the bitmap is damaged ({error})") from error
    if bitmap and bitmap.max() >= 1 << 63:
        raise CorruptFileError(f"{source}: the bitmap holds positions of 2^63 and more")
    return PositionSet.of_bitmap(bitmap)


def encode_roaring64(positions: PositionSet) -> bytes:
    """The serialised bitmap of a set of positions, with runs if they are smaller."""
    bitmap = positions.bitmap().copy()
    bitmap.run_optimize()
    return bytes(bitmap.serialize())
