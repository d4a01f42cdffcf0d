"""Describes an existing data file as its footer does: columns, rows, statistics of columns.

No metrics mode is applied: bounds are whole, so that they can be compared and transformed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from icebergds.formats.data_file.bounds import Range
from icebergds.formats.data_file.column_metrics import FileMetrics, MeasuredColumn, measured_columns
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn
from icebergds.formats.data_file.metrics_modes import FULL, MetricsModes
from icebergds.spec.schema import Schema


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of a file's columns by field id.

    Attributes:
        sizes: bytes in the file, of columns at any level.
        value_counts, null_counts: of scalar columns outside of lists and maps.
        ranges: of the values of such columns; they may be wider than the values. Columns whose
            range is not known, and those of nulls alone, have none.
    """

    sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_counts: dict[int, int] = field(default_factory=dict)
    ranges: dict[int, Range] = field(default_factory=dict)

    def metrics(self, columns: Iterable[MeasuredColumn], modes: MetricsModes) -> FileMetrics:
        """What metrics modes keep of the statistics.

        Args:
            columns: those that have more than a size.
        """
        out = FileMetrics()
        out.column_sizes.update(
            (field_id, size) for field_id, size in self.sizes.items() if modes[field_id].has_counts
        )
        for column in columns:
            field_id = column.field_id
            if field_id in self.value_counts:
                out.value_counts[field_id] = self.value_counts[field_id]
                out.null_value_counts[field_id] = self.null_counts[field_id]
            if column.has_bounds and field_id in self.ranges:
                out.add_bounds(column, self.ranges[field_id])
        return out


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file that something else has written.

    Attributes:
        columns: with the field ids of the file or, if it has none, those of its columns' names.
        has_own_ids: whether the file has field ids.
        num_rows: the number of rows.
        size: in bytes.
        split_offsets: where its row groups or stripes begin.
        statistics: of the columns; empty if the format has none.
        unzoned: field ids of timestamps of which the file does not say whether they are instants.
        hybrid: by field id of dates and timestamps whose old values are in the Julian calendar:
            the first day since 1970 from which on they are the same in Iceberg's.
    """

    columns: tuple[FileColumn, ...]
    has_own_ids: bool
    num_rows: int
    size: int
    split_offsets: tuple[int, ...]
    statistics: ColumnStatistics
    unzoned: frozenset[int]
    hybrid: Mapping[int, int] = field(default_factory=dict)


def columns_with_statistics(
    columns: Sequence[FileColumn], schema: Schema
) -> Iterable[tuple[MeasuredColumn, FileColumn]]:
    """The scalar columns of a table that a file has outside of lists and maps."""
    leaves = dict(_leaves(columns))
    for column in measured_columns(schema, MetricsModes(FULL)):
        if column.field_id in leaves:
            yield column, leaves[column.field_id]


def _leaves(columns: Iterable[FileColumn]) -> Iterable[tuple[int | None, FileColumn]]:
    for column in columns:
        if column.kind is ColumnKind.STRUCT:
            yield from _leaves(column.children)
        elif column.kind is ColumnKind.LEAF:
            yield column.field_id, column
