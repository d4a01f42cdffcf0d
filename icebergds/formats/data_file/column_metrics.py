"""Computes the column metrics of data files, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.arrow.bounding_boxes import Box, box_of, corners, is_geospatial
from icebergds.formats.data_file.bounds import Range, has_bounds, serialized_bounds
from icebergds.formats.data_file.metrics_modes import MetricsMode, MetricsModes
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DOUBLE,
    FLOAT,
    UNKNOWN,
    NestedField,
    ScalarType,
    StructType,
    is_scalar,
)


@dataclass(frozen=True, slots=True)
class FileMetrics:
    """The metrics of a file by field id, named as in `DataFile`."""

    column_sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    nan_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)

    def add(self, other: FileMetrics) -> None:
        """Adds the metrics of other columns."""
        self.column_sizes.update(other.column_sizes)
        self.value_counts.update(other.value_counts)
        self.null_value_counts.update(other.null_value_counts)
        self.nan_value_counts.update(other.nan_value_counts)
        self.lower_bounds.update(other.lower_bounds)
        self.upper_bounds.update(other.upper_bounds)

    def add_bounds(self, column: MeasuredColumn, values: Range) -> None:
        """Sets the bounds of a column, as its metrics mode says."""
        lower, upper = serialized_bounds(column.field_type, values, column.mode)
        if lower is not None:
            self.lower_bounds[column.field_id] = lower
        if upper is not None:
            self.upper_bounds[column.field_id] = upper

    def add_box(self, field_id: int, box: Box) -> None:
        """Sets the bounds of a geometry or geography, which no metrics mode shortens."""
        if (found := corners(box)) is not None:
            self.lower_bounds[field_id], self.upper_bounds[field_id] = found


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """A scalar column with metrics: at the top level, or nested only in structs.

    No reader or writer keeps metrics of fields inside lists and maps. `path` holds the ordinals of
    the fields that lead to the column from the top of the schema.
    """

    field_id: int
    field_type: ScalarType
    path: tuple[int, ...]
    mode: MetricsMode

    @property
    def has_bounds(self) -> bool:
        return self.mode.has_bounds and has_bounds(self.field_type)

    @property
    def has_box(self) -> bool:
        """Whether the bounds are corners of a box."""
        return self.mode.has_bounds and is_geospatial(self.field_type)

    @property
    def is_floating(self) -> bool:
        return self.field_type in (FLOAT, DOUBLE)

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """The column of a batch of the table's schema; null if a struct around it is."""
        top, *inner = self.path
        array = batch.column(top)
        return pc.struct_field(array, inner) if inner else array


def measured_columns(schema: Schema, modes: MetricsModes) -> tuple[MeasuredColumn, ...]:
    """The columns with metrics; those of type unknown have none, as they are not stored."""
    return tuple(_measured(schema.fields, (), modes))


class BatchMetrics:
    """Computes the metrics of columns batch by batch."""

    def __init__(self, columns: Iterable[MeasuredColumn]) -> None:
        self._measures = [_Measure(column) for column in columns]

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the rows of a batch of the table's schema."""
        for measure in self._measures:
            measure.add(measure.column.values(batch))

    def result(self) -> FileMetrics:
        """The metrics of all rows so far."""
        out = FileMetrics()
        for measure in self._measures:
            field_id = measure.column.field_id
            out.value_counts[field_id] = measure.values
            out.null_value_counts[field_id] = measure.nulls
            if measure.column.is_floating:
                out.nan_value_counts[field_id] = measure.nans
            if measure.range is not None:
                out.add_bounds(measure.column, measure.range)
            if measure.box is not None:
                out.add_box(field_id, measure.box)
        return out


def count_nans(array: pa.Array) -> int:
    """How many values of a floating column are NaN."""
    return int(pc.sum(pc.is_nan(array)).as_py() or 0)


def range_of(array: pa.Array) -> Range | None:
    """The in-memory range of the values without nulls and NaN; None if there are none."""
    found = pc.min_max(_comparable(array)).as_py()
    least, greatest = found["min"], found["max"]
    # Arrow ignores NaN unless all values are NaN.
    return None if least is None or least != least else Range(least, greatest)


class _Measure:
    """The metrics of a column so far."""

    def __init__(self, column: MeasuredColumn) -> None:
        self.column = column
        self.values = 0
        self.nulls = 0
        self.nans = 0
        self.range: Range | None = None
        self.box: Box | None = None

    def add(self, array: pa.Array) -> None:
        self.values += len(array)
        self.nulls += array.null_count
        if self.column.is_floating:
            self.nans += count_nans(array)
        if self.column.has_bounds:
            found = range_of(array)
            self.range = self.range if found is None else found.union(self.range)
        # Once a value's extent is unknown, so is the column's.
        if self.column.has_box and (self.box is None or self.box.is_known):
            self.box = box_of(self.column.field_type, array).union(self.box)


def _measured(
    fields: Iterable[NestedField], path: tuple[int, ...], modes: MetricsModes
) -> Iterable[MeasuredColumn]:
    for at, nested in enumerate(fields):
        field_type = nested.field_type
        if isinstance(field_type, StructType):
            yield from _measured(field_type.fields, (*path, at), modes)
        elif is_scalar(field_type) and field_type != UNKNOWN:
            mode = modes[nested.field_id]
            if mode.has_counts:
                yield MeasuredColumn(nested.field_id, field_type, (*path, at), mode)


def _comparable(array: pa.Array) -> pa.Array:
    """Dates and times as their underlying integers."""
    if pa.types.is_date32(array.type):
        return array.view(pa.int32())
    if pa.types.is_temporal(array.type):
        return array.view(pa.int64())
    return array
