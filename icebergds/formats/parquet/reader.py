"""Reads Parquet data files with pyarrow.

A row group belongs to the byte range that contains its first page, whose offset is the split offset
that writers record. So it belongs to exactly one of the ranges that partition a file.

Memory is bounded regardless of the size of row groups. Pages are read a few at a time; from remote
storage, where round trips cost more, row groups are prefetched if the needed columns are small.
If the page index shows that a filter selects little of a row group, only those pages are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.errors import CorruptFileError, UnsupportedFeatureError
from icebergds.expr.metrics import might_match
from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.arrow.errors import decoding
from icebergds.formats.data_file.file_schema import (
    FileColumn,
    columns_of,
    has_ids,
    restrict,
    to_schema,
    with_ids,
    with_ids_by_position,
)
from icebergds.formats.data_file.projection import Projection, needed_leaves, plan_projection
from icebergds.formats.data_file.read_request import PositionedBatch, ReadRequest
from icebergds.formats.data_file.shredded_variants import shredded_variants
from icebergds.formats.parquet.bloom_filter import BloomFilters
from icebergds.formats.parquet.encryption import decrypting_parquet
from icebergds.formats.parquet.footer import open_parquet, read_footer
from icebergds.formats.parquet.footer_counts import check_rows, flat_leaves, row_count
from icebergds.formats.parquet.page_index import PageIndex
from icebergds.formats.parquet.page_pruning import PagePruner, PageSelection
from icebergds.formats.parquet.page_reader import read_pages
from icebergds.formats.parquet.row_group_metrics import (
    filter_columns,
    outside_bounds,
    row_group_metrics,
)
from icebergds.io.ranged_file import PrefetchingFile, Range
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema

# Maximum encoded bytes of prefetched columns; of larger ones, pages are read one by one.
_FETCH_LIMIT = 64 * 1024 * 1024
_REMOTE_BUFFER = 4 * 1024 * 1024
_LOCAL_BUFFER = 1024 * 1024
# How parquet-java names itself.
_BY_JAVA = "parquet-mr"


class ParquetReader:
    """An open Parquet file.

    Args:
        handle: the open file; it is not closed.
        location: of the file, for errors.
        table_schema: gives nested columns their field ids if the file has none.
        name_mapping: gives columns their field ids if the file has none; without a name mapping,
            such files are read by position (top-level columns have ids 1, 2, ...).
        key: of the file, if it is encrypted.
        checks_pages: compare pages with their checksums, where they have some.

    Raises:
        CorruptFileError: the file is damaged or not a Parquet file, or does not fit its key.
        UnsupportedFeatureError: the file is encrypted and has no key, or has columns that Arrow
            does not support.
    """

    def __init__(
        self,
        handle: pa.NativeFile,
        location: str,
        *,
        table_schema: Schema,
        name_mapping: NameMapping | None,
        key: KeyMetadata | None = None,
        checks_pages: bool = False,
    ) -> None:
        self._location = location
        self._checks_pages = checks_pages
        self._key = key
        self._table_schema = table_schema
        self._handle = handle
        self._is_remote = isinstance(handle, PrefetchingFile)
        with decoding(location, "Parquet"), decrypting_parquet(key, location):
            footer = read_footer(handle, location, key)
            self._file = open_parquet(handle, footer, key=key, checks_pages=checks_pages)
            columns = columns_of(self._file.schema_arrow)
        if sum(len(column.leaves) for column in columns) != self._file.metadata.num_columns:
            raise UnsupportedFeatureError(
                f"{location}: the Parquet schema has columns that Arrow does not support; "
                f"Arrow reads {self._file.schema_arrow.names}"
            )
        self._by_position = not has_ids(columns) and name_mapping is None
        self._columns = (
            with_ids_by_position(columns, table_schema)
            if self._by_position
            else with_ids(columns, table_schema, name_mapping)
        )

    @property
    def file_schema(self) -> Schema:
        """The file's columns that have ids."""
        return to_schema(self._columns)

    @property
    def num_rows(self) -> int:
        """The number of rows in the row groups."""
        return row_count(self._file.metadata)

    def outside_bounds(self, bounds: Iterable[tuple[int, bytes, bytes]]) -> Iterator[str]:
        """The columns with values outside of bounds by field id, as the footer shows."""
        return outside_bounds(
            self._file.metadata, self._columns, self._table_schema, bounds, self._location
        )

    def batches(
        self, request: ReadRequest, start: int | None = None, length: int | None = None
    ) -> Iterator[PositionedBatch]:
        """Reads the row groups that begin in a byte range and may match the filter.

        See `DataFileReader.batches`.
        """
        columns, leaves = self._needed(request)
        self._check_shredded(leaves)
        projection = plan_projection(
            restrict(columns, leaves), request.schema, request.constants, self._location
        )
        groups = self._select_groups(request.row_filter, columns, leaves, start, length)
        for run in _runs(groups, leaves):
            if run[0].pages is None:
                yield from self._read(run, leaves, projection, request.batch_size)
            else:
                yield from self._read_pages(run[0], run[0].pages, projection, request.batch_size)

    def bytes_to_read(self, request: ReadRequest) -> int:
        """How many bytes of columns `batches` reads.

        Raises:
            CorruptFileError: the file is damaged.
        """
        columns, leaves = self._needed(request)
        groups = self._select_groups(request.row_filter, columns, leaves, None, None)
        return sum(group.bytes_to_read(leaves) for group in groups)

    def _needed(self, request: ReadRequest) -> tuple[tuple[FileColumn, ...], frozenset[int]]:
        """The columns that may be read, and the leaves that are."""
        columns = self._columns
        if self._by_position:
            # An id may be that of a partition column, which files read by position do not store.
            columns = tuple(c for c in columns if c.field_id not in request.constants)
        return columns, needed_leaves(columns, request.schema, self._location)

    def _check_shredded(self, leaves: AbstractSet[int]) -> None:
        """Refuses times whose meaning Arrow does not tell: of one type, they would be another."""
        for variant in shredded_variants(self._columns, leaves):
            for leaf in variant.leaves:
                column = self._file.metadata.schema.column(leaf)
                if column.physical_type == "INT96":
                    raise UnsupportedFeatureError(
                        f"column {column.path!r} of {self._location}: variants cannot be shredded "
                        "as INT96"
                    )

    def _select_groups(
        self,
        row_filter: Expr,
        columns: Sequence[FileColumn],
        leaves: AbstractSet[int],
        start: int | None,
        length: int | None,
    ) -> Iterator[_RowGroup]:
        metadata = self._file.metadata
        referenced = (
            []
            if row_filter == TRUE
            else filter_columns(columns, metadata.schema, row_filter, self._location)
        )
        pruner = PagePruner(self._handle, metadata, row_filter, referenced, leaves, self._key)
        # Bloom filters of encrypted files are not read.
        hashed = referenced if self._key is None else []
        blooms = BloomFilters(self._handle, metadata, row_filter, hashed)
        counted = [leaf for leaf in flat_leaves(metadata) if not leaves or leaf in leaves]
        position = 0
        for index in range(metadata.num_row_groups):
            group = metadata.row_group(index)
            # Also of those that are not read, as they tell the positions of rows.
            check_rows(group, index, counted, self._location)
            first_position = position
            position += group.num_rows
            if not group.num_rows or not _begins_in(group, start, length):
                continue
            found = _RowGroup(index, first_position, group, None)
            if row_filter != TRUE:
                metrics, nbytes = row_group_metrics(group, referenced), found.encoded_size(leaves)
                if not might_match(row_filter, metrics):
                    continue
                if not blooms.might_match(group, metrics, nbytes):
                    continue
            with decrypting_parquet(self._key, self._location):
                pages = pruner.select(index)
            yield replace(found, pages=pages)

    def _read(
        self,
        run: Sequence[_RowGroup],
        leaves: AbstractSet[int],
        projection: Projection,
        batch_size: int,
    ) -> Iterator[PositionedBatch]:
        position = run[0].first_position
        end = run[-1].first_position + run[-1].num_rows
        for columns, num_rows in self._decode(run, leaves, batch_size):
            yield PositionedBatch(projection.apply(columns, num_rows), position, num_rows)
            position += num_rows
        if position != end:
            raise CorruptFileError(
                f"{self._location}: row groups {run[0].index} to {run[-1].index} end at row "
                f"{position}, but the footer says {end}"
            )

    def _read_pages(
        self,
        group: _RowGroup,
        selection: PageSelection,
        projection: Projection,
        batch_size: int,
    ) -> Iterator[PositionedBatch]:
        leaves = selection.pages.keys()
        reads = read_pages(
            self._handle,
            selection,
            restrict(self._columns, leaves),
            batch_size,
            is_remote=self._is_remote,
        )
        done = group.first_position
        while True:
            try:
                read = next(reads, None)
            except Exception:
                # The index or the row group is damaged; reading the whole row group tells which.
                # Arrow checks the tags of encrypted pages, too.
                break
            if read is None:
                return
            first, columns, num_rows = read
            position = group.first_position + first
            yield PositionedBatch(projection.apply(columns, num_rows), position, num_rows)
            done = position + num_rows
        for batch in self._read([group], leaves, projection, batch_size):
            skipped = min(max(done - batch.first_position, 0), batch.num_rows)
            if skipped < batch.num_rows:
                yield PositionedBatch(
                    batch.batch.slice(skipped),
                    batch.first_position + skipped,
                    batch.num_rows - skipped,
                )

    def _decode(
        self, run: Sequence[_RowGroup], leaves: AbstractSet[int], batch_size: int
    ) -> Iterator[tuple[list[pa.Array], int]]:
        """The columns that contain the leaves and the number of rows, batch by batch."""
        if not leaves:
            num_rows = sum(group.num_rows for group in run)
            for first in range(0, num_rows, batch_size):
                yield [], min(batch_size, num_rows - first)
            return
        with (
            self._telling_java_pages(run[0].index, min(leaves)),
            decoding(self._location, "Parquet"),
            decrypting_parquet(self._key, self._location),
        ):
            buffer_size = self._fetched(run, leaves)
            file = open_parquet(
                self._handle,
                self._file.metadata,
                buffer_size,
                self._key,
                checks_pages=self._checks_pages,
            )
            # A task has one core: Spark runs as many tasks as there are cores.
            batches = file.reader.iter_batches(
                batch_size,
                [group.index for group in run],
                column_indices=sorted(leaves),
                use_threads=False,
            )
            for batch in batches:
                yield batch.columns, batch.num_rows

    @contextmanager
    def _telling_java_pages(self, group: int, leaf: int) -> Iterator[None]:
        """Tells encrypted pages of version 2 of Java from damaged ones.

        Java encrypts only what follows their levels; by the format, all of a page is encrypted.

        Raises:
            UnsupportedFeatureError: for a CorruptFileError of a file with such pages.
        """
        try:
            yield
        except CorruptFileError as error:
            if self._key is None or not self._has_java_pages(group, leaf):
                raise
            raise UnsupportedFeatureError(
                f"{self._location}: data pages of version 2 that Java encrypted are not supported, "
                "as it encrypts only a part of them; have Java write the file anew with "
                "write.parquet.page-version = v1"
            ) from error

    def _has_java_pages(self, group: int, leaf: int) -> bool:
        metadata = self._file.metadata
        with suppress(Exception):
            by_java = (metadata.created_by or "").startswith(_BY_JAVA)
            return by_java and PageIndex(self._handle, metadata, self._key).is_v2(group, leaf)
        return False

    def _fetched(self, run: Sequence[_RowGroup], leaves: AbstractSet[int]) -> int:
        """Reads the columns of a remote file before Arrow does, several at a time.

        Returns:
            The size of Arrow's buffers; 0 if all is in memory.
        """
        if not isinstance(self._handle, PrefetchingFile):
            return _LOCAL_BUFFER
        chunks = [group.range_of(leaf) for group in run for leaf in leaves]
        if sum(end - start for start, end in chunks) <= _FETCH_LIMIT:
            self._handle.prefetch(chunks)
            return 0
        self._handle.stream(chunks, _FETCH_LIMIT)
        return _REMOTE_BUFFER


@dataclass(frozen=True, slots=True)
class _RowGroup:
    index: int
    first_position: int
    metadata: pq.RowGroupMetaData
    pages: PageSelection | None

    @property
    def num_rows(self) -> int:
        return int(self.metadata.num_rows)

    def range_of(self, leaf: int) -> Range:
        """The bytes of a column."""
        chunk = self.metadata.column(leaf)
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
            start = chunk.dictionary_page_offset
        return start, start + chunk.total_compressed_size

    def bytes_to_read(self, leaves: AbstractSet[int]) -> int:
        return self.encoded_size(leaves) if self.pages is None else self.pages.nbytes

    def encoded_size(self, leaves: AbstractSet[int]) -> int:
        return sum(self.metadata.column(leaf).total_compressed_size for leaf in leaves)


def _runs(groups: Iterable[_RowGroup], leaves: AbstractSet[int]) -> Iterator[list[_RowGroup]]:
    """Groups adjacent row groups that are read whole, up to the fetch limit."""
    run: list[_RowGroup] = []
    filled = 0
    for group in groups:
        size = group.encoded_size(leaves)
        if run and (
            group.index != run[-1].index + 1
            or filled + size > _FETCH_LIMIT
            or group.pages is not None
            or run[-1].pages is not None
        ):
            yield run
            run, filled = [], 0
        run.append(group)
        filled += size
    if run:
        yield run


def _begins_in(group: pq.RowGroupMetaData, start: int | None, length: int | None) -> bool:
    if start is None:
        return True
    chunk = group.column(0)
    offset = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < offset:
        offset = chunk.dictionary_page_offset
    return bool(start <= offset and (length is None or offset < start + length))
