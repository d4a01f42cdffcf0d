"""Reads Avro data files with fastavro, block by block, and describes existing ones.

A block belongs to the byte range that contains its first byte. Avro does not store how many rows
precede a block, so the blocks before a range are walked over.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import fastavro
import pyarrow as pa

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.decompress import MAX_BLOCK_BYTES
from icebergds.formats.avro.container import SYNC_SIZE, AvroContainer, parse_header, read_varint
from icebergds.formats.avro.data_types import expanded_schema, record_columns, records_to_arrow
from icebergds.formats.avro.records import DECODING_ERRORS, record_schema
from icebergds.formats.avro.schema import writer_schema
from icebergds.formats.data_file.file_schema import (
    FileColumn,
    has_ids,
    restrict,
    to_schema,
    walk_columns,
    with_ids,
)
from icebergds.formats.data_file.projection import needed_leaves, plan_projection
from icebergds.formats.data_file.read_request import PositionedBatch, ReadRequest
from icebergds.formats.data_file.shredded_variants import refuse_shredded
from icebergds.formats.data_file.stored_file import ColumnStatistics, StoredFile
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema

# Records are decoded into dictionaries, so not too many at a time.
_CHUNK = 8_192
_SCHEMA_ERRORS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)
_HEADER = 64 * 1024
_BUFFER = 1024 * 1024
_LONGEST_VARINT = 10
# Other readers accept no block with room for more records, unless the records are empty.
_MOST_RECORDS = 2**31 - 1


class AvroReader:
    """An open Avro data file.

    Args:
        handle: the open file; it is not closed.
        location: of the file, for errors.
        table_schema: gives columns their field ids by name if the file has none.
        name_mapping: used for that instead of the table's schema, if given.
        max_block_bytes: limits the decompressed size of a block; None for the default.

    Raises:
        CorruptFileError: the file is damaged or not an Avro file of records.
        UnsupportedFeatureError: the file is encrypted.
    """

    def __init__(
        self,
        handle: pa.NativeFile,
        location: str,
        *,
        table_schema: Schema,
        name_mapping: NameMapping | None,
        max_block_bytes: int | None = None,
    ) -> None:
        self._location = location
        self._blocks = AvroBlocks(handle, location, max_block_bytes)
        self._num_rows: int | None = None
        self._columns = with_ids(self._read_schema(), table_schema, name_mapping)

    @property
    def file_schema(self) -> Schema:
        """The file's columns that have ids."""
        return to_schema(self._columns)

    @property
    def num_rows(self) -> int | None:
        """The number of rows; None until the file was read to its end."""
        return self._num_rows

    def batches(
        self, request: ReadRequest, start: int | None = None, length: int | None = None
    ) -> Iterator[PositionedBatch]:
        """Reads the blocks that begin in a byte range; the row filter skips nothing.

        See `DataFileReader.batches`.
        """
        leaves = needed_leaves(self._columns, request.schema, self._location)
        refuse_shredded(self._columns, leaves, self._location)
        columns = restrict(self._columns, leaves)
        projection = plan_projection(columns, request.schema, request.constants, self._location)
        chunks = self._chunks(columns, request.batch_size, start, length)
        for chunk in _gathered(chunks, request.batch_size):
            batch = projection.apply(chunk.columns, chunk.num_rows)
            yield PositionedBatch(batch, chunk.first_position, chunk.num_rows)

    def _read_schema(self) -> tuple[FileColumn, ...]:
        """The columns of the file; sets the schemas that decoding needs."""
        self._schema, self._record, columns = _schemas(self._blocks, self._location)
        return columns

    def _chunks(
        self,
        columns: Sequence[FileColumn],
        batch_size: int,
        start: int | None,
        length: int | None,
    ) -> Iterator[_Chunk]:
        """The rows of the blocks that begin in a byte range, a part of a block at a time."""
        end = None if start is None or length is None else start + length
        num_rows = 0
        for block in self._blocks:
            if end is not None and block.offset >= end:
                return
            if start is None or block.offset >= start:
                yield from self._decode(block, columns, min(batch_size, _CHUNK))
            num_rows += block.count
        self._num_rows = num_rows

    def _decode(
        self, block: AvroBlock, columns: Sequence[FileColumn], chunk_size: int
    ) -> Iterator[_Chunk]:
        # Decoded even if no column is read: nothing else checks the record count.
        plain = block.read()
        stream = io.BytesIO(plain)
        for first in range(0, block.count, chunk_size):
            num_rows = min(chunk_size, block.count - first)
            try:
                records: list[Any] = [
                    fastavro.schemaless_reader(stream, self._schema, None) for _ in range(num_rows)
                ]
                arrays = records_to_arrow(records, self._record, columns, self._location)
            except DECODING_ERRORS as error:
                raise CorruptFileError(
                    f"{self._location}: a record of the block at {block.offset} cannot be decoded: "
                    f"{error!r}"
                ) from error
            yield _Chunk(arrays, block.first_position + first, num_rows)
        if stream.tell() != len(plain):
            raise CorruptFileError(
                f"{self._location}: {block.count} records fill {stream.tell()} of the "
                f"{len(plain)} bytes of the block at {block.offset}"
            )


def file_columns(blocks: AvroBlocks, location: str) -> tuple[FileColumn, ...]:
    """The columns of a file, with the field ids that it has.

    Raises:
        CorruptFileError: the file does not store records.
    """
    return _schemas(blocks, location)[2]


def _schemas(blocks: AvroBlocks, location: str) -> tuple[Any, Any, tuple[FileColumn, ...]]:
    """The schemas that decoding needs, and the columns of the file."""
    text = blocks.metadata["avro.schema"].decode("utf-8", "replace")
    try:
        record = expanded_schema(writer_schema(text))
        return record_schema(text), record, record_columns(record)
    except _SCHEMA_ERRORS as error:
        raise CorruptFileError(f"{location}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Consecutive rows, as columns."""

    columns: list[pa.Array]
    first_position: int
    num_rows: int


def _gathered(chunks: Iterator[_Chunk], batch_size: int) -> Iterator[_Chunk]:
    """Concatenates as many chunks as fit into a batch."""
    waiting: list[_Chunk] = []
    total = 0
    for chunk in chunks:
        if waiting and total + chunk.num_rows > batch_size:
            yield _joined(waiting)
            waiting, total = [], 0
        waiting.append(chunk)
        total += chunk.num_rows
    if waiting:
        yield _joined(waiting)


def _joined(chunks: Sequence[_Chunk]) -> _Chunk:
    columns = [pa.concat_arrays(parts) for parts in zip(*(c.columns for c in chunks), strict=True)]
    return _Chunk(columns, chunks[0].first_position, sum(chunk.num_rows for chunk in chunks))


def stored_avro(
    handle: pa.NativeFile, location: str, schema: Schema, name_mapping: NameMapping
) -> StoredFile:
    """Describes an open file, whose columns have their names' ids if it has none.

    Raises:
        CorruptFileError: the file is damaged or not an Avro file of records.
        UnsupportedFeatureError: the file is encrypted.
    """
    blocks = AvroBlocks(handle, location)
    found = file_columns(blocks, location)
    columns = with_ids(found, schema, name_mapping)
    # Iceberg alone says whether a timestamp is an instant; to Avro's own readers it is.
    unzoned = {
        column.field_id
        for column in walk_columns(columns)
        if pa.types.is_timestamp(column.arrow_type) and not has_ids(found)
    }
    return StoredFile(
        columns,
        has_ids(found),
        sum(block.count for block in blocks),
        handle.size(),
        (),
        ColumnStatistics(),
        frozenset(field_id for field_id in unzoned if field_id is not None),
    )


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
