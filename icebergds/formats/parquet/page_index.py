"""Reads the page index of a Parquet file: the offsets, rows and bounds of pages.

Arrow only tells whether a column chunk has a page index, so the footer is decoded again here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.formats.parquet import thrift
from icebergds.formats.parquet.encrypted_modules import Module, ModuleKey, open_footer
from icebergds.formats.parquet.encryption import MAGIC
from icebergds.formats.parquet.thrift import Struct, value_of, values_of

_TRAILER = 8
# Writers put the page index between the last page and the footer: one read gets both.
_TAIL_LIMIT = 1024 * 1024

# Of a module. Headers of pages are short, but may have bounds of values.
_LENGTH_BYTES, _LONGEST_HEADER = 4, 64 * 1024
# PageType.
_DATA_PAGE_V2 = 3
# ColumnCryptoMetaData: ENCRYPTION_WITH_FOOTER_KEY.
_BY_FOOTER_KEY: tuple[int, Struct] = (thrift.STRUCT, {1: (thrift.STRUCT, {})})

Integers = npt.NDArray[np.int64]


class PageIndexError(ValueError):
    """A page index is missing or damaged, or does not fit its file."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The data pages of a column chunk, in the file's order.

    Attributes:
        start: offset of the chunk in the file; bytes before the first data page are its dictionary
            page.
        offsets: offset of each page in the file.
        sizes: encoded bytes of each page, with its header.
        rows: the first row of each page within the row group, then the row group's number of rows.
    """

    start: int
    offsets: Integers
    sizes: Integers
    rows: Integers

    def of_rows(self, starts: Integers, stops: Integers) -> npt.NDArray[np.bool_]:
        """Which pages hold a row of any of the ranges, which are sorted and disjoint."""
        first = np.searchsorted(self.rows, starts, "right") - 1
        end = np.searchsorted(self.rows[:-1], stops, "left")
        steps = np.zeros(len(self.offsets) + 1, np.int64)
        np.add.at(steps, first, 1)
        np.add.at(steps, end, -1)
        return np.cumsum(steps[:-1]) > 0


@dataclass(frozen=True, slots=True)
class PageBounds:
    """The encoded bounds and the null counts of the pages of a column chunk.

    `null_counts` is None if unknown. A page with only nulls has no bounds. `is_ordered` says that
    the bounds rise or fall from page to page.
    """

    is_null: list[bool]
    lower: list[bytes]
    upper: list[bytes]
    null_counts: list[int] | None
    is_ordered: bool


class PageIndex:
    """The page index of an open file.

    Args:
        key: of the file, if it is encrypted.

    Raises:
        PageIndexError, ThriftError: the footer is not the one of `metadata`, or it or columns are
            encrypted in another way than by the key and AES_GCM_V1.
        WrongKey: the file does not fit its key.
    """

    def __init__(
        self, handle: pa.NativeFile, metadata: pq.FileMetaData, key: KeyMetadata | None = None
    ) -> None:
        self._handle = handle
        size = handle.size()
        # Of encrypted footers, Arrow tells the length without what is around them.
        length = metadata.serialized_size if key is None else _footer_length(handle, size)
        footer = size - _TRAILER - length
        self._tail_start = _tail_start(metadata, footer)
        self._tail = handle.read_at(size - self._tail_start, self._tail_start)
        data = self._read(footer, size - footer)
        found = int.from_bytes(data[-_TRAILER:-4], "little")
        if data[-4:] != (b"PAR1" if key is None else MAGIC) or found != length:
            raise PageIndexError("the footer is not where it was, or is encrypted")
        self._modules: ModuleKey | None = None
        if key is not None:
            data, self._modules = open_footer(data[:-_TRAILER], key)
        self.footer, _ = thrift.decode_struct(data)
        if 8 in self.footer:
            raise PageIndexError("columns are encrypted")
        self._groups: list[Struct] = values_of(self.footer, 4, thrift.STRUCT)

    def chunk(self, group: int, leaf: int) -> Struct:
        """The footer's entry of a column chunk."""
        found: Struct = values_of(self._groups[group], 1, thrift.STRUCT)[leaf]
        encryption = found.get(8)
        is_right = encryption is None if self._modules is None else encryption == _BY_FOOTER_KEY
        if not is_right or found.keys() & {1, 9}:
            raise PageIndexError("a column chunk is in another file, or has another key")
        return found

    def plain_page(self, group: int, leaf: int, page: int | None, stored: bytes) -> bytes:
        """A page with its header, decrypted if the file is encrypted.

        Args:
            page: ordinal of a data page in its column chunk; None for a dictionary page.
            stored: as in the file.

        Raises:
            ThriftError: the page's header is not one.
            WrongKey: it is another page, or was changed.
        """
        if self._modules is None:
            return stored
        return self._modules.opened_page(stored, group, leaf, page)

    def is_v2(self, group: int, leaf: int) -> bool:
        """Whether an encrypted column chunk begins with a data page of version 2.

        Raises:
            PageIndexError, ThriftError: the page's header is not one.
            WrongKey: the header is another one, or was changed.
        """
        start = value_of(value_of(self.chunk(group, leaf), 3, thrift.STRUCT), 9, thrift.I64)
        length = int.from_bytes(self._read(start, _LENGTH_BYTES), "little")
        if self._modules is None or length > _LONGEST_HEADER:
            raise PageIndexError("no header of an encrypted page is at the start of the chunk")
        stored = self._read(start, _LENGTH_BYTES + length)
        header = self._modules.opened(stored, Module.DATA_PAGE_HEADER, group, leaf, 0)
        kind: int = value_of(thrift.decode_struct(header)[0], 1, thrift.I32)
        return kind == _DATA_PAGE_V2

    def pages(self, group: int, leaf: int) -> Pages:
        """The pages of a column chunk in which each row is one value (none is repeated).

        Raises:
            PageIndexError, ThriftError: the chunk has no page index, or an invalid one.
            WrongKey: the index is that of another chunk, or was changed.
        """
        chunk = self.chunk(group, leaf)
        index = self._part(chunk, 4, Module.OFFSET_INDEX, group, leaf)
        locations = values_of(index, 1, thrift.STRUCT)
        offsets = [value_of(location, 1, thrift.I64) for location in locations]
        sizes = [value_of(location, 2, thrift.I32) for location in locations]
        rows = [value_of(location, 3, thrift.I64) for location in locations]
        rows.append(value_of(self._groups[group], 3, thrift.I64))
        column = value_of(chunk, 3, thrift.STRUCT)
        start: int = value_of(column, 9, thrift.I64)
        if 0 < column.get(11, (0, 0))[1] < start:
            start = value_of(column, 11, thrift.I64)
        end = start + value_of(column, 7, thrift.I64)
        pages = Pages(start, *(np.array(part, np.int64) for part in (offsets, sizes, rows)))
        ends = pages.offsets + pages.sizes
        is_right = (
            len(offsets)
            and value_of(column, 5, thrift.I64) == rows[-1]
            and rows[0] == 0
            and (np.diff(pages.rows) > 0).all()
            and (pages.sizes > 0).all()
            and start <= offsets[0]
            and (ends[:-1] <= pages.offsets[1:]).all()
            and ends[-1] <= end
        )
        if not is_right:
            raise PageIndexError("pages are not in row order, or are outside their column chunk")
        return pages

    def bounds(self, group: int, leaf: int) -> PageBounds:
        """The bounds of a column chunk's pages; the caller checks their number.

        Raises:
            PageIndexError, ThriftError: the order of the values is unknown, or the chunk has no
                page index, or an invalid one.
            WrongKey: the index is that of another chunk, or was changed.
        """
        if set(values_of(self.footer, 7, thrift.STRUCT)[leaf]) != {1}:
            raise PageIndexError("the order of a column's values is unknown")
        index = self._part(self.chunk(group, leaf), 6, Module.COLUMN_INDEX, group, leaf)
        return PageBounds(
            values_of(index, 1, thrift.TRUE),
            values_of(index, 2, thrift.BINARY),
            values_of(index, 3, thrift.BINARY),
            values_of(index, 5, thrift.I64) if 5 in index else None,
            value_of(index, 4, thrift.I32) != 0,
        )

    def _part(self, chunk: Struct, field_id: int, module: Module, group: int, leaf: int) -> Struct:
        """The struct whose offset is one field of a chunk, and whose length is the next field."""
        offset = value_of(chunk, field_id, thrift.I64)
        data = self._read(offset, value_of(chunk, field_id + 1, thrift.I32))
        if self._modules is not None:
            # Java encrypts the whole buffer that it encoded the struct in: more bytes follow it.
            return thrift.decode_struct(self._modules.opened(data, module, group, leaf))[0]
        found, size = thrift.decode_struct(data)
        if size != len(data):
            raise PageIndexError(f"{len(data)} bytes of page index hold a struct of {size}")
        return found

    def _read(self, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0:
            raise PageIndexError(f"there are no {length} bytes at {offset}")
        if offset >= self._tail_start:
            at = offset - self._tail_start
            return bytes(self._tail[at : at + length])
        return bytes(self._handle.read_at(length, offset))


def _footer_length(handle: pa.NativeFile, size: int) -> int:
    return int.from_bytes(handle.read_at(_TRAILER, size - _TRAILER)[:4], "little")


def _tail_start(metadata: pq.FileMetaData, footer: int) -> int:
    """The end of the last column chunk if it is near the footer, else the start of the footer."""
    chunk = metadata.row_group(metadata.num_row_groups - 1).column(metadata.num_columns - 1)
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    end = int(start + chunk.total_compressed_size)
    return end if footer - _TAIL_LIMIT <= end <= footer else footer
