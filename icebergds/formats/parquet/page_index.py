"""The page index of a Parquet file: where pages are, which rows they hold, and their bounds.

Arrow says of a column chunk only whether it has one, so the footer is decoded here once more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.formats.parquet import thrift
from icebergds.formats.parquet.thrift import Struct, value_of, values_of

_TRAILER = 8
# Writers put the page index between the last page and the footer: one read gets both.
_TAIL_LIMIT = 1024 * 1024

Integers = npt.NDArray[np.int64]


class PageIndexError(ValueError):
    """A page index is not one, or does not fit its file."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The data pages of a column chunk, in the file's order.

    Attributes:
        start: where the chunk begins in the file; what stands there before the first data page is
            its dictionary.
        offsets: where each page begins in the file.
        sizes: encoded bytes of each page, with its header.
        rows: the first row of each page within the row group, then the row group's number of rows.
    """

    start: int
    offsets: Integers
    sizes: Integers
    rows: Integers

    def of_rows(self, starts: Integers, stops: Integers) -> npt.NDArray[np.bool_]:
        """Which pages hold any row of the ranges, which are in order and apart."""
        first = np.searchsorted(self.rows, starts, "right") - 1
        end = np.searchsorted(self.rows[:-1], stops, "left")
        steps = np.zeros(len(self.offsets) + 1, np.int64)
        np.add.at(steps, first, 1)
        np.add.at(steps, end, -1)
        return np.cumsum(steps[:-1]) > 0


@dataclass(frozen=True, slots=True)
class PageBounds:
    """What the index says of the values of each page of a column chunk, in encoded form.

    `null_counts` is None if not known. A page of nulls alone has no bounds.
    """

    is_null: list[bool]
    lower: list[bytes]
    upper: list[bytes]
    null_counts: list[int] | None


class PageIndex:
    """The page index of an open file.

    Raises:
        PageIndexError: the footer is encrypted, or not the one that was decoded before.
        ThriftError: likewise.
    """

    def __init__(self, handle: pa.NativeFile, metadata: pq.FileMetaData) -> None:
        self._handle = handle
        size = handle.size()
        footer = size - _TRAILER - metadata.serialized_size
        self._tail_start = _tail_start(metadata, footer)
        self._tail = handle.read_at(size - self._tail_start, self._tail_start)
        data = self._read(footer, size - footer)
        length = int.from_bytes(data[-_TRAILER:-4], "little")
        if data[-4:] != b"PAR1" or length != metadata.serialized_size:
            raise PageIndexError("the footer is not where it should be, or encrypted")
        self.footer, _ = thrift.decode_struct(data)
        if 8 in self.footer:
            raise PageIndexError("columns are encrypted")
        self._groups: list[Struct] = values_of(self.footer, 4, thrift.STRUCT)

    def chunk(self, group: int, leaf: int) -> Struct:
        """A column chunk in the footer."""
        found: Struct = values_of(self._groups[group], 1, thrift.STRUCT)[leaf]
        if found.keys() & {1, 8, 9}:
            raise PageIndexError("a column chunk is in another file, or encrypted")
        return found

    def pages(self, group: int, leaf: int) -> Pages:
        """The pages of a column chunk whose rows are values (none is repeated).

        Raises:
            PageIndexError: the chunk has no index, or one that cannot be right.
            ThriftError: likewise.
        """
        chunk = self.chunk(group, leaf)
        locations = values_of(self._part(chunk, 4), 1, thrift.STRUCT)
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
            raise PageIndexError("pages are not in the order of their rows, or out of their chunk")
        return pages

    def bounds(self, group: int, leaf: int) -> PageBounds:
        """The bounds of a column chunk's pages.

        Raises:
            PageIndexError: their order is not known; their number is left to the caller.
            ThriftError: the chunk has no index, or one that cannot be right.
        """
        if set(values_of(self.footer, 7, thrift.STRUCT)[leaf]) != {1}:
            raise PageIndexError("the order of a column's values is not known")
        index = self._part(self.chunk(group, leaf), 6)
        return PageBounds(
            values_of(index, 1, thrift.TRUE),
            values_of(index, 2, thrift.BINARY),
            values_of(index, 3, thrift.BINARY),
            values_of(index, 5, thrift.I64) if 5 in index else None,
        )

    def _part(self, chunk: Struct, field_id: int) -> Struct:
        """The struct whose offset is a field of a chunk, and whose length is the next one."""
        offset = value_of(chunk, field_id, thrift.I64)
        length = value_of(chunk, field_id + 1, thrift.I32)
        found, size = thrift.decode_struct(self._read(offset, length))
        if size != length:
            raise PageIndexError(f"{length} bytes of page index hold a struct of {size}")
        return found

    def _read(self, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0:
            raise PageIndexError(f"there are no {length} bytes at {offset}")
        if offset >= self._tail_start:
            at = offset - self._tail_start
            return bytes(self._tail[at : at + length])
        return bytes(self._handle.read_at(length, offset))


def _tail_start(metadata: pq.FileMetaData, footer: int) -> int:
    """Where the last column chunk ends if that is near the footer, else where the footer begins."""
    chunk = metadata.row_group(metadata.num_row_groups - 1).column(metadata.num_columns - 1)
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    end = int(start + chunk.total_compressed_size)
    return end if footer - _TAIL_LIMIT <= end <= footer else footer
