"""Reads what pyarrow does not expose, or does not check, from an ORC file's tail.

The tail is a protocol buffer (`FileTail` in orc_proto.proto); only a few of its fields are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_FOOTER_OF_TAIL = 2
_STRIPES_OF_FOOTER = 3
_TYPES_OF_FOOTER = 4
_ENCRYPTION_OF_FOOTER = 10
_OFFSET_OF_STRIPE = 1
_ROWS_OF_STRIPE = 5
_PRECISION_OF_TYPE = 5
_SCALE_OF_TYPE = 6
_MAX_PRECISION = 38


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe: the offset of its first byte in the file, and its number of rows."""

    offset: int
    num_rows: int


def stripes_of(tail: bytes) -> list[Stripe]:
    """The stripes of a file, in order, from its serialised tail.

    Raises:
        ValueError: the bytes are not a file tail.
    """
    stripes = []
    for footer in _messages(tail, _FOOTER_OF_TAIL):
        for stripe in _messages(footer, _STRIPES_OF_FOOTER):
            numbers = dict(_fields(stripe))
            offset, num_rows = numbers.get(_OFFSET_OF_STRIPE, 0), numbers.get(_ROWS_OF_STRIPE, 0)
            if isinstance(offset, bytes) or isinstance(num_rows, bytes):
                raise ValueError("the offset or row count of a stripe is not a number")
            stripes.append(Stripe(offset, num_rows))
    return stripes


def is_encrypted(tail: bytes) -> bool:
    """Whether columns of a file are encrypted; without their keys, ORC readers get masked values.

    Raises:
        ValueError: the bytes are not a file tail.
    """
    footers = _messages(tail, _FOOTER_OF_TAIL)
    return any(number == _ENCRYPTION_OF_FOOTER for f in footers for number, _ in _fields(f))


def check_types(tail: bytes) -> None:
    """Rejects decimals with more digits than Arrow supports: reading them crashes the process.

    Raises:
        ValueError: the bytes are not a file tail, or declare such a type.
    """
    for footer in _messages(tail, _FOOTER_OF_TAIL):
        for declared in _messages(footer, _TYPES_OF_FOOTER):
            for number, value in _fields(declared):
                if number in (_PRECISION_OF_TYPE, _SCALE_OF_TYPE) and (
                    isinstance(value, bytes) or value > _MAX_PRECISION
                ):
                    raise ValueError(
                        f"a decimal column has the precision or scale {value!r}, "
                        f"the maximum is {_MAX_PRECISION}"
                    )


def _messages(data: bytes, wanted: int) -> Iterator[bytes]:
    for number, value in _fields(data):
        if number == wanted and isinstance(value, bytes):
            yield value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers and values of a message's fields: integers, or bytes for all other types."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire_type = key >> 3, key & 7
        match wire_type:
            case 0:
                value, at = _varint(data, at)
                yield number, value
            case 1 | 5:
                width = 8 if wire_type == 1 else 4
                yield number, data[at : at + width]
                at += width
            case 2:
                length, at = _varint(data, at)
                yield number, data[at : at + length]
                at += length
            case _:
                raise ValueError(f"field {number} has the unknown wire type {wire_type}")
    if at > len(data):
        raise ValueError("the last field is cut off")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned variable-length integer and the offset after it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("an integer is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
