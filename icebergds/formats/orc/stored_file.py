"""Describes an existing ORC file by its tail."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.errors import decoding
from icebergds.formats.data_file.bounds import Range
from icebergds.formats.data_file.column_metrics import MeasuredColumn
from icebergds.formats.data_file.encryption import encrypted
from icebergds.formats.data_file.file_schema import FileColumn, has_ids, walk_columns, with_ids
from icebergds.formats.data_file.stored_file import (
    ColumnStatistics,
    StoredFile,
    columns_with_statistics,
)
from icebergds.formats.orc.protobuf import fields_of
from icebergds.formats.orc.reader import file_columns
from icebergds.formats.orc.tail import (
    checked_stripes,
    has_hybrid_calendar,
    is_encrypted,
    statistics_of,
)
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.types import TypeId
from icebergds.spec.values.dates import FIRST_GREGORIAN_DAY


def stored_orc(
    handle: pa.NativeFile, location: str, schema: Schema, name_mapping: NameMapping
) -> StoredFile:
    """Describes an open file, whose columns have their names' ids if it has none.

    Raises:
        CorruptFileError: the file is damaged or not an ORC file.
        UnsupportedFeatureError: the file is encrypted.
    """
    with decoding(location, "ORC"):
        file = orc.ORCFile(handle)
        tail = file.reader.serialized_file_tail()
        if is_encrypted(tail):
            raise encrypted(location)
        found = file_columns(file, tail, location)
    columns = with_ids(found, schema, name_mapping)
    is_hybrid = not has_ids(found) and has_hybrid_calendar(tail)
    try:
        statistics = file_statistics(
            tail,
            columns,
            columns_with_statistics(columns, schema),
            file.nrows,
            is_hybrid=is_hybrid,
        )
        offsets = tuple(s.offset for s in checked_stripes(tail, file.nstripes, file.nrows))
    except ValueError as error:
        raise CorruptFileError(f"{location}: the file's tail is damaged: {error}") from error
    return StoredFile(
        columns,
        has_ids(found),
        file.nrows,
        handle.size(),
        offsets,
        statistics,
        unzoned=frozenset(),
        hybrid=_old_days(columns) if is_hybrid else {},
    )


def _old_days(columns: Sequence[FileColumn]) -> dict[int, int]:
    return {
        column.field_id: FIRST_GREGORIAN_DAY
        for column in walk_columns(columns)
        if column.field_id is not None
        and (pa.types.is_date(column.arrow_type) or pa.types.is_timestamp(column.arrow_type))
    }


# ColumnStatistics: numberOfValues, and one message for each kind of type.
_VALUES = 1
_INTEGERS = 2
_DOUBLES = 3
_STRINGS = 4
_DECIMALS = 6
_DATES = 7
_TIMESTAMPS = 9
# Of those messages: the least and the greatest value.
_LEAST, _GREATEST = 1, 2
# StringStatistics: bounds of long values; TimestampStatistics: milliseconds in UTC.
_LOWER, _UPPER = 4, 5
_LEAST_UTC, _GREATEST_UTC = 3, 4
_DOUBLE = struct.Struct("<d")
_MILLIS_PER_DAY = 86_400_000


def file_statistics(
    tail: bytes,
    columns: Sequence[FileColumn],
    measured: Iterable[tuple[MeasuredColumn, FileColumn]],
    num_rows: int,
    *,
    is_hybrid: bool,
) -> ColumnStatistics:
    """What a file's tail says of columns.

    Args:
        columns: all columns of the file.
        measured: scalar columns outside of lists and maps.
        is_hybrid: whether early dates are Julian.

    Raises:
        ValueError: the bytes are not a file tail.
    """
    stored, ids, out = statistics_of(tail), _column_ids(columns), ColumnStatistics()
    for column, found in measured:
        at = ids[found.leaves.start]
        if at >= len(stored):
            continue
        parts = dict(fields_of(stored[at]))
        count = parts.get(_VALUES)
        if not isinstance(count, int) or count > num_rows:
            continue
        out.value_counts[column.field_id] = num_rows
        out.null_counts[column.field_id] = num_rows - count
        values = _range(column.field_type.type_id, parts, is_hybrid) if column.has_bounds else None
        if values is not None:
            out.ranges[column.field_id] = values
    return out


def _column_ids(columns: Sequence[FileColumn]) -> dict[int, int]:
    """ORC's ids of leaf columns by their ordinals; it counts all columns, and the row is 0."""
    ids: dict[int, int] = {}
    following = 1

    def visit(column: FileColumn) -> None:
        nonlocal following
        if not column.children:
            ids[column.leaves.start] = following
        following += 1
        for child in column.children:
            visit(child)

    for column in columns:
        visit(column)
    return ids


def _range(kind: TypeId, parts: Mapping[int, int | bytes], is_hybrid: bool) -> Range | None:
    match kind:
        case TypeId.INT | TypeId.LONG:
            found = _fields(parts.get(_INTEGERS))
            return _of(*(_signed(found.get(at)) for at in (_LEAST, _GREATEST)))
        case TypeId.FLOAT | TypeId.DOUBLE:
            found = _fields(parts.get(_DOUBLES))
            return _of(*(_double(found.get(at)) for at in (_LEAST, _GREATEST)))
        case TypeId.STRING:
            found = _fields(parts.get(_STRINGS))
            least, greatest = found.get(_LEAST, found.get(_LOWER)), found.get(_GREATEST)
            return _of(_text(least), _text(found.get(_UPPER) if greatest is None else greatest))
        case TypeId.DECIMAL:
            found = _fields(parts.get(_DECIMALS))
            return _of(*(_decimal(found.get(at)) for at in (_LEAST, _GREATEST)))
        case TypeId.DATE:
            found = _fields(parts.get(_DATES))
            days = _of(*(_signed(found.get(at)) for at in (_LEAST, _GREATEST)))
            early = days is not None and days.least < FIRST_GREGORIAN_DAY
            return None if is_hybrid and early else days
        case TypeId.TIMESTAMP | TypeId.TIMESTAMPTZ:
            return _micros(_fields(parts.get(_TIMESTAMPS)), is_hybrid)
        case _:
            return None


def _micros(found: Mapping[int, int | bytes], is_hybrid: bool) -> Range | None:
    """Times are stored in milliseconds, which writers have rounded."""
    millis = _of(*(_signed(found.get(at)) for at in (_LEAST_UTC, _GREATEST_UTC)))
    if millis is None or (is_hybrid and millis.least < FIRST_GREGORIAN_DAY * _MILLIS_PER_DAY):
        return None
    # Before 1970, writers round up as well as down.
    least = millis.least - 1 if millis.least <= 0 else millis.least
    return Range(least * 1000, millis.greatest * 1000 + 999)


def _fields(message: int | bytes | None) -> dict[int, int | bytes]:
    return dict(fields_of(message)) if isinstance(message, bytes) else {}


def _of(least: Any, greatest: Any) -> Range | None:
    return None if least is None or greatest is None else Range(least, greatest)


def _signed(value: int | bytes | None) -> int | None:
    """A number of the types sint32 and sint64."""
    return (value >> 1) ^ -(value & 1) if isinstance(value, int) else None


def _double(value: int | bytes | None) -> float | None:
    """A number; None for NaN, which hides the range of the other values."""
    if not isinstance(value, bytes) or len(value) != _DOUBLE.size:
        return None
    number: float = _DOUBLE.unpack(value)[0]
    return None if math.isnan(number) else number


def _text(value: int | bytes | None) -> str | None:
    try:
        return value.decode() if isinstance(value, bytes) else None
    except UnicodeDecodeError:
        return None


def _decimal(value: int | bytes | None) -> Decimal | None:
    text = _text(value)
    try:
        return None if text is None else Decimal(text)
    except InvalidOperation:
        return None
