"""Hashes the distinct values of a column for Theta sketches.

The bytes that are hashed are those of the single-value serialisation (spec: Appendix D; Puffin
spec: `apache-datasketches-theta-v1`), by the 63 upper bits of the first half of Murmur3 (128 bits,
x64).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.formats.arrow.decimal_bytes import unscaled_slices
from icebergds.operations.statistics.theta_sketch import HASH_SEED, UInt64s
from icebergds.spec.types import UNKNOWN, DecimalType, IcebergType

_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_MIX_1, _MIX_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_PLAIN = {8: pa.int8(), 32: pa.int32(), 64: pa.int64()}


def value_hashes(field_type: IcebergType, array: pa.Array) -> UInt64s:
    """The hashes of the distinct values of an array, in the order in which they first appear.

    Nulls and values without bytes, such as empty strings, have none, as in the library that the
    spec refers to.

    Args:
        array: of the Arrow type `arrow.types.to_arrow(field_type)`.
    """
    if field_type == UNKNOWN:
        return np.empty(0, np.uint64)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    elif pa.types.is_primitive(array.type) and not isinstance(field_type, DecimalType):
        # As integers, because -0.0 and 0.0, and NaNs of several bits, have bytes of their own.
        array = array.view(_PLAIN[array.type.bit_width])
    distinct = array.unique().drop_null()
    if pa.types.is_integer(distinct.type):
        return _hash_fixed(distinct.to_numpy())
    if isinstance(field_type, DecimalType):
        return _hash_each(_unscaled_bytes(distinct))
    return _hash_each(distinct.cast(pa.binary()).to_pylist())


def _unscaled_bytes(decimals: pa.Array) -> Iterator[bytes]:
    buffer, ends, lengths = unscaled_slices(decimals)
    data = buffer.tobytes()
    for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        yield data[start:end]


def _hash_each(values: Iterable[bytes]) -> UInt64s:
    hashes = [mmh3.hash64(value, HASH_SEED, signed=False)[0] for value in values if value]
    return np.array(hashes, np.uint64) >> np.uint64(1)


def _hash_fixed(values: npt.NDArray[np.signedinteger]) -> UInt64s:
    """Hashes of the little-endian bytes of integers of at most 8 bytes, which are one step."""
    width = values.dtype.itemsize
    words = values.view(f"u{width}").astype(np.uint64)
    words *= _C1
    words = (words << np.uint64(31)) | (words >> np.uint64(33))
    words *= _C2
    seed = np.uint64(HASH_SEED ^ width)
    first: UInt64s = (words ^ seed) + seed
    return (_mixed(first) + _mixed(first + seed)) >> np.uint64(1)


def _mixed(words: UInt64s) -> UInt64s:
    shift = np.uint64(33)
    words = (words ^ (words >> shift)) * _MIX_1
    words = (words ^ (words >> shift)) * _MIX_2
    return words ^ (words >> shift)
