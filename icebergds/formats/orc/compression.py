"""Decompresses and frames streams of ORC files, which are sequences of chunks.

A chunk has a header of three bytes: its length, shifted by a bit that says that it is stored as it
is (ORC specification: Compression).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa

from icebergds.formats.orc.protobuf import read_varint

_DEFAULT_CHUNK_SIZE = 256 * 1024
# The length of a chunk has 23 bits.
_MAX_CHUNK_SIZE = (1 << 23) - 1


class CompressionKind(IntEnum):
    """How all streams of a file are compressed, by its number in the file."""

    NONE = 0
    ZLIB = 1
    SNAPPY = 2
    LZO = 3
    LZ4 = 4
    ZSTD = 5
    BROTLI = 6


@dataclass(frozen=True, slots=True)
class Compression:
    """The compression of a file; a chunk has at most `chunk_size` bytes when decompressed."""

    kind: CompressionKind = CompressionKind.NONE
    chunk_size: int = _DEFAULT_CHUNK_SIZE

    def decompress(self, stream: bytes) -> bytes:
        """The contents of a stream.

        Raises:
            NotImplementedError: the kind of compression is not supported.
            ValueError: a chunk is cut off, or larger than declared.
            OSError, pa.ArrowException, zlib.error: a chunk is damaged.
        """
        if self.kind is CompressionKind.NONE:
            return stream
        parts = []
        at = 0
        while at < len(stream):
            header = int.from_bytes(stream[at : at + 3], "little")
            chunk = stream[at + 3 : at + 3 + (header >> 1)]
            at += 3 + (header >> 1)
            if at > len(stream):
                raise ValueError("a chunk is cut off")
            parts.append(chunk if header & 1 else self._decompress(chunk))
        return b"".join(parts)

    def frame(self, content: bytes) -> bytes:
        """A stream of some contents, stored as they are."""
        if self.kind is CompressionKind.NONE:
            return content
        size = max(1, min(self.chunk_size, _MAX_CHUNK_SIZE))
        chunks = (content[at : at + size] for at in range(0, len(content), size))
        return b"".join((len(c) << 1 | 1).to_bytes(3, "little") + c for c in chunks)

    def _decompress(self, chunk: bytes) -> bytes:
        match self.kind:
            case CompressionKind.ZLIB:
                limit = self.chunk_size + 1
                content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, limit)
                self._check_size(len(content))
                return content
            case CompressionKind.ZSTD:
                with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
                    content = bytes(stream.read(self.chunk_size + 1))
                self._check_size(len(content))
                return content
            case CompressionKind.SNAPPY:
                return self._decompress_to("snappy", chunk, read_varint(chunk, 0)[0])
            case CompressionKind.LZ4:
                return self._decompress_to("lz4_raw", chunk, _lz4_size(chunk))
            case _:
                raise NotImplementedError(f"{self.kind.name} compression is not supported")

    def _decompress_to(self, codec: str, chunk: bytes, size: int) -> bytes:
        self._check_size(size)
        return bytes(pa.decompress(chunk, size, codec, asbytes=True))

    def _check_size(self, size: int) -> None:
        if size > self.chunk_size:
            raise ValueError("a chunk is larger than the file declares")


def _lz4_size(block: bytes) -> int:
    """The size of an LZ4 block when decompressed, which the block itself does not tell.

    Raises:
        ValueError: the block is cut off.
    """
    size = at = 0
    while at < len(block):
        token = block[at]
        literals, at = _lz4_length(block, at + 1, token >> 4)
        size += literals
        at += literals
        # The last sequence has no match.
        if at < len(block):
            match_length, at = _lz4_length(block, at + 2, token & 15)
            size += match_length + 4
    if at > len(block):
        raise ValueError("a chunk is cut off")
    return size


def _lz4_length(block: bytes, at: int, nibble: int) -> tuple[int, int]:
    length = nibble
    if nibble == 15:
        while True:
            if at >= len(block):
                raise ValueError("a chunk is cut off")
            byte = block[at]
            at += 1
            length += byte
            if byte != 255:
                break
    return length, at
