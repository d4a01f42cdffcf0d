"""Drops row groups of a Parquet file in whose Bloom filters no value of a filter is.

Parquet has one kind of Bloom filter: blocks of 32 bytes, of which a value's hash (XXH64 of its
plain encoding) chooses one, and one bit in each of the block's eight words.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.expr.bounds import decode_bounds
from icebergds.expr.metrics import might_match
from icebergds.expr.nodes import BoundPredicate, Expr, Operation, evaluate
from icebergds.formats.parquet import thrift
from icebergds.formats.parquet.row_group_metrics import (
    FilterColumn,
    RowGroupMetrics,
    ticks_of,
)
from icebergds.formats.parquet.thrift import value_of
from icebergds.io.ranged_file import PrefetchingFile, Range
from icebergds.spec.types import TypeId
from icebergds.spec.values.decimals import unscaled

# Reading fewer bytes takes less time than asking the filters.
_MIN_BYTES = 256 * 1024
# Of more values, filters of the usual size are likely to take one for another.
_MOST_VALUES = 32
# A header has 4 fields, of which one is a number.
_HEADER_BYTES = 64
# Of remote files, smaller filters are read by one request.
_WHOLE = 1024 * 1024
_BLOCK_BYTES = 32
_SALTS = (
    *(0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D),
    *(0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31),
)

_Encoder = Callable[[Any], bytes | None]
"""The plain encoding of a value; None if no file of the column's type can have the value."""


class BloomFilters:
    """The Bloom filters of an open file.

    Args:
        columns: the file's columns that the filter references.
    """

    def __init__(
        self,
        handle: pa.NativeFile,
        metadata: pq.FileMetaData,
        row_filter: Expr,
        columns: Sequence[FilterColumn],
    ) -> None:
        self._handle, self._row_filter = handle, row_filter
        self._columns = {column.field_id: column for column in columns}
        schema = metadata.schema
        self._encoders = {
            column.field_id: encoder
            for column in columns
            if (encoder := _encoder(column, schema.column(column.leaf))) is not None
        }
        self._hashes: dict[tuple[int, Any], int | None] = {}

    def might_match(
        self, group: pq.RowGroupMetaData, metrics: RowGroupMetrics, nbytes: int
    ) -> bool:
        """Whether a row group may have a row that matches the filter; False only if proven.

        Args:
            metrics: of the row group.
            nbytes: how much is read of it if it may.
        """
        if nbytes < _MIN_BYTES:
            return True
        found: dict[int, _BloomFilter] = {}
        for field_id in self._encoders:
            chunk = group.column(self._columns[field_id].leaf)
            # Older versions of Arrow do not say it.
            offset = getattr(chunk, "bloom_filter_offset", None)
            if offset is not None:
                length = chunk.bloom_filter_length
                found[field_id] = _BloomFilter(self._handle, offset, length)
        if not found:
            return True

        def might(predicate: BoundPredicate) -> bool:
            if not might_match(predicate, metrics):
                return False
            stored = found.get(predicate.field_id)
            if stored is None or predicate.op not in (Operation.EQ, Operation.IN):
                return True
            return self._has_any(stored, predicate, metrics)

        try:
            return evaluate(self._row_filter, might)
        except Exception:
            # A damaged filter only means that nothing is skipped. If storage fails, reading the row
            # group raises.
            return True

    def _has_any(
        self, stored: _BloomFilter, predicate: BoundPredicate, metrics: RowGroupMetrics
    ) -> bool:
        field_id, values = predicate.field_id, predicate.values
        bounds = decode_bounds(
            predicate.field_type,
            metrics.lower_bounds.get(field_id),
            metrics.upper_bounds.get(field_id),
            True,
        )
        first = 0 if bounds.lower is None else bisect_left(values, bounds.lower)
        last = len(values) if bounds.upper is None else bisect_right(values, bounds.upper)
        if last - first > _MOST_VALUES:
            return True
        hashes = (self._hash(field_id, value) for value in values[first:last])
        return stored.has_any([each for each in hashes if each is not None])

    def _hash(self, field_id: int, value: Any) -> int | None:
        key = field_id, value
        if key not in self._hashes:
            encoded = self._encoders[field_id](value)
            self._hashes[key] = None if encoded is None else xxh64(encoded)
        return self._hashes[key]


@dataclass(frozen=True, slots=True)
class _BloomFilter:
    """A Bloom filter in a file, of which only the blocks are read that are asked for.

    Attributes:
        length: with its header; None if the footer does not say it.
    """

    handle: pa.NativeFile
    offset: int
    length: int | None

    def has_any(self, hashes: Sequence[int]) -> bool:
        """Whether one of some values may be in it, by their hashes.

        Raises:
            ThriftError: the filter is damaged, or of another kind.
        """
        whole = None if self.length is None or self.length > _WHOLE else self.length
        if whole is not None:
            self._prefetch([(self.offset, self.offset + whole)])
        start, num_blocks = self._blocks()
        at = [start + _BLOCK_BYTES * ((each >> 32) * num_blocks >> 32) for each in hashes]
        if whole is None:
            self._prefetch([(offset, offset + _BLOCK_BYTES) for offset in at])
        return any(
            _is_in(self._read(offset, _BLOCK_BYTES), each)
            for offset, each in zip(at, hashes, strict=True)
        )

    def _blocks(self) -> tuple[int, int]:
        """Where the blocks begin, and how many there are."""
        header, size = thrift.decode_struct(self._read(self.offset, _HEADER_BYTES))
        num_bytes = value_of(header, 1, thrift.I32)
        # The only algorithm, hash and compression that there are.
        kinds = [set(value_of(header, at, thrift.STRUCT)) for at in (2, 3, 4)]
        is_right = num_bytes > 0 and num_bytes % _BLOCK_BYTES == 0 and kinds == [{1}] * 3
        if not is_right or self.length not in (None, size + num_bytes):
            raise thrift.ThriftError(f"a Bloom filter of {num_bytes} bytes is of another kind")
        return self.offset + size, num_bytes // _BLOCK_BYTES

    def _prefetch(self, ranges: Sequence[Range]) -> None:
        if isinstance(self.handle, PrefetchingFile):
            self.handle.prefetch(ranges)

    def _read(self, offset: int, length: int) -> bytes:
        data = bytes(self.handle.read_at(length, offset))
        if len(data) < length:
            # Bits that are not there would say that no value is.
            raise thrift.ThriftError("a Bloom filter ends beyond its file")
        return data


def _is_in(block: bytes, hashed: int) -> bool:
    low = hashed & 0xFFFFFFFF
    words = (int.from_bytes(block[at : at + 4], "little") for at in range(0, _BLOCK_BYTES, 4))
    return all(
        word >> ((low * salt & 0xFFFFFFFF) >> 27) & 1
        for word, salt in zip(words, _SALTS, strict=True)
    )


def _encoder(column: FilterColumn, stored: pq.ColumnSchema) -> _Encoder | None:
    """How a file stores the values of a column; None if several stored values read as one."""
    wanted, annotation = column.field_type.type_id, column.logical_type
    physical, logical = stored.physical_type, annotation["Type"]
    width = {"INT32": 4, "INT64": 8}.get(physical, 0)
    match wanted:
        case TypeId.INT | TypeId.LONG if width and logical in ("None", "Int"):
            is_signed = annotation.get("isSigned", True)
            return _fixed(width) if is_signed else None
        case TypeId.DATE if physical == "INT32" and logical == "Date":
            return _fixed(width)
        case TypeId.STRING if physical == "BYTE_ARRAY":
            return str.encode
        case TypeId.BINARY if physical == "BYTE_ARRAY":
            return bytes
        case TypeId.UUID | TypeId.FIXED if physical == "FIXED_LEN_BYTE_ARRAY":
            return bytes
        case TypeId.DECIMAL if logical == "Decimal":
            return _decimal(annotation, width, stored)
    ticks = ticks_of(column) if physical == "INT64" else None
    if ticks is None:
        return None
    encode = _fixed(width)

    def encode_time(value: int) -> bytes | None:
        tick, between = divmod(value * ticks[0], ticks[1])
        return None if between else encode(tick)

    return encode_time


def _fixed(width: int) -> _Encoder:
    def encode(value: int) -> bytes | None:
        limit = 1 << (8 * width - 1)
        return value.to_bytes(width, "little", signed=True) if -limit <= value < limit else None

    return encode


def _decimal(annotation: Mapping[str, Any], width: int, stored: pq.ColumnSchema) -> _Encoder | None:
    scale = annotation["scale"]
    number = _fixed(width)

    def encode(value: Decimal) -> bytes | None:
        value_in_file = unscaled(value, scale)
        if width:
            return number(value_in_file)
        limit = 1 << (8 * stored.length - 1)
        fits = -limit <= value_in_file < limit
        return value_in_file.to_bytes(stored.length, "big", signed=True) if fits else None

    # Byte arrays may have the same number in several lengths.
    return encode if width or stored.physical_type == "FIXED_LEN_BYTE_ARRAY" else None


_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_ALL = 2**64 - 1


def xxh64(data: bytes) -> int:
    """The hash XXH64 with seed 0 (https://github.com/Cyan4973/xxHash, its specification)."""
    at, size = 0, len(data)
    if size >= 32:
        lanes = [(_P1 + _P2) & _ALL, _P2, 0, -_P1 & _ALL]
        while at + 32 <= size:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], _word(data, at + 8 * lane, 8))
            at += 32
        mixed = sum(_rotated(v, by) for v, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _ALL
        for lane in lanes:
            mixed = ((mixed ^ _round(0, lane)) * _P1 + _P4) & _ALL
    else:
        mixed = _P5
    mixed = (mixed + size) & _ALL
    while at + 8 <= size:
        mixed ^= _round(0, _word(data, at, 8))
        mixed = (_rotated(mixed, 27) * _P1 + _P4) & _ALL
        at += 8
    if at + 4 <= size:
        mixed ^= _word(data, at, 4) * _P1 & _ALL
        mixed = (_rotated(mixed, 23) * _P2 + _P3) & _ALL
        at += 4
    for byte in data[at:]:
        mixed = _rotated(mixed ^ byte * _P5 & _ALL, 11) * _P1 & _ALL
    mixed = (mixed ^ mixed >> 33) * _P2 & _ALL
    mixed = (mixed ^ mixed >> 29) * _P3 & _ALL
    return mixed ^ mixed >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _ALL, 31) * _P1 & _ALL


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _ALL


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
