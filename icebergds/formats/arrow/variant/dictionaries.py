"""Field names in the metadata of variants (Parquet variant encoding: Metadata)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.formats.arrow.variant.byte_strings import (
    ByteStrings,
    Integers,
    little_endian,
    ordinals,
)

_VERSION = 1
_SORTED = 1 << 4
_NO_NAMES = b"\x01\x00\x00"


@dataclass(frozen=True, slots=True)
class Dictionaries:
    """The distinct dictionaries of a column.

    Attributes:
        of_row: the ordinal of each row's dictionary.
        names: every name of any dictionary once, in the order of its bytes.
        sizes: how many names each dictionary has.
        ranks: the position in `names` of each name of each dictionary, one after the other.
    """

    of_row: Integers
    names: pa.BinaryArray
    sizes: Integers
    ranks: Integers

    def ranks_of(self, names: Sequence[bytes]) -> Integers:
        """The positions of some names in `names`; -1 for those that no dictionary has."""
        found = pc.index_in(pa.array(names, pa.binary()), value_set=self.names)
        ranks: Integers = np.asarray(found.fill_null(-1))
        return ranks

    def ids_of(self, ranks: Integers) -> Integers:
        """The ids of some names in each dictionary, a row for each; -1 if it lacks the name."""
        ids = np.full((len(self.sizes), len(ranks)), -1, np.int32)
        # The last element is that of rank -1.
        column_of = np.full(len(self.names) + 1, -1)
        column_of[ranks] = np.arange(len(ranks))
        column_of[-1] = -1
        columns = column_of[self.ranks]
        wanted = np.flatnonzero(columns >= 0)
        rows = np.repeat(np.arange(len(self.sizes)), self.sizes)
        ids[rows[wanted], columns[wanted]] = ordinals(self.sizes)[wanted]
        return ids

    def ranks_of_ids(self, dictionaries: Integers, ids: Integers) -> Integers:
        """The ranks of names, given as dictionaries and valid ids in them."""
        firsts = np.cumsum(self.sizes) - self.sizes
        ranks: Integers = self.ranks[firsts[dictionaries] + ids]
        return ranks


def read_dictionaries(metadata: pa.BinaryArray, where: str) -> Dictionaries:
    """The dictionaries of a column of metadata, whose nulls have any.

    Raises:
        CorruptFileError: a value is not metadata of a variant.
        UnsupportedFeatureError: a variant has a version other than 1.
    """
    encoded = metadata.dictionary_encode()
    distinct = encoded.dictionary if len(encoded.dictionary) else pa.array([_NO_NAMES])
    strings = ByteStrings.of(distinct)
    starts, lengths, data = strings.starts.astype(np.int64), strings.lengths, strings.data
    _check(bool((lengths > 0).all()), where)
    headers = data[starts]
    versions = headers & 0xF
    if (versions != _VERSION).any():
        found = int(versions[versions != _VERSION][0])
        raise UnsupportedFeatureError(f"{where}: variants of version {found} are not supported")
    widths = 1 + (headers >> 6).astype(np.int64)
    _check(bool((1 + widths <= lengths).all()), where)
    sizes = little_endian(data, starts + 1, widths)
    heads = 1 + widths * (sizes + 2)
    _check(bool((heads <= lengths).all()), where)

    counts = sizes + 1
    places = np.repeat(starts + 1 + widths, counts) + ordinals(counts) * np.repeat(widths, counts)
    offsets = little_endian(data, places, np.repeat(widths, counts))
    lasts = np.cumsum(counts) - 1
    _check(bool((heads + offsets[lasts] <= lengths).all()), where)
    cuts = np.repeat(starts + heads, counts) + offsets
    # Since the next dictionary begins behind the last name of this one.
    _check(bool((np.diff(cuts) >= 0).all()), where)

    # Between the names of two dictionaries is the head of the second.
    is_name = np.ones(len(cuts) - 1, np.bool_)
    is_name[lasts[:-1]] = False
    names = ByteStrings(cuts, data).array().filter(pa.array(is_name)).dictionary_encode()
    order = pc.array_sort_indices(names.dictionary)
    rank_of = np.empty(len(order), np.int64)
    rank_of[order] = np.arange(len(order))
    return Dictionaries(
        np.asarray(encoded.indices.fill_null(0)),
        names.dictionary.take(order),
        sizes,
        rank_of[np.asarray(names.indices)],
    )


def encode_dictionary(names: Sequence[bytes]) -> bytes:
    """The metadata of distinct names in the order of their bytes."""
    ends = list(accumulate(map(len, names), initial=0))
    width = max(1, (max(len(names), ends[-1]).bit_length() + 7) // 8)
    numbers = b"".join(number.to_bytes(width, "little") for number in (len(names), *ends))
    return bytes([_VERSION | _SORTED | (width - 1) << 6]) + numbers + b"".join(names)


def _check(holds: bool, where: str) -> None:
    if not holds:
        raise CorruptFileError(f"{where}: the metadata of a variant is damaged")
