"""Decompresses Avro blocks up to a limit (Avro 1.12: Required Codecs, Optional Codecs)."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa

from icebergds.formats.arrow.decompress import TooLargeError, decompress_stream

_deflate: Any = zlib
with suppress(ImportError):
    # The same in less than half the time.
    from isal import isal_zlib as _deflate

DECOMPRESSION_ERRORS: tuple[type[Exception], ...] = (
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
