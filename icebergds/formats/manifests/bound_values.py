"""Decodes bounds of many files at once (spec: Appendix D, Binary single-value serialization)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.types import to_array, to_arrow
from icebergds.spec.types import (
    BINARY,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    TypeId,
    is_scalar,
)
from icebergds.spec.values.binary import from_bytes

NUMBERS: dict[TypeId, tuple[str, ...]] = {
    # Bounds written before a promotion have the narrower type.
    TypeId.INT: ("<i4",),
    TypeId.LONG: ("<i8", "<i4"),
    TypeId.FLOAT: ("<f4",),
    TypeId.DOUBLE: ("<f8", "<f4"),
    TypeId.DATE: ("<i4",),
    TypeId.TIME: ("<i8",),
    TypeId.TIMESTAMP: ("<i8",),
    TypeId.TIMESTAMPTZ: ("<i8",),
    TypeId.TIMESTAMP_NS: ("<i8",),
    TypeId.TIMESTAMPTZ_NS: ("<i8",),
}
"""The types whose bounds are numbers, with the numpy types of these, the widest first."""


def bound_type(field_type: IcebergType) -> IcebergType:
    """The type of the bounds of a column: its own, or binary where bounds are not its values.

    Bounds of `fixed` may be shorter, and those of geometry and geography are corners.
    """
    if isinstance(field_type, FixedType | GeometryType | GeographyType):
        return BINARY
    return field_type


def decode_bound_column(field_type: IcebergType, bounds: pa.BinaryArray) -> pa.Array:
    """The values of bounds, in the Arrow type of `bound_type`; null for those that are no values.

    Args:
        field_type: of the column.
    """
    target = bound_type(field_type)
    type_id = target.type_id if is_scalar(target) else None
    match type_id:
        case TypeId.BINARY:
            return bounds
        case TypeId.STRING:
            try:
                return bounds.cast(pa.string())
            except pa.ArrowInvalid:
                return _by_distinct(target, bounds)
        case _ if type_id in NUMBERS:
            values, known = decode_numbers(bounds, NUMBERS[type_id])
            if (known != _is_valid(bounds)).any():
                return _by_distinct(target, bounds)
            return pa.array(values, mask=~known).cast(to_arrow(target))
        case _:
            return _by_distinct(target, bounds)


def decode_numbers(bounds: pa.Array, kinds: tuple[str, ...]) -> tuple[npt.NDArray[Any], _Mask]:
    """Decodes bounds as numbers of the widest type, with a mask of the known ones.

    Args:
        kinds: of `NUMBERS`.
    """
    count = len(bounds)
    _, offsets_buffer, data_buffer = bounds.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[bounds.offset : bounds.offset + count + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    valid = _is_valid(bounds)
    lengths = np.diff(offsets)
    values = np.zeros(count, np.dtype(kinds[0]))
    known = np.zeros(count, np.bool_)
    for kind in kinds:
        dtype = np.dtype(kind)
        is_kind = valid & (lengths == dtype.itemsize)
        if count and is_kind.all():
            # They follow each other.
            return data[offsets[0] : offsets[-1]].view(dtype).astype(values.dtype), is_kind
        rows = np.flatnonzero(is_kind)
        if rows.size:
            octets = data[offsets[rows][:, None] + np.arange(dtype.itemsize)]
            values[rows] = octets.view(dtype)[:, 0]
            known[rows] = True
    return values, known


_Mask = npt.NDArray[np.bool_]


def _by_distinct(field_type: IcebergType, bounds: pa.BinaryArray) -> pa.Array:
    """Decodes each distinct bound once."""
    encoded = bounds.dictionary_encode()
    values = [_value(field_type, data) for data in encoded.dictionary.to_pylist()]
    return pc.take(to_array(field_type, values), encoded.indices)


def _value(field_type: IcebergType, data: bytes) -> Any:
    try:
        value = from_bytes(field_type, data)
        # A decimal may have too many digits, and a date may be no nanoseconds of 64 bits.
        to_array(field_type, [value])
    except (CorruptFileError, pa.ArrowException, OverflowError):
        return None
    return value


def _is_valid(bounds: pa.Array) -> _Mask:
    mask: _Mask = bounds.is_valid().to_numpy(zero_copy_only=False)
    return mask
