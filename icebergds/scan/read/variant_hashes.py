"""Hashes variants by what they hold, however they are encoded.

The same variant may be encoded in many ways, and shredding changes the encoding: names may be in
any order, integers and decimals of any width, decimals of any scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.formats.arrow.variant.byte_strings import Bytes, Integers, of_lengths, substrings
from icebergds.formats.arrow.variant.dictionaries import Dictionaries
from icebergds.formats.arrow.variant.shredding import root_values
from icebergds.formats.arrow.variant.typed_scalars import (
    DECIMALS,
    INTEGERS,
    decimal_scales,
    decode_scalars,
)
from icebergds.formats.arrow.variant.values import Values
from icebergds.formats.deletes.key_columns import KeyColumn, Mask
from icebergds.formats.deletes.key_hash import Hashes, hash_columns

# Tell apart what has the same content.
_INTEGER, _DECIMAL, _STRING, _OTHER, _OBJECT, _ARRAY = range(6)
_FLOATS = {7: (8, "<f8"), 14: (4, "<f4")}
_GREATEST_SCALE = 38


def hash_variants(column: pa.StructArray, seed: int) -> KeyColumn | None:
    """A hash of each variant as a column for `hash_columns`; None if a value is not a variant.

    Args:
        column: structs of `metadata` and `value`.
    """
    try:
        values, dictionaries, rows = root_values(column, "a variant")
        found = _Hasher.of(dictionaries, seed).hashes(values)
    except (CorruptFileError, UnsupportedFeatureError):
        return None
    hashes = np.zeros(len(column), np.uint64)
    hashes[rows] = found
    valid = None
    if len(rows) < len(column):
        valid = np.zeros(len(column), np.bool_)
        valid[rows] = True
    return KeyColumn((hashes.view(np.int64),), None, valid)


@dataclass(frozen=True, slots=True)
class _Hasher:
    dictionaries: Dictionaries
    of_names: Hashes
    seed: int

    @staticmethod
    def of(dictionaries: Dictionaries, seed: int) -> _Hasher:
        names = KeyColumn((), dictionaries.names, None)
        return _Hasher(dictionaries, hash_columns([names], len(dictionaries.names), seed), seed)

    def hashes(self, values: Values) -> Hashes:
        """The hash of each value."""
        out = np.zeros(len(values), np.uint64)
        known = np.zeros(len(values), np.bool_)

        def put(kind: int, where: Mask, texts: pa.BinaryArray) -> None:
            out[where] = self._hash(kind, texts)
            known[where] = True

        is_integer = values.is_scalar(*INTEGERS)
        if is_integer.any():
            numbers, _ = decode_scalars(values.take(is_integer), pa.int64())
            put(_INTEGER, is_integer, _texts(np.asarray(numbers).view(np.uint8), 8))
        is_decimal = values.is_scalar(*DECIMALS)
        if is_decimal.any():
            texts, held = _decimals(values.take(is_decimal))
            is_decimal[is_decimal] = held
            put(_DECIMAL, is_decimal, texts)
        is_string = values.is_string
        if is_string.any():
            put(_STRING, is_string, values.take(is_string).texts())
        for is_kind, kind in ((values.is_object, _OBJECT), (values.is_array, _ARRAY)):
            if is_kind.any():
                put(kind, is_kind, self._contents(values.take(is_kind), kind == _OBJECT))
        rest = ~known
        if rest.any():
            put(_OTHER, rest, _others(values.take(rest)))
        return out

    def _contents(self, values: Values, is_object: bool) -> pa.BinaryArray:
        """The hashes of the elements of each array, or of the fields by the order of names."""
        inside, counts, ids = values.elements("a variant")
        hashes = self.hashes(inside)
        if is_object:
            if (ids >= self.dictionaries.sizes[inside.dictionaries]).any():
                raise CorruptFileError("a field's name is not in the metadata")
            ranks = self.dictionaries.ranks_of_ids(inside.dictionaries, ids)
            lanes = (self.of_names[ranks].view(np.int64), hashes.view(np.int64))
            hashes = hash_columns([KeyColumn(lanes, None, None)], len(hashes), self.seed)
            hashes = hashes[np.lexsort((ranks, np.repeat(np.arange(len(counts)), counts)))]
        return of_lengths(8 * counts, np.ascontiguousarray(hashes).view(np.uint8))

    def _hash(self, kind: int, texts: pa.BinaryArray) -> Hashes:
        kinds = np.full(len(texts), kind, np.int64)
        columns = [KeyColumn((kinds,), None, None), KeyColumn((), texts, None)]
        return hash_columns(columns, len(texts), self.seed)


def _others(values: Values) -> pa.BinaryArray:
    """Values that are encoded in one way only, but for NaN."""
    data = values.data
    for type_id, (width, dtype) in _FLOATS.items():
        of_type = values.is_scalar(type_id)
        if of_type.any():
            places = (values.starts[of_type] + 1)[:, np.newaxis] + np.arange(width)
            numbers = np.ascontiguousarray(data[places]).view(dtype)[:, 0]
            is_nan = np.isnan(numbers)
            if is_nan.any():
                data = data.copy()
                data[places[is_nan]] = np.array([np.nan], dtype).view(np.uint8)
    return substrings(data, values.starts, values.sizes)


def _decimals(values: Values) -> tuple[pa.BinaryArray, Mask]:
    """Decimals as integers of 256 bits, all of one scale; and which have no more digits."""
    wide = pa.decimal256(76, _GREATEST_SCALE)
    octets = np.zeros((len(values), 32), np.uint8)
    held = np.zeros(len(values), np.bool_)
    scales = decimal_scales(values)
    for scale in np.unique(scales[scales <= _GREATEST_SCALE]).tolist():
        at = np.flatnonzero(scales == scale)
        typed, fits = decode_scalars(values.take(at), pa.decimal128(38, scale))
        data = typed.cast(wide).buffers()[1] or b""
        octets[at[fits]] = np.frombuffer(data, np.uint8)[: 32 * len(typed)].reshape(-1, 32)
        held[at[fits]] = True
    return _texts(octets[held].reshape(-1), 32), held


def _texts(octets: Bytes, width: int) -> pa.BinaryArray:
    lengths: Integers = np.full(len(octets) // width, width)
    return of_lengths(lengths, octets)
