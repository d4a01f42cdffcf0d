"""Takes encoded variants apart, all values of a column at once (Parquet variant encoding)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.variant.byte_strings import (
    Bytes,
    Integers,
    Mask,
    little_endian,
    substrings,
)
from icebergds.formats.arrow.variant.containers import ARRAY, OBJECT, read_heads

SHORT_STRING = 1
"""The basic type of strings of less than 64 bytes."""
NULL, TRUE, FALSE, BINARY, STRING = 0, 1, 2, 15, 16
"""Types of scalars."""

# The bytes of scalars by type; of strings and binaries, those before the content.
_SIZES = np.array([1, 1, 1, 2, 3, 5, 9, 9, 6, 10, 18, 5, 9, 9, 5, 5, 5, 9, 9, 9, 17])


@dataclass(frozen=True, slots=True)
class Values:
    """Encoded variants in a buffer.

    Attributes:
        data: the bytes they are in.
        starts, sizes: where each value begins, and its bytes.
        dictionaries: the ordinals of the dictionaries of their names.
        basic_types: scalar (0), short string, object or array.
        types: of scalars; arbitrary for other values.
    """

    data: Bytes
    starts: Integers
    sizes: Integers
    dictionaries: Integers
    basic_types: Integers
    types: Integers

    @staticmethod
    def read(
        data: Bytes, starts: Integers, limits: Integers, dictionaries: Integers, where: str
    ) -> Values:
        """The values at some places.

        Args:
            limits: how many bytes each value may have.
            where: the column, for errors.

        Raises:
            CorruptFileError: a value is damaged, or of a type that is not known here.
        """
        _check(bool((limits > 0).all()), where)
        headers = data[starts].astype(np.int64)
        basic_types, types = headers & 0b11, headers >> 2
        is_scalar = basic_types == 0
        _check(not is_scalar.any() or int(types[is_scalar].max()) < len(_SIZES), where)
        sizes = np.where(is_scalar, _SIZES[np.where(is_scalar, types, 0)], 1 + types)
        _check(bool((sizes[is_scalar] <= limits[is_scalar]).all()), where)

        is_long = is_scalar & ((types == BINARY) | (types == STRING))
        at = np.flatnonzero(is_long)
        sizes[at] += little_endian(data, starts[at] + 1, np.full(len(at), 4))
        at = np.flatnonzero(basic_types >= OBJECT)
        if len(at):
            heads = read_heads(data, starts[at], limits[at], where)
            sizes[at] = heads.sizes + heads.content_sizes(data)
        _check(bool((sizes <= limits).all()), where)
        return Values(data, starts, sizes, dictionaries, basic_types, types)

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, chosen: Integers | Mask) -> Values:
        """Some of the values, by their ordinals or a mask."""
        return Values(
            self.data,
            self.starts[chosen],
            self.sizes[chosen],
            self.dictionaries[chosen],
            self.basic_types[chosen],
            self.types[chosen],
        )

    @property
    def is_null(self) -> Mask:
        """Which are variant nulls."""
        return self.is_scalar(NULL)

    @property
    def is_object(self) -> Mask:
        """Which are objects."""
        return self._has(OBJECT)

    @property
    def is_array(self) -> Mask:
        """Which are arrays."""
        return self._has(ARRAY)

    @property
    def is_string(self) -> Mask:
        """Which are strings."""
        return self._has(SHORT_STRING) | self.is_scalar(STRING)

    def is_scalar(self, *types: int) -> Mask:
        """Which are scalars of one of some types."""
        return self._has(0) & np.isin(self.types, types)

    def texts(self) -> pa.BinaryArray:
        """The bytes of strings; these values are all strings."""
        heads = np.where(self.basic_types == SHORT_STRING, 1, 5)
        return substrings(self.data, self.starts + heads, self.sizes - heads)

    def elements(self, where: str) -> tuple[Values, Integers, Integers]:
        """The values in objects or arrays; these values are all one or the other.

        Returns:
            The values, those of the first container first; how many each has; and, of objects, the
            ids of the names.

        Raises:
            CorruptFileError: a value is damaged.
        """
        heads = read_heads(self.data, self.starts, self.sizes, where)
        offsets = heads.offsets(self.data)
        contents = self.sizes - heads.sizes
        limits = np.repeat(contents, heads.counts) - offsets
        starts = np.repeat(self.starts + heads.sizes, heads.counts) + offsets
        dictionaries = np.repeat(self.dictionaries, heads.counts)
        values = Values.read(self.data, starts, limits, dictionaries, where)
        return values, heads.counts, heads.ids(self.data)

    def _has(self, basic_type: int) -> Mask:
        mask: Mask = self.basic_types == basic_type
        return mask


def _check(holds: bool, where: str) -> None:
    if not holds:
        raise CorruptFileError(f"{where}: the value of a variant is damaged, or of an unknown type")
