"""Reads what pyarrow does not expose, or does not check, from an ORC file's tail.

The tail is a protocol buffer (`FileTail` in orc_proto.proto); only a few of its fields are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from icebergds.display import counted
from icebergds.formats.orc.compression import Compression, CompressionKind
from icebergds.formats.orc.protobuf import fields_of, messages, numbers_of, read_varint

_POSTSCRIPT_OF_TAIL = 1
_FOOTER_OF_TAIL = 2
_COMPRESSION_OF_POSTSCRIPT = 2
_CHUNK_SIZE_OF_POSTSCRIPT = 3
_STRIPES_OF_FOOTER = 3
_TYPES_OF_FOOTER = 4
_STATISTICS_OF_FOOTER = 7
_ENCRYPTION_OF_FOOTER = 10
_CALENDAR_OF_FOOTER = 11
_HYBRID_CALENDAR = 1
_OFFSET_OF_STRIPE = 1
_INDEX_LENGTH_OF_STRIPE = 2
_DATA_LENGTH_OF_STRIPE = 3
_FOOTER_LENGTH_OF_STRIPE = 4
_ROWS_OF_STRIPE = 5
_KIND_OF_TYPE = 1
_SUBTYPES_OF_TYPE = 2
_PRECISION_OF_TYPE = 5
_SCALE_OF_TYPE = 6
_MAX_PRECISION = 38


class TypeKind(IntEnum):
    """The kinds of columns that are told apart, by their number in the file."""

    LONG = 4
    TIMESTAMP = 9
    TIMESTAMP_INSTANT = 18


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe: the offset of its first byte in the file, its rows, the bytes of its parts."""

    offset: int
    num_rows: int
    index_length: int
    data_length: int
    footer_length: int


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column; `children` are column ids, `message` is the type as it is stored."""

    kind: int
    children: tuple[int, ...]
    message: bytes


def stripes_of(tail: bytes) -> list[Stripe]:
    """The stripes of a file, in order, from its serialised tail.

    Raises:
        ValueError: the bytes are not a file tail.
    """
    stripes = []
    for footer in messages(tail, _FOOTER_OF_TAIL):
        for stripe in messages(footer, _STRIPES_OF_FOOTER):
            numbers = dict(fields_of(stripe))
            found = [numbers.get(number, 0) for number in _FIELDS_OF_STRIPE]
            if any(isinstance(value, bytes) for value in found):
                raise ValueError("the offset, length or row count of a stripe is not a number")
            stripes.append(Stripe(*(int(value) for value in found)))
    return stripes


def checked_stripes(tail: bytes, num_stripes: int, num_rows: int) -> list[Stripe]:
    """The stripes of a file, compared with the counts that its tail states.

    Raises:
        ValueError: the bytes are not a file tail, or the counts are others.
    """
    stripes = stripes_of(tail)
    rows = sum(stripe.num_rows for stripe in stripes)
    if (len(stripes), rows) != (num_stripes, num_rows):
        raise ValueError(
            f"it counts {counted(num_stripes, 'stripe')} with {counted(num_rows, 'row')}, but has "
            f"{counted(len(stripes), 'stripe')} with {counted(rows, 'row')}"
        )
    return stripes


_FIELDS_OF_STRIPE = (
    _OFFSET_OF_STRIPE,
    _ROWS_OF_STRIPE,
    _INDEX_LENGTH_OF_STRIPE,
    _DATA_LENGTH_OF_STRIPE,
    _FOOTER_LENGTH_OF_STRIPE,
)


def types_of(tail: bytes) -> list[ColumnType]:
    """The types of a file's columns by column id; the first is that of a row.

    Raises:
        ValueError: the bytes are not a file tail.
    """
    return [
        ColumnType(numbers_of(stored).get(_KIND_OF_TYPE, 0), _subtypes(stored), stored)
        for footer in messages(tail, _FOOTER_OF_TAIL)
        for stored in messages(footer, _TYPES_OF_FOOTER)
    ]


def statistics_of(tail: bytes) -> list[bytes]:
    """The stored statistics of a file's columns by column id; empty if there are none.

    Raises:
        ValueError: the bytes are not a file tail.
    """
    return [
        stored
        for footer in messages(tail, _FOOTER_OF_TAIL)
        for stored in messages(footer, _STATISTICS_OF_FOOTER)
    ]


def compression_of(tail: bytes) -> Compression:
    """How the streams of a file are compressed.

    Raises:
        ValueError: the bytes are not a file tail, or name an unknown compression.
    """
    for postscript in messages(tail, _POSTSCRIPT_OF_TAIL):
        numbers = numbers_of(postscript)
        kind = CompressionKind(numbers.get(_COMPRESSION_OF_POSTSCRIPT, 0))
        size = numbers.get(_CHUNK_SIZE_OF_POSTSCRIPT)
        return Compression(kind, size) if size else Compression(kind)
    raise ValueError("the file has no postscript")


def is_encrypted(tail: bytes) -> bool:
    """Whether columns of a file are encrypted; without their keys, ORC readers get masked values.

    Raises:
        ValueError: the bytes are not a file tail.
    """
    footers = messages(tail, _FOOTER_OF_TAIL)
    return any(number == _ENCRYPTION_OF_FOOTER for f in footers for number, _ in fields_of(f))


def has_hybrid_calendar(tail: bytes) -> bool:
    """Whether a file says that its dates before 1582-10-15 are Julian.

    Raises:
        ValueError: the bytes are not a file tail.
    """
    footers = messages(tail, _FOOTER_OF_TAIL)
    return any(numbers_of(f).get(_CALENDAR_OF_FOOTER) == _HYBRID_CALENDAR for f in footers)


def check_types(tail: bytes) -> None:
    """Rejects decimals with more digits than Arrow supports: reading them crashes the process.

    Raises:
        ValueError: the bytes are not a file tail, or declare such a type.
    """
    for footer in messages(tail, _FOOTER_OF_TAIL):
        for declared in messages(footer, _TYPES_OF_FOOTER):
            for number, value in fields_of(declared):
                if number in (_PRECISION_OF_TYPE, _SCALE_OF_TYPE) and (
                    isinstance(value, bytes) or value > _MAX_PRECISION
                ):
                    raise ValueError(
                        f"a decimal column has the precision or scale {value!r}, "
                        f"the maximum is {_MAX_PRECISION}"
                    )


def _subtypes(stored: bytes) -> tuple[int, ...]:
    found: list[int] = []
    for number, value in fields_of(stored):
        if number != _SUBTYPES_OF_TYPE:
            continue
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            column, at = read_varint(value, at)
            found.append(column)
    return tuple(found)
