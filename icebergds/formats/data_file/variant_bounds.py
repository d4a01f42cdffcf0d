"""Collects and serialises the bounds of shredded variants (spec: Bounds for Variant).

The bounds of a variant column are objects: the bounds of its fields by their normalised JSON paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from icebergds.formats.arrow.variant.containers import object_heads
from icebergds.formats.arrow.variant.dictionaries import encode_dictionary
from icebergds.formats.arrow.variant.scalars import encoder_of
from icebergds.formats.arrow.variant.shredding import Shape, typed_columns
from icebergds.formats.data_file.bounds import Range, bounds_of
from icebergds.formats.data_file.column_metrics import count_nans, range_of
from icebergds.formats.data_file.metrics_modes import MetricsMode
from icebergds.spec.types import BINARY, DOUBLE, FLOAT, LONG, STRING, UUID, ScalarType

_FIELD_TYPES: dict[pa.DataType, ScalarType] = {
    pa.string(): STRING,
    pa.binary(): BINARY,
    pa.uuid(): UUID,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
}
# RFC 9535, Normalized Paths.
_ESCAPES = {chr(code): f"\\u{code:04x}" for code in range(0x20)} | {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    "'": "\\'",
    "\\": "\\\\",
}
_ESCAPED = str.maketrans(_ESCAPES)


def normalized_path(names: tuple[str, ...]) -> str:
    """The normalised JSON path of a field in objects; `$` for the value itself."""
    return "$" + "".join(f"['{name.translate(_ESCAPED)}']" for name in names)


class VariantRanges:
    """The ranges of the shredded fields of a column, outside of arrays.

    Booleans have none, and neither have fields with NaN or with values that are not shredded.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._types: dict[tuple[str, ...], pa.DataType] = {}
        self._ranges: dict[tuple[str, ...], Range] = {}
        self._without: set[tuple[str, ...]] = set()

    def add(self, column: pa.StructArray) -> None:
        """Adds the rows of a shredded column."""
        for path, typed in typed_columns(column, self._shape):
            if path in self._without:
                continue
            if typed is None or pa.types.is_boolean(typed.type) or _has_nan(typed):
                self._without.add(path)
                continue
            values = typed.storage if isinstance(typed, pa.ExtensionArray) else typed
            found = range_of(values)
            if found is not None:
                self._types[path] = typed.type
                self._ranges[path] = found.union(self._ranges.get(path))

    def bounds(self, mode: MetricsMode) -> tuple[bytes | None, bytes | None]:
        """The serialised lower and upper bounds; None if no field has any."""
        lower: dict[str, pa.Array] = {}
        upper: dict[str, pa.Array] = {}
        for path, values in self._ranges.items():
            if path in self._without:
                continue
            arrow_type = self._types[path]
            field_type = _FIELD_TYPES.get(arrow_type, LONG)
            name = normalized_path(path)
            for side, bound in zip(
                (lower, upper), bounds_of(field_type, values, mode), strict=True
            ):
                if bound is not None:
                    side[name] = _array(bound, arrow_type)
        return _serialized(lower), _serialized(upper)


def _has_nan(array: pa.Array) -> bool:
    return pa.types.is_floating(array.type) and count_nans(array) > 0


def _array(bound: Any, arrow_type: pa.DataType) -> pa.Array:
    """A column of one in-memory value."""
    if isinstance(arrow_type, pa.UuidType):
        return pa.array([bound], pa.binary(16)).cast(arrow_type)
    if pa.types.is_date(arrow_type):
        return pa.array([bound], pa.int32()).view(arrow_type)
    if pa.types.is_temporal(arrow_type):
        return pa.array([bound], pa.int64()).view(arrow_type)
    return pa.array([bound], arrow_type)


def _serialized(bounds: Mapping[str, pa.Array]) -> bytes | None:
    """Metadata, and an object of the bounds."""
    if not bounds:
        return None
    names = sorted(name.encode() for name in bounds)
    encoded = []
    for name in names:
        array = bounds[name.decode()]
        encoder = encoder_of(array.type)
        assert encoder is not None, "columns of scalars have the types of variants"
        encoded.append(encoder(array, "bounds")[0].as_py())
    sizes = np.array([len(value) for value in encoded])
    heads = object_heads(
        np.ones(1, np.bool_),
        np.array([len(names)]),
        np.arange(len(names)),
        np.cumsum(sizes) - sizes,
        np.array([sizes.sum()]),
    )
    head: bytes = heads[0].as_py()
    return encode_dictionary(names) + head + b"".join(encoded)
