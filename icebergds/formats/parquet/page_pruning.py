"""Selects the rows of a Parquet row group that may match a filter, by the bounds of its pages.

Pages of different columns hold different rows. A row group is cut wherever a page of the filter's
columns begins; of the row ranges in between, those that may hold a matching row are kept.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.encryption.ciphers import WrongKey
from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.expr.metrics import might_match
from icebergds.expr.nodes import BoundPredicate, Expr, map_leaves
from icebergds.formats.parquet.page_index import (
    Integers,
    PageBounds,
    PageIndex,
    PageIndexError,
    Pages,
)
from icebergds.formats.parquet.row_group_metrics import FilterColumn, RowGroupMetrics, bound_of

# Reading fewer bytes takes less time than finding out what to skip.
_MIN_BYTES = 1024 * 1024
# If a larger share remains, skipping the rest is not worth the smaller reads.
_MAX_SHARE = 2 / 3
# Selected pages are held in memory.
_MAX_BYTES = 64 * 1024 * 1024
# Row ranges that are closer to each other are merged: every batch has a fixed cost.
_MIN_GAP = 2048
# Larger footers take too long to decode.
_MAX_CHUNKS = 10_000
# More predicates, evaluated for one row group, take too long.
_MAX_EVALUATIONS = 20_000

# Under these annotations bytes are ordered bytewise, and numbers by value.
_ORDERED = frozenset(
    {"None", "String", "UUID", "Enum", "JSON", "BSON", "Int", "Decimal", "Date", "Time"}
    | {"Timestamp"}
)
_FIXED = {"INT32": struct.Struct("<i"), "INT64": struct.Struct("<q")} | {
    "FLOAT": struct.Struct("<f"),
    "DOUBLE": struct.Struct("<d"),
    "BOOLEAN": struct.Struct("<?"),
}


@dataclass(frozen=True, slots=True)
class PageSelection:
    """The rows to read of a row group, and the pages of the columns to read.

    Attributes:
        index: page index of the file.
        group: ordinal of the row group.
        starts: the first row of each range within the row group; ranges are sorted and disjoint.
        stops: the row after each range.
        pages: all pages of each leaf column to read, by leaf.
        nbytes: how much of these is read.
    """

    index: PageIndex
    group: int
    starts: Integers
    stops: Integers
    pages: Mapping[int, Pages]
    nbytes: int


class PagePruner:
    """Finds the rows that may match a filter in the row groups of an open file.

    Args:
        row_filter: a bound filter.
        filter_columns: the file's columns that the filter references.
        leaves: ordinals of the leaf columns to read.
        key: of the file, if it is encrypted.
    """

    def __init__(
        self,
        handle: pa.NativeFile,
        metadata: pq.FileMetaData,
        row_filter: Expr,
        filter_columns: Sequence[FilterColumn],
        leaves: AbstractSet[int],
        key: KeyMetadata | None = None,
    ) -> None:
        self._handle = handle
        self._key = key
        self._metadata = metadata
        self._row_filter = row_filter
        self._filter_columns = filter_columns
        self._leaves = leaves
        self._num_predicates = _count_predicates(row_filter)
        self._index: PageIndex | None = None
        self._is_usable = (
            bool(filter_columns)
            and bool(leaves)
            and metadata.num_row_groups * metadata.num_columns <= _MAX_CHUNKS
            and all(metadata.schema.column(leaf).max_repetition_level == 0 for leaf in leaves)
        )

    def select(self, group: int) -> PageSelection | None:
        """The rows to read of a row group, possibly none; None if it has to be read whole.

        It is read whole if the file has no usable page index, or too little could be skipped.

        Raises:
            WrongKey: the file is encrypted, and its footer or page index does not fit its key.
        """
        filter_columns = self._indexed(group) if self._is_usable else []
        if not filter_columns:
            return None
        try:
            return self._select(group, filter_columns)
        except WrongKey:
            raise
        except Exception:
            # An invalid index only means that nothing is skipped. If storage fails, reading the row
            # group raises.
            return None

    def _indexed(self, group: int) -> list[FilterColumn]:
        """The filter's columns with page bounds, if the columns to read can be read by page."""
        row_group = self._metadata.row_group(group)
        filter_columns = [
            column
            for column in self._filter_columns
            if column.logical_type["Type"] in _ORDERED
            and (chunk := row_group.column(column.leaf)).has_column_index
            and chunk.has_offset_index
            and chunk.physical_type != "INT96"
        ]
        if not filter_columns:
            return []
        chunks = [row_group.column(leaf) for leaf in self._leaves]
        is_worth_it = sum(chunk.total_compressed_size for chunk in chunks) >= _MIN_BYTES
        return (
            filter_columns
            if is_worth_it and all(chunk.has_offset_index for chunk in chunks)
            else []
        )

    def _select(self, group: int, filter_columns: Sequence[FilterColumn]) -> PageSelection | None:
        index = self._open()
        row_group = self._metadata.row_group(group)
        filter_pages = [index.pages(group, column.leaf) for column in filter_columns]
        bounds = [index.bounds(group, column.leaf) for column in filter_columns]
        facts = [
            list(_facts(column, row_group.column(column.leaf).physical_type, known, pages))
            for column, known, pages in zip(filter_columns, bounds, filter_pages, strict=True)
        ]
        starts, stops = self._keep(filter_columns, filter_pages, facts)
        if (stops - starts).sum() > _MAX_SHARE * row_group.num_rows:
            # Other row groups of values without an order are like this one.
            self._is_usable = any(known.is_ordered for known in bounds)
            return None
        pages = {leaf: index.pages(group, leaf) for leaf in self._leaves}
        if any(part.rows[-1] != row_group.num_rows for part in (*filter_pages, *pages.values())):
            raise PageIndexError("columns differ in their number of rows")
        needed = 0
        if len(starts):
            needed = sum(_encoded_size(part, starts, stops) for part in pages.values())
        whole = sum(row_group.column(leaf).total_compressed_size for leaf in self._leaves)
        if needed > min(_MAX_SHARE * whole, _MAX_BYTES):
            return None
        return PageSelection(index, group, starts, stops, pages, needed)

    def _open(self) -> PageIndex:
        if self._index is None:
            self._is_usable = False
            self._index = PageIndex(self._handle, self._metadata, self._key)
            self._is_usable = True
        return self._index

    def _keep(
        self,
        filter_columns: Sequence[FilterColumn],
        pages: Sequence[Pages],
        facts: Sequence[Sequence[_PageFacts]],
    ) -> tuple[Integers, Integers]:
        """The row ranges that may match the filter."""
        cuts = np.unique(np.concatenate([part.rows for part in pages]))
        starts, stops = cuts[:-1], cuts[1:]
        # The filter is evaluated once for all ranges about which the same is known.
        known = [list(dict.fromkeys(column)) for column in facts]
        cells = np.stack(
            [
                _codes(column, distinct)[np.searchsorted(part.rows, starts, "right") - 1]
                for column, distinct, part in zip(facts, known, pages, strict=True)
            ]
        )
        combinations, inverse = np.unique(cells, axis=1, return_inverse=True)
        if self._num_predicates * combinations.shape[1] > _MAX_EVALUATIONS:
            return cuts[:1], cuts[-1:]
        might = np.array(
            [
                might_match(self._row_filter, _metrics(filter_columns, known, codes))
                for codes in combinations.T.tolist()
            ],
            np.bool_,
        )
        keep = might[inverse.reshape(-1)]
        return _merge(starts[keep], stops[keep])


def _count_predicates(row_filter: Expr) -> int:
    found = []

    def note(predicate: BoundPredicate) -> Expr:
        found.append(predicate)
        return predicate

    map_leaves(row_filter, note)
    return len(found)


@dataclass(frozen=True, slots=True)
class _PageFacts:
    """What holds for every row of a page; `is_null` is None if rows may differ."""

    is_null: bool | None
    lower: bytes | None
    upper: bytes | None


def _facts(
    column: FilterColumn, physical: str, bounds: PageBounds, pages: Pages
) -> Iterator[_PageFacts]:
    num_rows = np.diff(pages.rows).tolist()
    counts = [None] * len(num_rows) if bounds.null_counts is None else bounds.null_counts
    parts = zip(num_rows, bounds.is_null, bounds.lower, bounds.upper, counts, strict=True)
    for rows, is_null, lower, upper, nulls in parts:
        if is_null:
            yield _PageFacts(True, None, None)
            continue
        if nulls is not None and not 0 <= nulls < rows:
            raise PageIndexError(f"{nulls} of {rows} rows are null in a page that has values")
        least, greatest = _bound(column, physical, lower), _bound(column, physical, upper)
        if least is None or greatest is None:
            least = greatest = None
        yield _PageFacts(False if nulls == 0 else None, least, greatest)


def _bound(column: FilterColumn, physical: str, raw: bytes) -> bytes | None:
    """An encoded value as a bound of the column's table type; None if it cannot be one."""
    if physical in _FIXED:
        (value,) = _FIXED[physical].unpack(raw)
        return bound_of(column, physical, value)
    if column.logical_type["Type"] == "Decimal" and not raw:
        return None
    return bound_of(column, physical, raw)


def _codes(facts: Sequence[_PageFacts], distinct: Sequence[_PageFacts]) -> Integers:
    code_of = {page: code for code, page in enumerate(distinct)}
    return np.array([code_of[page] for page in facts], np.int64)


def _metrics(
    filter_columns: Sequence[FilterColumn],
    known: Sequence[Sequence[_PageFacts]],
    codes: Sequence[int],
) -> RowGroupMetrics:
    """What holds for every row of a range, as the metrics of a single row."""
    facts = {
        column.field_id: pages[code]
        for column, pages, code in zip(filter_columns, known, codes, strict=True)
    }
    return RowGroupMetrics(
        1,
        dict.fromkeys(facts, 1),
        {at: int(page.is_null) for at, page in facts.items() if page.is_null is not None},
        {},
        {at: page.lower for at, page in facts.items() if page.lower is not None},
        {at: page.upper for at, page in facts.items() if page.upper is not None},
    )


def _merge(starts: Integers, stops: Integers) -> tuple[Integers, Integers]:
    """Merges sorted ranges that are close to each other."""
    if not len(starts):
        return starts, stops
    is_apart = starts[1:] - stops[:-1] >= _MIN_GAP
    return starts[np.append(True, is_apart)], stops[np.append(is_apart, True)]


def _encoded_size(pages: Pages, starts: Integers, stops: Integers) -> int:
    """Bytes to read for row ranges, including the dictionary."""
    selected = pages.sizes[pages.of_rows(starts, stops)]
    return int(selected.sum() + pages.offsets[0] - pages.start)
