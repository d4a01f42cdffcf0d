"""Reads selected rows of a Parquet row group from the pages that hold them.

Arrow only decodes whole column chunks, so the pages of each column are put into an in-memory
Parquet file of one column and one row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet

import numpy as np
import pyarrow as pa

from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn
from icebergds.formats.parquet.footer import open_parquet
from icebergds.formats.parquet.page_file import chunk_file
from icebergds.formats.parquet.page_index import Integers, PageIndexError, Pages
from icebergds.formats.parquet.page_pruning import PageSelection

# Gaps between pages up to this many bytes are read too, which saves a read.
_GAP = 16 * 1024
_REMOTE_GAP = 1024 * 1024
# Maximum bytes of a read, unless a page is larger.
_READ_LIMIT = 8 * 1024 * 1024


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
