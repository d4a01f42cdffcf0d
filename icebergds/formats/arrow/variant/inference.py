"""Chooses how variants are shredded, by a sample of them.

The rules are Java Iceberg's: a value is shredded if all values at its place have one type, nulls
aside; integers and decimals are each one type. Fields of objects must occur in a tenth of the rows,
and of more than 300, the most frequent are chosen. Three rules differ: integers of 8 and 16 bits go
to columns of 32 bits, which take no more space and hold later values that are greater; decimals get
the highest precision of their width; and values are as deep as Arrow reads schemas.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.variant.dictionaries import Dictionaries
from icebergds.formats.arrow.variant.shredding import (
    ArrayShape,
    ObjectShape,
    ScalarShape,
    Shape,
    root_values,
)
from icebergds.formats.arrow.variant.typed_scalars import (
    DECIMALS,
    INTEGERS,
    OTHER_TYPES,
    decimal_scales,
)
from icebergds.formats.arrow.variant.values import BINARY, FALSE, TRUE, Values

_LEAST_SHARE = 0.1
_MOST_FIELDS = 300
# Arrow reads Parquet schemas of up to 100 levels; objects and arrays take these.
_MOST_LEVELS = 90
_LEVELS_OF_OBJECT, _LEVELS_OF_ARRAY = 2, 3


def infer_shape(variants: pa.StructArray, where: str) -> Shape | None:
    """How to shred a column of variants; None if it is better left as it is.

    Args:
        variants: a sample of the rows, structs of `metadata` and `value`.
        where: the column, for errors.

    Raises:
        CorruptFileError: a value is not a variant.
    """
    values, dictionaries, _ = root_values(variants, where)
    values = values.take(~values.is_null)
    return _Inference(dictionaries, len(values), where).shape_of(values, 0)


class _Inference:
    """The shapes of the values of a sample."""

    def __init__(self, dictionaries: Dictionaries, num_rows: int, where: str) -> None:
        self._dictionaries = dictionaries
        self._least = _LEAST_SHARE * num_rows
        self._where = where

    def shape_of(self, values: Values, level: int) -> Shape | None:
        """The shape of values, none of them null; None if they are not shredded."""
        if not len(values) or level > _MOST_LEVELS:
            return None
        if values.is_object.all():
            return self._objects(values, level + _LEVELS_OF_OBJECT)
        if values.is_array.all():
            return self._arrays(values, level + _LEVELS_OF_ARRAY)
        scalar = _scalar_type(values)
        return None if scalar is None else ScalarShape(scalar)

    def _arrays(self, values: Values, level: int) -> ArrayShape | None:
        inside, _, _ = values.elements(self._where)
        element = self.shape_of(inside.take(~inside.is_null), level)
        return None if element is None else ArrayShape(element)

    def _objects(self, values: Values, level: int) -> ObjectShape | None:
        inside, _, ids = values.elements(self._where)
        if (ids >= self._dictionaries.sizes[inside.dictionaries]).any():
            raise CorruptFileError(f"{self._where}: a field's name is not in the metadata")
        used = np.flatnonzero(~inside.is_null)
        ranks = self._dictionaries.ranks_of_ids(inside.dictionaries, ids)[used]
        known, counts = np.unique(ranks, return_counts=True)
        frequent = np.flatnonzero(counts >= self._least)
        # The most frequent ones, and of equally frequent ones the first by name.
        chosen = known[frequent[np.argsort(-counts[frequent], kind="stable")][:_MOST_FIELDS]]
        fields = []
        for rank in np.sort(chosen):
            name = _text(self._dictionaries.names[int(rank)].as_py())
            shape = self.shape_of(inside.take(used[ranks == rank]), level)
            if name is not None and shape is not None:
                fields.append((name, shape))
        if not fields:
            return None
        names, shapes = zip(*fields, strict=True)
        return ObjectShape(names, shapes)


def _scalar_type(values: Values) -> pa.DataType | None:
    """The type of a column for values that all have one type, else None."""
    if values.is_string.all():
        return pa.string()
    if (values.basic_types != 0).any():
        return None
    types = frozenset(np.unique(values.types).tolist())
    if types <= INTEGERS.keys():
        return pa.int64() if max(INTEGERS[each] for each in types) == 8 else pa.int32()
    if types <= DECIMALS.keys():
        return _decimal_type(values, types)
    if types <= {TRUE, FALSE}:
        return pa.bool_()
    if types == {BINARY}:
        return pa.binary()
    return OTHER_TYPES.get(next(iter(types))) if len(types) == 1 else None


def _decimal_type(values: Values, types: frozenset[int]) -> pa.DataType | None:
    scale = int(decimal_scales(values).max())
    digits = max(DECIMALS[each][1] for each in types)
    precisions = [most for _, most in DECIMALS.values() if most >= max(digits, scale)]
    return pa.decimal128(precisions[0], scale) if precisions else None


def _text(name: bytes) -> str | None:
    """A name that Parquet can have; None if it cannot."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return None
    return text or None
