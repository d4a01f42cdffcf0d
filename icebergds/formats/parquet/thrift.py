"""Decodes and encodes Thrift's compact protocol: Parquet footers, page headers, page indexes.

Structs are decoded without a schema and encoded again with every field they had.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)

Struct = dict[int, tuple[int, Any]]
"""Type and value by field id; values are bool, int, float, bytes, `Sequence`, `Mapping`, `Struct`.
"""

_MAX_DEPTH = 32
_SHORT_LIST = 15


class Sequence(NamedTuple):
    """A list or set."""

    element_type: int
    values: list[Any]


class Mapping(NamedTuple):
    """A map, as pairs in the order they were written."""

    key_type: int
    value_type: int
    pairs: list[tuple[Any, Any]]


class ThriftError(ValueError):
    """Bytes that are not valid in the compact protocol."""


def decode_struct(data: bytes, start: int = 0) -> tuple[Struct, int]:
    """Decodes the struct at `start`; also returns the offset after it.

    Raises:
        ThriftError: the bytes end early, or are not a struct.
    """
    decoder = _Decoder(data, start)
    try:
        return decoder.struct(0), decoder.at
    except (IndexError, struct.error) as error:
        raise ThriftError(
            f"the struct at byte {start} ends beyond the {len(data)} bytes there are"
        ) from error


def encode_struct(fields: Struct) -> bytes:
    """Encodes a struct."""
    out = bytearray()
    _put_struct(out, fields)
    return bytes(out)


def value_of(fields: Struct, field_id: int, wanted: int) -> Any:
    """The value of a required field of a type.

    Raises:
        ThriftError: the field is missing or of another type.
    """
    kind, value = fields.get(field_id, (None, None))
    if kind != wanted:
        raise ThriftError(f"field {field_id} should be of type {wanted}, but is of type {kind}")
    return value


def values_of(fields: Struct, field_id: int, wanted: int) -> list[Any]:
    """The elements of a required list of a type; an empty list may be of any type.

    Raises:
        ThriftError: the list is missing or of another type.
    """
    found: Sequence = value_of(fields, field_id, LIST)
    # Elements of either boolean type stand for both values.
    is_right = found.element_type == wanted or {found.element_type, wanted} == {TRUE, FALSE}
    if found.values and not is_right:
        raise ThriftError(f"elements of field {field_id} are of type {found.element_type}")
    return found.values


class _Decoder:
    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def struct(self, depth: int) -> Struct:
        if depth > _MAX_DEPTH:
            raise ThriftError("structs are nested too deeply")
        data = self._data
        fields: Struct = {}
        field_id = 0
        while True:
            head = data[self.at]
            self.at += 1
            if not head:
                return fields
            kind = head & 15
            field_id = field_id + (head >> 4) if head >> 4 else self._integer()
            if kind in (TRUE, FALSE):
                fields[field_id] = (kind, kind == TRUE)
            else:
                fields[field_id] = (kind, self._value(kind, depth))

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 4 | 5 | 6:
                return self._integer()
            case 8:
                return self._bytes(self._unsigned())
            case 12:
                return self.struct(depth + 1)
            case 9 | 10:
                return self._sequence(depth)
            case 1 | 2:
                return self._bytes(1) == b"\x01"
            case 3:
                return int.from_bytes(self._bytes(1), signed=True)
            case 7:
                return struct.unpack("<d", self._bytes(8))[0]
            case 11:
                return self._mapping(depth)
            case 13:
                return self._bytes(16)
            case _:
                raise ThriftError(f"type {kind} does not exist")

    def _sequence(self, depth: int) -> Sequence:
        head = self._data[self.at]
        self.at += 1
        kind, size = head & 15, head >> 4
        if size == _SHORT_LIST:
            size = self._unsigned()
        self._check_size(size)
        return Sequence(kind, [self._value(kind, depth) for _ in range(size)])

    def _mapping(self, depth: int) -> Mapping:
        size = self._unsigned()
        if not size:
            return Mapping(0, 0, [])
        self._check_size(size)
        kinds = self._bytes(1)[0]
        key, value = kinds >> 4, kinds & 15
        pairs = [(self._value(key, depth), self._value(value, depth)) for _ in range(size)]
        return Mapping(key, value, pairs)

    def _check_size(self, size: int) -> None:
        # Elements take a byte or more.
        if size > len(self._data) - self.at:
            raise ThriftError(f"{size} elements do not fit into the remaining bytes")

    def _bytes(self, size: int) -> bytes:
        start = self.at
        self.at += size
        if self.at > len(self._data):
            raise ThriftError(f"{size} bytes at {start} end beyond the {len(self._data)} there are")
        return self._data[start : self.at]

    def _unsigned(self) -> int:
        data, at = self._data, self.at
        byte = data[at]
        at += 1
        number = byte & 127
        shift = 7
        while byte > 127:
            if shift > 63:
                raise ThriftError("an integer is longer than 64 bits")
            byte = data[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
        self.at = at
        return number

    def _integer(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)


def _put_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for field_id in sorted(fields):
        kind, value = fields[field_id]
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        step = field_id - last
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _put_integer(out, field_id)
        last = field_id
        if kind not in (TRUE, FALSE):
            _put(out, kind, value)
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:
    match kind:
        case 1 | 2:
            out.append(TRUE if value else FALSE)
        case 3:
            out += value.to_bytes(1, signed=True)
        case 4 | 5 | 6:
            _put_integer(out, value)
        case 7:
            out += struct.pack("<d", value)
        case 8:
            _put_unsigned(out, len(value))
            out += value
        case 9 | 10:
            size = len(value.values)
            out.append(min(size, _SHORT_LIST) << 4 | value.element_type)
            if size >= _SHORT_LIST:
                _put_unsigned(out, size)
            for element in value.values:
                _put(out, value.element_type, element)
        case 11:
            _put_unsigned(out, len(value.pairs))
            if value.pairs:
                out.append(value.key_type << 4 | value.value_type)
            for key, item in value.pairs:
                _put(out, value.key_type, key)
                _put(out, value.value_type, item)
        case 12:
            _put_struct(out, value)
        case 13:
            out += value
        case _:
            raise ThriftError(f"type {kind} does not exist")


def _put_integer(out: bytearray, number: int) -> None:
    _put_unsigned(out, number << 1 if number >= 0 else (-number << 1) - 1)


def _put_unsigned(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
