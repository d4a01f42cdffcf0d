"""Copies single stripes of an ORC file to files in memory that declare timestamps as other types.

Arrow converts timestamps to nanoseconds, which overflow outside of the years 1677 to 2262. Copies
of the same streams under other types let Arrow decode the two parts of a timestamp instead: its
seconds, which are stored as those of a long are, and its nanoseconds, as times of one fixed second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from dataclasses import dataclass, replace

import pyarrow as pa

from icebergds.formats.orc.compression import Compression
from icebergds.formats.orc.protobuf import fields_of, message, messages, numbers_of
from icebergds.formats.orc.tail import ColumnType, Stripe, TypeKind, compression_of, types_of
from icebergds.formats.orc.writer_zones import is_utc

_MAGIC = b"ORC"
_DATA = 1
_DIRECT = 0
# Runs of zeros, and how many each holds: a run of the first version of the run-length encoding, and
# one of the second version's deltas.
_ZEROS_V1 = (bytes([127, 0, 0]), 130)
_ZEROS_V2 = (bytes([0xC1, 0xFF, 0, 0]), 512)

TIMESTAMPS = frozenset({TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_INSTANT})


@dataclass(frozen=True, slots=True)
class _Stream:
    kind: int
    column: int
    content: bytes


@dataclass(frozen=True, slots=True)
class StripeCopy:
    """The streams of some columns of a stripe.

    `writer_zone` is the time zone of its local times, empty if the file does not tell.
    """

    num_rows: int
    writer_zone: str
    _types: tuple[ColumnType, ...]
    _compression: Compression
    _encodings: tuple[bytes, ...]
    _streams: tuple[_Stream, ...]

    def of_seconds(self) -> bytes:
        """An ORC file in which each timestamp is a long: its seconds since the stripe's epoch."""
        return self._file(self._streams, TypeKind.LONG)

    def of_nanoseconds(self, counts: Mapping[int, int]) -> bytes:
        """An ORC file in which each timestamp is its nanoseconds after 2015-01-01 in UTC.

        Args:
            counts: how many values that are not null each column of timestamps has, by column id.
        """
        streams = (
            replace(stream, content=self._compression.frame(self._zeros(stream.column, counts)))
            if stream.kind == _DATA and self._types[stream.column].kind in TIMESTAMPS
            else stream
            for stream in self._streams
        )
        return self._file(streams, TypeKind.TIMESTAMP_INSTANT)

    def _zeros(self, column: int, counts: Mapping[int, int]) -> bytes:
        encoding = numbers_of(self._encodings[column]).get(1, _DIRECT)
        run, length = _ZEROS_V1 if encoding == _DIRECT else _ZEROS_V2
        return run * -(-counts.get(column, 0) // length)

    def _file(self, streams: Iterable[_Stream], kind: TypeKind) -> bytes:
        """A file of one stripe whose timestamps are declared as another kind."""
        stored = list(streams)
        data = b"".join(stream.content for stream in stored)
        stripe_footer = self._compression.frame(
            message(
                *((1, message((1, s.kind), (2, s.column), (3, len(s.content)))) for s in stored),
                *((2, encoding) for encoding in self._encodings),
                (3, b"UTC"),
            )
        )
        stripe = message(
            (1, len(_MAGIC)), (3, len(data)), (4, len(stripe_footer)), (5, self.num_rows)
        )
        body = _MAGIC + data + stripe_footer
        footer = self._compression.frame(
            message(
                (1, len(_MAGIC)),
                (2, len(body)),
                (3, stripe),
                *((4, _declared(column, kind)) for column in self._types),
                (6, self.num_rows),
            )
        )
        postscript = message(
            (1, len(footer)),
            (2, self._compression.kind),
            (3, self._compression.chunk_size),
            (4, bytes([0, 12])),
            (8000, _MAGIC),
        )
        return body + footer + postscript + bytes([len(postscript)])


def copy_stripe(
    handle: pa.NativeFile, tail: bytes, stripe: Stripe, columns: AbstractSet[int]
) -> StripeCopy:
    """Reads a stripe's streams of some columns.

    Args:
        handle: the open file.
        tail: its serialised tail.
        columns: the ids of the columns, which contain those of the columns they lie in.

    Raises:
        NotImplementedError: the file's compression is not supported.
        ValueError, OSError, pa.ArrowException, zlib.error: the file is damaged.
    """
    footer = _footer_of(handle, tail, stripe)
    types = tuple(types_of(tail))
    encodings = tuple(messages(footer, 2))
    if len(encodings) != len(types):
        raise ValueError(f"a stripe has {len(encodings)} encodings for {len(types)} columns")
    streams = tuple(
        _Stream(kind, column, _read(handle, offset, length))
        for kind, column, offset, length in _places(footer, stripe)
        if column in columns and offset >= stripe.offset + stripe.index_length
    )
    zone = _zone_of(footer)
    return StripeCopy(stripe.num_rows, zone, types, compression_of(tail), encodings, streams)


def is_in_utc(handle: pa.NativeFile, tail: bytes, stripe: Stripe) -> bool:
    """Whether a stripe stores local times as if they were in UTC, rather than its writer's zone.

    Raises: as `copy_stripe`.
    """
    return is_utc(_zone_of(_footer_of(handle, tail, stripe)))


def _footer_of(handle: pa.NativeFile, tail: bytes, stripe: Stripe) -> bytes:
    end = stripe.offset + stripe.index_length + stripe.data_length
    return compression_of(tail).decompress(_read(handle, end, stripe.footer_length))


def _zone_of(stripe_footer: bytes) -> str:
    zone = next((value for number, value in fields_of(stripe_footer) if number == 3), b"")
    if isinstance(zone, int):
        raise ValueError("the time zone of a stripe is not a text")
    return zone.decode()


def _places(stripe_footer: bytes, stripe: Stripe) -> Iterator[tuple[int, int, int, int]]:
    """The kind, column, offset in the file and length of each stream; they follow one another."""
    offset = stripe.offset
    for stream in messages(stripe_footer, 1):
        numbers = numbers_of(stream)
        length = numbers.get(3, 0)
        yield numbers.get(1, 0), numbers.get(2, 0), offset, length
        offset += length


def _read(handle: pa.NativeFile, offset: int, length: int) -> bytes:
    if offset + length > handle.size():
        raise ValueError("a stripe is cut off")
    handle.seek(offset)
    return bytes(handle.read(length))


def _declared(column: ColumnType, kind: TypeKind) -> bytes:
    if column.kind not in TIMESTAMPS:
        return column.message
    others = (field for field in fields_of(column.message) if field[0] != 1)
    return message((1, kind), *others)
