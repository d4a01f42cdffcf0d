"""Computes the metrics of a Parquet file from its footer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq

from icebergds.formats.data_file.bounds import Range
from icebergds.formats.data_file.column_metrics import FileMetrics, MeasuredColumn
from icebergds.formats.data_file.metrics_modes import MetricsModes
from icebergds.formats.data_file.stored_file import ColumnStatistics
from icebergds.formats.parquet.columns import ParquetLeaf
from icebergds.formats.parquet.row_group_metrics import FilterColumn, bound_of
from icebergds.spec.values.binary import from_bytes

ChunkRanges = Mapping[tuple[int, int], Range]
"""Ranges of column chunks whose statistics lack them, by row group and field id."""


def footer_metrics(
    footer: pq.FileMetaData,
    leaves: Sequence[ParquetLeaf],
    columns: Sequence[MeasuredColumn],
    modes: MetricsModes,
    known_ranges: ChunkRanges,
) -> FileMetrics:
    """Column sizes, value counts, null counts and bounds of a file that Arrow has written.

    Footers have no NaN counts. Columns without statistics only have sizes. A column has bounds only
    if all its row groups do, except for those whose values are all null or NaN.
    """
    found = footer_statistics(footer, leaves, columns, known_ranges, by_arrow=True)
    return found.metrics(columns, modes)


def footer_statistics(
    footer: pq.FileMetaData,
    leaves: Sequence[ParquetLeaf],
    columns: Iterable[MeasuredColumn],
    known_ranges: ChunkRanges,
    *,
    by_arrow: bool,
) -> ColumnStatistics:
    """What a footer says of columns, all of which the file has.

    Args:
        by_arrow: whether Arrow has written the file: it leaves out the range of floating-point
            values only if all are NaN. Others do so if any is.
    """
    ordinals: dict[int, list[int]] = {}
    for at, leaf in enumerate(leaves):
        if leaf.field_id is not None:
            ordinals.setdefault(leaf.field_id, []).append(at)
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    out = ColumnStatistics()
    for field_id, parts in ordinals.items():
        out.sizes[field_id] = sum(
            group.column(part).total_compressed_size for group in groups for part in parts
        )
    for column in columns:
        # The parts of a variant are null together.
        ordinal = ordinals[column.field_id][0]
        chunks = [group.column(ordinal) for group in groups]
        if all(c.statistics is not None and c.statistics.has_null_count for c in chunks):
            out.value_counts[column.field_id] = sum(c.num_values for c in chunks)
            out.null_counts[column.field_id] = sum(c.statistics.null_count for c in chunks)
            if column.has_bounds:
                annotation = json.loads(footer.schema.column(ordinal).logical_type.to_json())
                stored = FilterColumn(column.field_id, ordinal, annotation, column.field_type)
                values = _file_range(column, stored, chunks, known_ranges, by_arrow)
                if values is not None:
                    out.ranges[column.field_id] = values
    return out


def row_group_offsets(footer: pq.FileMetaData) -> tuple[int, ...]:
    """The offsets of the row groups: those of the first page of their first column."""
    return tuple(_first_page(footer.row_group(at).column(0)) for at in range(footer.num_row_groups))


def _first_page(chunk: pq.ColumnChunkMetaData) -> int:
    offsets = (chunk.dictionary_page_offset, chunk.data_page_offset)
    return min(int(offset) for offset in offsets if offset)


def _file_range(
    column: MeasuredColumn,
    stored: FilterColumn,
    chunks: Sequence[pq.ColumnChunkMetaData],
    known_ranges: ChunkRanges,
    by_arrow: bool,
) -> Range | None:
    """The range of all values; None if there are none or a row group's range is unknown."""
    whole: Range | None = None
    for at, chunk in enumerate(chunks):
        found = known_ranges.get((at, column.field_id)) or _chunk_range(column, stored, chunk)
        if found is not None:
            whole = found.union(whole)
        elif not _is_empty(column, chunk, by_arrow):
            return None
    return whole


def _chunk_range(
    column: MeasuredColumn, stored: FilterColumn, chunk: pq.ColumnChunkMetaData
) -> Range | None:
    statistics = chunk.statistics
    if not statistics.has_min_max:
        return None
    least = _value(column, bound_of(stored, chunk.physical_type, statistics.min_raw))
    greatest = _value(column, bound_of(stored, chunk.physical_type, statistics.max_raw))
    return None if least is None or greatest is None else Range(least, greatest)


def _value(column: MeasuredColumn, bound: bytes | None) -> Any:
    return None if bound is None else from_bytes(column.field_type, bound)


def _is_empty(column: MeasuredColumn, chunk: pq.ColumnChunkMetaData, by_arrow: bool) -> bool:
    """Whether all values are known to be null or NaN."""
    statistics = chunk.statistics
    if statistics.num_values == 0:
        return True
    return by_arrow and column.is_floating and not statistics.has_min_max
