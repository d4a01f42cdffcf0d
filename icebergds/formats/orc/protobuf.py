"""Reads and writes fields of protocol buffer messages."""

from __future__ import annotations

from collections.abc import Iterator


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers and values of a message's fields: integers, or bytes for all other types.

    Raises:
        ValueError: the bytes are not a message.
    """
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire_type = key >> 3, key & 7
        match wire_type:
            case 0:
                value, at = read_varint(data, at)
                yield number, value
            case 1 | 5:
                width = 8 if wire_type == 1 else 4
                yield number, data[at : at + width]
                at += width
            case 2:
                length, at = read_varint(data, at)
                yield number, data[at : at + length]
                at += length
            case _:
                raise ValueError(f"field {number} has the unknown wire type {wire_type}")
    if at > len(data):
        raise ValueError("the last field is cut off")


def messages(data: bytes, wanted: int) -> Iterator[bytes]:
    """The values of all fields of a message with one number.

    Raises:
        ValueError: the bytes are not a message.
    """
    for number, value in fields_of(data):
        if number == wanted and isinstance(value, bytes):
            yield value


def numbers_of(data: bytes) -> dict[int, int]:
    """The integer fields of a message, the last of each number.

    Raises:
        ValueError: the bytes are not a message.
    """
    return {number: value for number, value in fields_of(data) if isinstance(value, int)}


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """The message of some fields: integers, or bytes for strings and messages."""
    return b"".join(_field(number, value) for number, value in fields)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned variable-length integer and the offset after it.

    Raises:
        ValueError: the integer is cut off, or too long.
    """
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


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
