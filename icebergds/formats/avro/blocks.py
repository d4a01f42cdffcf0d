"""Reads an Avro data file block by block (Avro 1.12: Object Container Files)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.decompress import MAX_BLOCK_BYTES
from icebergds.formats.avro.container import SYNC_SIZE, AvroContainer, parse_header, read_varint

_HEADER = 64 * 1024
_BUFFER = 1024 * 1024
_LONGEST_VARINT = 10
# Other readers accept no block with room for more records, unless the records are empty.
_MOST_RECORDS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class AvroBlock:
    """A block: its offset in the file, the ordinal of its first record, its number of records."""

    offset: int
    first_position: int
    count: int
    _file: AvroBlocks
    _begin: int
    _size: int

    def read(self) -> bytes | memoryview:
        """Reads and decompresses the bytes of the records.

        Raises:
            CorruptFileError: the block cannot be decompressed, or is too large.
            UnsupportedFeatureError: the codec is not supported.
        """
        return self._file.plain(self._begin, self._size, self.count)


class AvroBlocks:
    """An open Avro file: its header, and its blocks in order.

    Args:
        handle: the file; it is read through a buffer, forward only.
        location: of the file, for errors.
        max_block_bytes: limits the decompressed size of a block; None for the default.

    Raises:
        CorruptFileError: the file does not begin with the header of an Avro file.
        UnsupportedFeatureError: the file is encrypted.
    """

    def __init__(
        self, handle: pa.NativeFile, location: str, max_block_bytes: int | None = None
    ) -> None:
        self._location = location
        self._max_block_bytes = max_block_bytes or MAX_BLOCK_BYTES
        self._size = handle.size()
        self._stream: BinaryIO = io.BufferedReader(handle, _BUFFER)
        self.metadata, self._sync, self._first_offset = self._read_header()

    def __iter__(self) -> Iterator[AvroBlock]:
        """All blocks; the bytes of a block are only read by `AvroBlock.read`.

        Raises:
            CorruptFileError: a block is cut off or damaged.
        """
        offset, position = self._first_offset, 0
        while True:
            self._stream.seek(offset)
            if not self._stream.read(1):
                return
            self._stream.seek(offset)
            count, size = self._varint(), self._varint()
            begin = self._stream.tell()
            if not 0 <= count <= _MOST_RECORDS or size < 0:
                raise self._damaged(f"the block at {offset} has {count} records, {size} bytes")
            yield AvroBlock(offset, position, count, self, begin, size)
            self._stream.seek(min(begin + size, self._size))
            if self._exactly(SYNC_SIZE) != self._sync:
                raise self._damaged(f"the block at {offset} does not end in the sync marker")
            offset, position = begin + size + SYNC_SIZE, position + count

    def plain(self, begin: int, size: int, count: int) -> bytes | memoryview:
        """The decompressed bytes of a block."""
        self._stream.seek(begin)
        stored = memoryview(self._exactly(size))
        blocks = ((count, stored),)
        block = AvroContainer(self._location, self.metadata, blocks, self._max_block_bytes)
        _, plain = next(block.decompressed())
        return plain

    def _read_header(self) -> tuple[dict[str, bytes], bytes, int]:
        read = _HEADER
        while True:
            self._stream.seek(0)
            head = self._stream.read(read)
            try:
                return parse_header(head, self._location)
            except (IndexError, ValueError) as error:
                if read >= self._size:
                    raise self._damaged(str(error)) from error
                read *= 8

    def _varint(self) -> int:
        at = self._stream.tell()
        try:
            value, length = read_varint(self._stream.read(_LONGEST_VARINT), 0)
        except (IndexError, ValueError) as error:
            raise self._damaged(f"there is no valid integer at {at}") from error
        self._stream.seek(at + length)
        return value

    def _exactly(self, size: int) -> bytes:
        at = self._stream.tell()
        # Checked first: a damaged size may exceed all memory.
        data = self._stream.read(size) if at + size <= self._size else b""
        if len(data) < size:
            raise self._damaged(f"{size} bytes at {at} do not fit into the file")
        return data

    def _damaged(self, how: str) -> CorruptFileError:
        return CorruptFileError(f"{self._location} is truncated or damaged: {how}")
