"""Reads selected rows of a Parquet row group from the pages that hold them.

Arrow only decodes whole column chunks, so the pages of each column are put into an in-memory
Parquet file of one column and one row group.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet

import numpy as np
import pyarrow as pa

from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn
from icebergds.formats.parquet import thrift
from icebergds.formats.parquet.footer import open_parquet
from icebergds.formats.parquet.page_index import Integers, PageIndex, PageIndexError, Pages
from icebergds.formats.parquet.page_pruning import PageSelection
from icebergds.formats.parquet.thrift import Struct, value_of, values_of

# Gaps between pages up to this many bytes are read too, which saves a read.
_GAP = 16 * 1024
_REMOTE_GAP = 1024 * 1024
# Maximum bytes of a read, unless a page is larger.
_READ_LIMIT = 8 * 1024 * 1024
_MAGIC = b"PAR1"
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3
# The field that holds the header of each type of data page; its field 1 is the number of values.
_HEADER_FIELDS = {_DATA_PAGE: 5, _DATA_PAGE_V2: 8}
_ARROW_SCHEMA = b"ARROW:schema"


def read_pages(
    handle: pa.NativeFile,
    selection: PageSelection,
    columns: Sequence[FileColumn],
    batch_size: int,
    *,
    is_remote: bool,
) -> Iterator[tuple[int, list[pa.Array], int]]:
    """Reads the selected rows; yields first row in the row group, columns and row count of batches.

    Args:
        columns: the columns to read, narrowed to the selected leaves.
        batch_size: maximum number of rows in a batch.

    Raises:
        PageIndexError, ThriftError: pages are not what the index says, or a column cannot be read
            by page.
        WrongKey: the file is encrypted, and a page is another one or was changed.
        pyarrow.ArrowException: Arrow cannot decode the pages.
    """
    if not len(selection.starts):
        return
    selected = {
        leaf: np.flatnonzero(pages.of_rows(selection.starts, selection.stops))
        for leaf, pages in selection.pages.items()
    }
    extents = _extents(selection.pages, selected)
    parts = _fetch(handle, extents, _REMOTE_GAP if is_remote else _GAP)
    readers = {
        leaf: _open_leaf(parts, selection, column, leaf, selected[leaf], batch_size)
        for column in columns
        for leaf in selection.pages
        if leaf in column.leaves
    }
    for start, stop in zip(selection.starts.tolist(), selection.stops.tolist(), strict=True):
        for first in range(start, stop, batch_size):
            num_rows = min(batch_size, stop - first)
            arrays = {leaf: reader.take(first, num_rows) for leaf, reader in readers.items()}
            yield first, [_assemble(column, arrays) for column in columns], num_rows


def _extents(pages: Mapping[int, Pages], selected: Mapping[int, Integers]) -> list[tuple[int, int]]:
    """Offset and size of every page to read, dictionary pages included."""
    extents = []
    for leaf, part in pages.items():
        extents.append((part.start, int(part.offsets[0]) - part.start))
        offsets, sizes = part.offsets[selected[leaf]], part.sizes[selected[leaf]]
        extents += zip(offsets.tolist(), sizes.tolist(), strict=True)
    return [extent for extent in extents if extent[1]]


def _fetch(handle: pa.NativeFile, extents: Sequence[tuple[int, int]], gap: int) -> dict[int, bytes]:
    """Reads parts of a file; returns them by offset."""
    parts = {}
    for run in _coalesce(sorted(extents), gap):
        start = run[0][0]
        block = memoryview(handle.read_at(sum(run[-1]) - start, start))
        for offset, size in run:
            # Copied, so that the gaps do not stay in memory.
            parts[offset] = bytes(block[offset - start : offset - start + size])
    return parts


def _coalesce(extents: Iterable[tuple[int, int]], gap: int) -> Iterator[list[tuple[int, int]]]:
    """Groups sorted extents that are read at once."""
    run: list[tuple[int, int]] = []
    for offset, size in extents:
        if run and (offset - sum(run[-1]) > gap or offset - run[0][0] > _READ_LIMIT):
            yield run
            run = []
        run.append((offset, size))
    if run:
        yield run


def _open_leaf(
    parts: dict[int, bytes],
    selection: PageSelection,
    column: FileColumn,
    leaf: int,
    selected: Integers,
    batch_size: int,
) -> _LeafReader:
    pages, index, group = selection.pages[leaf], selection.index, selection.group
    # Removed from `parts`, so that pages are not in memory twice.
    dictionary = None
    if pages.start < pages.offsets[0]:
        dictionary = index.plain_page(group, leaf, None, parts.pop(pages.start))
    encoded = [
        index.plain_page(group, leaf, page, parts.pop(offset))
        for page, offset in zip(selected.tolist(), pages.offsets[selected].tolist(), strict=True)
    ]
    counts = np.diff(pages.rows)[selected]
    wanted = _type_of_leaf(column, leaf)
    field = pa.field(column.name, wanted, nullable=not column.required)
    content = chunk_file(index, group, leaf, field, dictionary, encoded, counts.tolist())
    file = open_parquet(pa.BufferReader(content))
    found = file.schema_arrow.field(0).type
    if found != wanted:
        raise PageIndexError(f"column {column.name!r} reads as {found}, not as {wanted}")
    batches = file.iter_batches(batch_size, use_threads=False)
    return _LeafReader(batches, pages.rows[selected], counts)


class _LeafReader:
    """Rows of the selected pages of one leaf column, in ascending order."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], first_rows: Integers, counts: Integers
    ) -> None:
        self._batches = batches
        self._first_rows = first_rows
        # The first row of each page among the decoded rows.
        self._page_starts = np.cumsum(counts) - counts
        self._array: pa.Array | None = None
        self._end = 0

    def take(self, first: int, num_rows: int) -> pa.Array:
        """Consecutive rows of the row group, all of them in selected pages."""
        page = int(np.searchsorted(self._first_rows, first, "right")) - 1
        row = int(self._page_starts[page] + first - self._first_rows[page])
        parts = []
        while num_rows:
            if self._array is None or row >= self._end:
                self._advance()
                continue
            start = len(self._array) - (self._end - row)
            part = self._array.slice(start, num_rows)
            parts.append(part)
            row += len(part)
            num_rows -= len(part)
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    def _advance(self) -> None:
        batch = next(self._batches, None)
        if batch is None:
            raise PageIndexError(f"pages hold {self._end} rows, but the index says more")
        self._array = batch.column(0)
        self._end += batch.num_rows


def _type_of_leaf(column: FileColumn, leaf: int) -> pa.DataType:
    """The Arrow type of a column of which only one leaf is read."""
    if column.kind is ColumnKind.LEAF:
        return column.arrow_type
    if column.kind is not ColumnKind.STRUCT:
        raise PageIndexError(f"column {column.name!r} is a {column.kind}")
    (child,) = (child for child in column.children if leaf in child.leaves)
    field = pa.field(child.name, _type_of_leaf(child, leaf), nullable=not child.required)
    return pa.struct([field])


def _assemble(column: FileColumn, arrays: Mapping[int, pa.Array]) -> pa.Array:
    """Combines the arrays of a column's leaves, each in its own structs, into one column."""
    within = [array for leaf, array in arrays.items() if leaf in column.leaves]
    if len(within) == 1:
        return within[0]
    children = [
        _assemble(child, {leaf: arrays[leaf].field(0) for leaf in _leaves(child, arrays.keys())})
        for child in column.children
    ]
    fields = [
        pa.field(child.name, array.type, nullable=not child.required)
        for child, array in zip(column.children, children, strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=fields, mask=within[0].is_null())


def _leaves(column: FileColumn, leaves: AbstractSet[int]) -> list[int]:
    return [leaf for leaf in column.leaves if leaf in leaves]


def chunk_file(
    index: PageIndex,
    group: int,
    leaf: int,
    field: pa.Field,
    dictionary: bytes | None,
    pages: Sequence[bytes],
    num_rows: Sequence[int],
) -> pa.Buffer:
    """Builds a file with some pages of one leaf column as its only row group.

    Args:
        group: the row group of the pages.
        leaf: ordinal of the leaf column.
        field: the column as Arrow should read it; it says what Parquet's types do not.
        dictionary: the dictionary page, if there is one.
        pages: encoded data pages with their headers.
        num_rows: the expected number of rows of each page; values are not repeated.

    Raises:
        PageIndexError, ThriftError: a page is not what the page index says.
    """
    if dictionary is not None:
        _header(dictionary, (_DICTIONARY_PAGE,))
    for page, count in zip(pages, num_rows, strict=True):
        header = _header(page, tuple(_HEADER_FIELDS))
        details = value_of(header, _HEADER_FIELDS[header[1][1]], thrift.STRUCT)
        found = value_of(details, 1, thrift.I32)
        if found != count:
            raise PageIndexError(f"a page has {found} values, but the index says {count}")
    head = [dictionary] if dictionary is not None else []
    first_page = len(_MAGIC) + sum(map(len, head))
    size = sum(map(len, (*head, *pages)))
    footer = _footer(index, group, leaf, field, first_page, size, sum(num_rows))
    tail = (footer, len(footer).to_bytes(4, "little"), _MAGIC)
    return pa.py_buffer(b"".join((_MAGIC, *head, *pages, *tail)))


def _header(page: bytes, kinds: Sequence[int]) -> Struct:
    """The header of a page, whose type and size are checked."""
    header, size = thrift.decode_struct(page)
    if value_of(header, 1, thrift.I32) not in kinds:
        raise PageIndexError(f"a page is of type {header[1][1]}, expected one of {kinds}")
    if size + value_of(header, 3, thrift.I32) != len(page):
        raise PageIndexError(f"a page does not have the {len(page)} bytes that the index says")
    return header


def _footer(
    index: PageIndex,
    group: int,
    leaf: int,
    field: pa.Field,
    first_page: int,
    size: int,
    num_rows: int,
) -> bytes:
    old = value_of(index.chunk(group, leaf), 3, thrift.STRUCT)
    # Type, encodings, path and codec are kept; statistics and all other fields no longer hold.
    column: Struct = {field_id: old[field_id] for field_id in (1, 2, 3, 4)}
    column[5] = (thrift.I64, num_rows)
    column[6] = column[7] = (thrift.I64, size)
    column[9] = (thrift.I64, first_page)
    if first_page > len(_MAGIC):
        column[11] = (thrift.I64, len(_MAGIC))
    chunk: Struct = {2: (thrift.I64, 0), 3: (thrift.STRUCT, column)}
    row_group: Struct = {
        1: _structs([chunk]),
        2: (thrift.I64, size),
        3: (thrift.I64, num_rows),
    }
    # Arrow decodes by the version and the writer.
    footer: Struct = {at: index.footer[at] for at in (1, 6) if at in index.footer}
    footer[2] = _structs(_path(values_of(index.footer, 2, thrift.STRUCT), leaf))
    footer[3] = (thrift.I64, num_rows)
    footer[4] = _structs([row_group])
    arrow_schema = _arrow_schema(index.footer, field)
    if arrow_schema is not None:
        footer[5] = _structs([arrow_schema])
    return thrift.encode_struct(footer)


def _structs(values: list[Struct]) -> tuple[int, thrift.Sequence]:
    return thrift.LIST, thrift.Sequence(thrift.STRUCT, values)


def _path(elements: Sequence[Struct], leaf: int) -> list[Struct]:
    """The schema elements from the root to a leaf, as if it were the only one."""
    path: list[tuple[Struct, int]] = []
    for element in elements:
        # With each element of the path: how many of its children are still to come.
        while path and not path[-1][1]:
            path.pop()
        if path:
            path[-1] = (path[-1][0], path[-1][1] - 1)
        num_children = element.get(5, (thrift.I32, 0))[1]
        if num_children:
            path.append((element, num_children))
        elif leaf:
            leaf -= 1
        else:
            # Without their annotations groups are plain structs.
            groups = [
                {at: above[at] for at in (3, 4, 9) if at in above} | {5: (thrift.I32, 1)}
                for above, _ in path
            ]
            return [*groups, element]
    raise PageIndexError("the schema has fewer leaf columns than the row group")


def _arrow_schema(footer: Struct, field: pa.Field) -> Struct | None:
    """The Arrow schema of a column as file metadata, if the original file has one."""
    entries = values_of(footer, 5, thrift.STRUCT) if 5 in footer else []
    if all(value_of(entry, 1, thrift.BINARY) != _ARROW_SCHEMA for entry in entries):
        return None
    schema = base64.b64encode(pa.schema([field]).serialize())
    return {1: (thrift.BINARY, _ARROW_SCHEMA), 2: (thrift.BINARY, schema)}
