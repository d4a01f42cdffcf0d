"""Parses Avro containers: header, blocks, codecs (Avro 1.12: Object Container Files).

The records inside the blocks are decoded elsewhere. Errors name the file.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.formats.arrow.decompress import MAX_BLOCK_BYTES, TooLargeError, decompress_stream
from icebergds.formats.data_file.encryption import ENCRYPTED_MAGIC, encrypted

_deflate: Any = zlib
with suppress(ImportError):
    # The same in less than half the time.
    from isal import isal_zlib as _deflate

_DECOMPRESSION_ERRORS: tuple[type[Exception], ...] = (
    _deflate.error,
    lzma.LZMAError,
    ValueError,
    OSError,
    EOFError,
    pa.ArrowException,
)
"""What `decompress` raises for damaged blocks, and for those that are too large."""


def decompress(codec: str, stored: memoryview, limit: int) -> bytes | memoryview | None:
    """The decompressed bytes of a block; None for an unknown codec.

    Args:
        codec: the name in the file's header.
        limit: greatest number of bytes; a stored block without compression is not limited.
    """
    match codec:
        case "null":
            return stored
        case "deflate":
            return _inflate(stored, limit)
        case "snappy":
            return _decompress_snappy(stored, limit)
        case "zstandard":
            return decompress_stream("zstd", stored, limit)
        case "bzip2":
            return _decompress_streams(bz2.BZ2Decompressor, stored, limit)
        case "xz":
            return _decompress_streams(lzma.LZMADecompressor, stored, limit)
        case _:
            return None


def _inflate(stored: memoryview, limit: int) -> bytes:
    stream = _deflate.decompressobj(-zlib.MAX_WBITS)
    plain: bytes = stream.decompress(stored, limit + 1)
    if len(plain) > limit:
        raise TooLargeError(limit)
    if not stream.eof:
        raise EOFError("the compressed data ends early")
    return plain


def _decompress_streams(
    new_stream: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor],
    stored: memoryview,
    limit: int,
) -> bytes:
    """Decompresses one stream or several, as `bz2.decompress` and `lzma.decompress` do."""
    parts: list[bytes] = []
    left, rest = limit + 1, bytes(stored)
    while rest or not parts:
        stream = new_stream()
        try:
            parts.append(stream.decompress(rest, left))
        except (OSError, lzma.LZMAError):
            if not parts:
                raise
            # What follows the streams is not one.
            break
        left -= len(parts[-1])
        if not left:
            raise TooLargeError(limit)
        if not stream.eof:
            raise EOFError("the compressed data ends early")
        rest = stream.unused_data
    return b"".join(parts)


def _decompress_snappy(stored: memoryview, limit: int) -> bytes:
    """Decompresses raw snappy followed by the big-endian CRC-32 of the decompressed bytes."""
    body, checksum = stored[:-4], stored[-4:]
    size = shift = 0
    for byte in body[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > 255 * len(body):
        raise ValueError("the stated size is impossible")
    if size > limit:
        raise TooLargeError(limit)
    plain: bytes = pa.Codec("snappy").decompress(body, size, asbytes=True)
    if zlib.crc32(plain) != int.from_bytes(checksum, "big"):
        raise ValueError("the checksum differs")
    return plain


SYNC_SIZE = 16
MAGIC = b"Obj\x01"

# Beyond the limit of one block, the blocks of a file may be this many times as large as stored.
# Blocks of 64 kB whose entries differ only in a number in the path are 20 to 180 times as large.
_MAX_RATIO = 200


@dataclass(frozen=True, slots=True)
class AvroContainer:
    """A container file with its blocks still compressed.

    `metadata` is the header's key-value metadata with `avro.schema` and `avro.codec`; `blocks` hold
    the record counts and the stored bytes. `what` names the file in errors. `max_block_bytes`
    limits the decompressed size of a block.
    """

    what: str
    metadata: dict[str, bytes]
    blocks: tuple[tuple[int, memoryview], ...]
    max_block_bytes: int = MAX_BLOCK_BYTES

    @property
    def schema_json(self) -> str:
        """The writer's schema.

        Raises:
            CorruptFileError: it is not UTF-8.
        """
        try:
            return self.metadata["avro.schema"].decode("utf-8")
        except UnicodeDecodeError as error:
            raise CorruptFileError(f"{self.what} is damaged: its schema: {error}") from error

    @property
    def codec(self) -> str:
        return self.metadata.get("avro.codec", b"null").decode("utf-8", "replace") or "null"

    @property
    def record_count(self) -> int:
        return sum(count for count, _ in self.blocks)

    def decompressed(self) -> Iterator[tuple[int, bytes | memoryview]]:
        """The record count and the decompressed bytes of every block.

        Raises:
            CorruptFileError: a block cannot be decompressed, or is too large.
            UnsupportedFeatureError: the codec is not supported.
        """
        codec = self.codec
        left = self.max_block_bytes
        for number, (count, stored) in enumerate(self.blocks):
            try:
                left += _MAX_RATIO * len(stored)
                plain = decompress(codec, stored, min(left, self.max_block_bytes))
            except _DECOMPRESSION_ERRORS as error:
                raise CorruptFileError(
                    f"{self.what}: block {number} cannot be decompressed with {codec}: {error}"
                ) from error
            if plain is None:
                raise UnsupportedFeatureError(
                    f"{self.what}: Avro codec {codec!r} is not supported; "
                    "null, deflate, snappy, zstandard, bzip2 and xz are"
                )
            left -= len(plain)
            yield count, plain


def parse_container(data: bytes, what: str, max_block_bytes: int | None = None) -> AvroContainer:
    """Splits a container file into header and blocks, without decompressing.

    Args:
        data: the whole file.
        what: names the file in errors, such as `manifest 's3://...'`.
        max_block_bytes: limits the decompressed size of a block; None for the default.

    Raises:
        CorruptFileError: the bytes are not a complete container file.
        UnsupportedFeatureError: the file is encrypted.
    """
    try:
        metadata, sync, at = parse_header(data, what)
        blocks = tuple(_parse_blocks(data, sync, at))
    except (IndexError, ValueError) as error:
        raise CorruptFileError(f"{what} is truncated or damaged: {error}") from error
    return AvroContainer(what, metadata, blocks, max_block_bytes or MAX_BLOCK_BYTES)


def parse_header(data: bytes, what: str) -> tuple[dict[str, bytes], bytes, int]:
    """Parses the header at the start of the data: its metadata, sync marker and length.

    Raises:
        CorruptFileError: the file is not an Avro file.
        UnsupportedFeatureError: the file is encrypted.
        IndexError, ValueError: the header is damaged, or the data ends inside it.
    """
    if data[:4] == ENCRYPTED_MAGIC:
        raise encrypted(what)
    if data[:4] != MAGIC:
        raise CorruptFileError(f"{what} is not an Avro file: its first bytes are not those of one")
    metadata, at = _parse_metadata(data, 4)
    sync = data[at : at + SYNC_SIZE]
    if len(sync) < SYNC_SIZE:
        raise ValueError("the header ends early")
    if "avro.schema" not in metadata:
        raise ValueError("the header has no schema")
    return metadata, sync, at + SYNC_SIZE


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A zigzag integer (Avro `int` or `long`) and the offset after it.

    Raises:
        IndexError: the data ends inside the number.
        ValueError: the number has more than 64 bits.
    """
    byte = data[at]
    at += 1
    number = byte & 0x7F
    shift = 7
    while byte & 0x80:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise ValueError("a number has more than 10 bytes")
    return (number >> 1) ^ -(number & 1), at


def _parse_metadata(data: bytes, at: int) -> tuple[dict[str, bytes], int]:
    metadata: dict[str, bytes] = {}
    while True:
        count, at = read_varint(data, at)
        if count == 0:
            return metadata, at
        if count < 0:
            _, at = read_varint(data, at)
        for _ in range(abs(count)):
            key, at = _parse_bytes(data, at)
            value, at = _parse_bytes(data, at)
            metadata[key.decode("utf-8")] = value


def _parse_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = read_varint(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise ValueError(f"a string of {length} bytes at {at} does not fit into the file")
    return data[at:end], end


def _parse_blocks(data: bytes, sync: bytes, at: int) -> Iterator[tuple[int, memoryview]]:
    view = memoryview(data)
    while at < len(data):
        count, at = read_varint(data, at)
        size, at = read_varint(data, at)
        end = at + size
        if count < 0 or size < 0 or end + SYNC_SIZE > len(data):
            raise ValueError(f"a block of {count} records, {size} bytes at {at} does not fit")
        if data[end : end + SYNC_SIZE] != sync:
            raise ValueError(f"the block at {at} does not end in the file's sync marker")
        yield count, view[at:end]
        at = end + SYNC_SIZE
