"""Converts equality key columns to numpy integer arrays (lanes) that are hashed and compared.

Two values of a type are equal keys exactly if their lanes are bitwise equal. Floating point follows
Java's `Float.compare`: all NaNs are equal, and -0.0 is not 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.arrow.types import to_arrow
from icebergds.spec.types import DecimalType, FixedType, IcebergType, NestedField, TypeId

Rows = npt.NDArray[np.intp]
Lane = npt.NDArray[np.signedinteger]
Mask = npt.NDArray[np.bool_]

_LONG_DECIMAL_DIGITS = 19
_STORED = {
    TypeId.BOOLEAN: np.int8,
    TypeId.INT: np.int32,
    TypeId.DATE: np.int32,
    TypeId.FLOAT: np.int32,
    TypeId.LONG: np.int64,
    TypeId.TIME: np.int64,
    TypeId.TIMESTAMP: np.int64,
    TypeId.TIMESTAMPTZ: np.int64,
    TypeId.TIMESTAMP_NS: np.int64,
    TypeId.TIMESTAMPTZ_NS: np.int64,
    TypeId.DOUBLE: np.int64,
}
_TEXT = frozenset({TypeId.STRING, TypeId.BINARY})
_ARROW_OFFSETS_END = 2**31


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One key column of some rows.

    Attributes:
        lanes: integers that together are the value, 0 for null; empty for text.
        text: strings and binaries, as Arrow binary or large_binary.
        valid: which rows are not null; None if no row is null.
    """

    lanes: tuple[Lane, ...]
    text: pa.Array | None
    valid: Mask | None

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        text = 0 if self.text is None else self.text.nbytes
        valid = 0 if self.valid is None else self.valid.nbytes
        return sum(lane.nbytes for lane in self.lanes) + text + valid


def check_key_field(field: NestedField) -> None:
    """Rejects types that cannot be keys (spec: Identifier Field IDs, Equality Delete Files).

    The specification excludes floating point, but some tables have such keys: they are supported.

    Raises:
        UnsupportedFeatureError: values of the field's type cannot be compared.
    """
    if _width(field.field_type) is None:
        raise UnsupportedFeatureError(
            f"equality deletes by field {field.field_id} ({field.name}) of type "
            f"{field.field_type} are not supported: only comparable scalar types can be keys"
        )


def is_one_lane(field: NestedField) -> bool:
    """Whether a value of the field is a single integer of at most 64 bits."""
    return _width(field.field_type) == 1


def encode_column(column: pa.Array, field: NestedField) -> KeyColumn:
    """The lanes of an Arrow column.

    Args:
        column: values in the Arrow type of the field's type, or of one that it was promoted from.
        field: a field that `check_key_field` accepts.

    Raises:
        UnsupportedFeatureError: the column has another type.
    """
    column = _as_type(column, field)
    valid = _validity(column)
    type_id = field.field_type.type_id  # type: ignore[union-attr]
    if type_id is TypeId.UNKNOWN:
        return KeyColumn((), None, np.zeros(len(column), dtype=np.bool_))
    if type_id in _TEXT:
        return KeyColumn((), column.view(pa.binary()), valid)
    lanes = _lanes(column, field.field_type)
    if valid is not None:
        lanes = tuple(np.where(valid, lane, lane.dtype.type(0)) for lane in lanes)
    return KeyColumn(lanes, None, valid)


def concat_columns(parts: Sequence[KeyColumn]) -> KeyColumn:
    """The rows of all parts, concatenated."""
    if len(parts) == 1:
        return parts[0]
    lanes = tuple(np.concatenate(lanes) for lanes in zip(*(p.lanes for p in parts), strict=True))
    texts = [part.text for part in parts if part.text is not None]
    valid = None
    if any(part.valid is not None for part in parts):
        valid = np.concatenate([_all_valid(part) for part in parts])
    return KeyColumn(lanes, _concat_texts(texts) if texts else None, valid)


def take_rows(column: KeyColumn, rows: Rows) -> KeyColumn:
    """The column at some rows."""
    return KeyColumn(
        tuple(lane.take(rows) for lane in column.lanes),
        None if column.text is None else _take_text(column.text, rows),
        None if column.valid is None else column.valid.take(rows),
    )


def equal_rows(
    left: Sequence[KeyColumn], left_rows: Rows, right: Sequence[KeyColumn], right_rows: Rows
) -> Mask:
    """Row by row, whether the keys at `left_rows` and `right_rows` are the same, nulls included."""
    equal = np.ones(len(left_rows), dtype=np.bool_)
    for a, b in zip(left, right, strict=True):
        for a_lane, b_lane in zip(a.lanes, b.lanes, strict=True):
            equal &= a_lane.take(left_rows) == b_lane.take(right_rows)
        if a.valid is not None or b.valid is not None:
            equal &= _valid_at(a, left_rows) == _valid_at(b, right_rows)
        if a.text is not None and b.text is not None:
            same = pc.equal(_take_text(a.text, left_rows), _take_text(b.text, right_rows))
            equal &= same.fill_null(True).to_numpy(zero_copy_only=False)
    return equal


def _width(field_type: IcebergType) -> int | None:
    """How many lanes a value has, 0 for text and nulls, None for types that cannot be keys."""
    match field_type:
        case DecimalType(precision=precision):
            return 1 if precision < _LONG_DECIMAL_DIGITS else 2
        case FixedType(length=length):
            return max(1, -(-length // 8))
        case _:
            type_id = getattr(field_type, "type_id", None)
            if type_id is TypeId.UUID:
                return 2
            if type_id in _TEXT or type_id is TypeId.UNKNOWN:
                return 0
            return 1 if type_id in _STORED else None


def _as_type(column: pa.Array, field: NestedField) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    expected = to_arrow(field.field_type)
    if column.type == expected:
        return column
    if not _is_promotion(column.type, expected):
        raise UnsupportedFeatureError(
            f"equality key {field.field_id} ({field.name}) of type {field.field_type} cannot be "
            f"compared with a column of type {column.type}"
        )
    return column.cast(expected)


def _is_promotion(found: pa.DataType, expected: pa.DataType) -> bool:
    return (
        pa.types.is_null(found)
        or (pa.types.is_int32(found) and pa.types.is_int64(expected))
        or (pa.types.is_float32(found) and pa.types.is_float64(expected))
        or (pa.types.is_date32(found) and pa.types.is_timestamp(expected) and expected.tz is None)
        or (
            pa.types.is_decimal(found)
            and pa.types.is_decimal(expected)
            and found.scale == expected.scale
            and found.precision <= expected.precision
        )
    )


def _validity(column: pa.Array) -> Mask | None:
    if column.null_count == 0:
        return None
    bitmap = column.buffers()[0]
    if bitmap is None:
        return np.zeros(len(column), dtype=np.bool_)
    return _unpack(bitmap, column.offset, len(column))


def _unpack(bitmap: pa.Buffer, offset: int, length: int) -> Mask:
    first = offset >> 3
    packed = np.frombuffer(bitmap, dtype=np.uint8)[first : (offset + length + 7) >> 3]
    bits = np.unpackbits(packed, bitorder="little")
    return bits[offset & 7 :][:length].view(np.bool_)


def _lanes(column: pa.Array, field_type: IcebergType) -> tuple[Lane, ...]:
    data = column.buffers()[1]
    offset, length = column.offset, len(column)
    match field_type:
        case DecimalType():
            words = np.frombuffer(data, np.int64, 2 * (offset + length)).reshape(-1, 2)[offset:]
            return tuple(words[:, i].copy() for i in range(_width(field_type) or 0))
        case FixedType(length=size):
            return _byte_lanes(data, offset, length, size)
    type_id = field_type.type_id  # type: ignore[union-attr]
    if type_id is TypeId.UUID:
        return _byte_lanes(data, offset, length, 16)
    if type_id is TypeId.BOOLEAN:
        return (_unpack(data, offset, length).view(np.int8),)
    # So many: a buffer may be longer, and that of no values of any size.
    stored = np.frombuffer(data, _STORED[type_id], offset + length)[offset:]
    if type_id in (TypeId.FLOAT, TypeId.DOUBLE):
        stored = _one_nan(stored)
    return (stored,)


def _one_nan(bits: Lane) -> Lane:
    floats = bits.view(np.float32 if bits.itemsize == 4 else np.float64)
    nan = np.isnan(floats)
    return (
        np.where(nan, np.full(1, np.nan, floats.dtype).view(bits.dtype), bits)
        if nan.any()
        else bits
    )


def _byte_lanes(data: pa.Buffer, offset: int, length: int, size: int) -> tuple[Lane, ...]:
    count = max(1, -(-size // 8))
    used = np.frombuffer(data, dtype=np.uint8)[offset * size : (offset + length) * size]
    padded = np.zeros((length, 8 * count), dtype=np.uint8)
    padded[:, :size] = used.reshape(length, size)
    words = padded.view(np.int64)
    return tuple(words[:, i].copy() for i in range(count))


def _all_valid(column: KeyColumn) -> Mask:
    if column.valid is not None:
        return column.valid
    length = len(column.text) if column.text is not None else len(column.lanes[0])
    return np.ones(length, dtype=np.bool_)


def _valid_at(column: KeyColumn, rows: Rows) -> Mask:
    return np.ones(len(rows), dtype=np.bool_) if column.valid is None else column.valid.take(rows)


def _concat_texts(texts: Sequence[pa.Array]) -> pa.Array:
    if sum(text.get_total_buffer_size() for text in texts) >= _ARROW_OFFSETS_END:
        texts = [text.cast(pa.large_binary()) for text in texts]
    return pa.concat_arrays(texts)


def _take_text(text: pa.Array, rows: Rows) -> pa.Array:
    return text.take(pa.array(rows))
