"""Converts the statistics of Parquet row groups to the metrics that filters are evaluated on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from icebergds.errors import FormatError, InvalidDataError
from icebergds.expr.nodes import BoundPredicate, Expr, map_leaves
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn, find_child
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform, to_human
from icebergds.spec.types import IcebergType, ScalarType, TypeId, is_scalar
from icebergds.spec.values.binary import from_bytes, to_bytes
from icebergds.spec.values.dates import MICROS_PER_DAY, NANOS_PER_MICRO
from icebergds.spec.values.decimals import from_unscaled

_BYTE_STRINGS = frozenset({TypeId.STRING, TypeId.BINARY, TypeId.FIXED, TypeId.UUID})
_IN_NANOS = frozenset({TypeId.TIMESTAMP_NS, TypeId.TIMESTAMPTZ_NS})
_TIMES = _IN_NANOS | {TypeId.TIME, TypeId.TIMESTAMP, TypeId.TIMESTAMPTZ}
_NANOS_PER_UNIT = {"milliseconds": 10**6, "microseconds": 10**3, "nanoseconds": 1}


@dataclass(frozen=True, slots=True)
class FilterColumn:
    """A leaf column that a filter references.

    `logical_type` is Parquet's annotation in JSON, `field_type` the column's type in the table.
    """

    field_id: int
    leaf: int
    logical_type: Mapping[str, Any]
    field_type: ScalarType


@dataclass(frozen=True, slots=True)
class RowGroupMetrics:
    """The metrics of a row group by field id, named as in `DataFile`."""

    record_count: int
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)


def filter_columns(
    columns: Sequence[FileColumn], schema: pq.ParquetSchema, row_filter: Expr, source: str
) -> list[FilterColumn]:
    """The file's leaf columns that a bound filter references, except those in lists and maps."""
    types: dict[int, IcebergType] = {}

    def note(predicate: BoundPredicate) -> Expr:
        types[predicate.field_id] = predicate.field_type
        return predicate

    map_leaves(row_filter, note)
    found = []
    for field_id, field_type in types.items():
        leaf = _find_leaf(columns, field_id, source)
        if leaf is not None and is_scalar(field_type):
            annotation = json.loads(schema.column(leaf).logical_type.to_json())
            found.append(FilterColumn(field_id, leaf, annotation, field_type))
    return found


def row_group_metrics(
    group: pq.RowGroupMetaData, columns: Iterable[FilterColumn]
) -> RowGroupMetrics:
    """The metrics of some columns of a row group, as far as the footer has them.

    Bounds may be wider than the values, as writers may truncate them. NaNs are not counted.
    Statistics whose sort order is undefined, or that writers are known to get wrong, are dropped
    by the Parquet library.
    """
    value_counts: dict[int, int] = {}
    null_counts: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for column in columns:
        chunk = group.column(column.leaf)
        statistics = chunk.statistics
        if statistics is None:
            continue
        if statistics.has_null_count:
            value_counts[column.field_id] = chunk.num_values
            null_counts[column.field_id] = statistics.null_count
        if statistics.has_min_max:
            least = bound_of(column, chunk.physical_type, statistics.min_raw)
            greatest = bound_of(column, chunk.physical_type, statistics.max_raw)
            if least is not None and greatest is not None:
                lower[column.field_id] = least
                upper[column.field_id] = greatest
    return RowGroupMetrics(group.num_rows, value_counts, null_counts, {}, lower, upper)


def outside_bounds(
    footer: pq.FileMetaData,
    columns: Sequence[FileColumn],
    schema: Schema,
    bounds: Iterable[tuple[int, bytes, bytes]],
    source: str,
) -> Iterator[str]:
    """Describes the timestamp columns of which a footer has values outside of recorded bounds.

    Args:
        columns: of the file.
        schema: of the table.
        bounds: field ids, lower and upper bounds.
        source: the file, for errors.
    """
    for field_id, lower, upper in bounds:
        leaf, field = _find_leaf(columns, field_id, source), schema.find_field(field_id)
        if leaf is None or field is None or not is_scalar(field.field_type):
            continue
        annotation = json.loads(footer.schema.column(leaf).logical_type.to_json())
        stored = FilterColumn(field_id, leaf, annotation, field.field_type)
        try:
            recorded = from_bytes(field.field_type, lower), from_bytes(field.field_type, upper)
        except FormatError:
            continue
        for at in range(footer.num_row_groups):
            metrics = row_group_metrics(footer.row_group(at), [stored])
            if field_id not in metrics.lower_bounds:
                continue
            least = from_bytes(field.field_type, metrics.lower_bounds[field_id])
            greatest = from_bytes(field.field_type, metrics.upper_bounds[field_id])
            if least < recorded[0] or greatest > recorded[1]:
                shown = [
                    to_human(IdentityTransform(), field.field_type, value)
                    for value in (*recorded, least, greatest)
                ]
                yield (
                    f"column {schema.find_name(field_id)!r}: from {shown[0]} to {shown[1]}, but "
                    f"the file has values from {shown[2]} to {shown[3]}"
                )
                break


def _find_leaf(columns: Sequence[FileColumn], field_id: int, source: str) -> int | None:
    """The ordinal of the leaf column with a field id, at the top level or inside structs."""
    column = find_child(columns, field_id, source)
    if column is not None:
        return column.leaves[0] if column.kind is ColumnKind.LEAF else None
    for struct in columns:
        if struct.kind is ColumnKind.STRUCT:
            below = _find_leaf(struct.children, field_id, source)
            if below is not None:
                return below
    return None


def bound_of(column: FilterColumn, physical: str, raw: Any) -> bytes | None:
    """A physical value as a bound of the column's table type; None if it cannot be one."""
    try:
        value = _value(column, physical, raw)
        return None if value is None else to_bytes(column.field_type, value)
    except (InvalidDataError, ValueError):
        return None


def ticks_of(column: FilterColumn) -> tuple[int, int] | None:
    """The nanoseconds of one unit of a column of times, in the table and in the file.

    None if it is not such a column, or several values of the file read as one.
    """
    wanted, annotation = column.field_type.type_id, column.logical_type
    if wanted not in _TIMES or annotation["Type"] not in ("Timestamp", "Time"):
        return None
    per_tick = 1 if wanted in _IN_NANOS else NANOS_PER_MICRO
    stored = _NANOS_PER_UNIT[annotation["timeUnit"]]
    return (per_tick, stored) if stored >= per_tick else None


def _value(column: FilterColumn, physical: str, raw: Any) -> Any:
    """A physical value as the in-memory value that reading the column would give."""
    wanted = column.field_type.type_id
    annotation = column.logical_type
    logical = annotation["Type"]
    if wanted in _TIMES:
        return _time(wanted, annotation, physical, raw)
    match wanted:
        case TypeId.BOOLEAN if physical == "BOOLEAN":
            return raw
        case TypeId.INT | TypeId.LONG if physical in ("INT32", "INT64"):
            return _integer(annotation, raw) if logical in ("None", "Int") else None
        case TypeId.FLOAT | TypeId.DOUBLE if physical in ("FLOAT", "DOUBLE"):
            return None if math.isnan(raw) else raw
        case TypeId.DATE if logical == "Date":
            return raw
        case TypeId.DECIMAL if logical == "Decimal":
            number = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
            return from_unscaled(number, annotation["scale"])
        case TypeId.STRING if isinstance(raw, bytes):
            return raw.decode()
        case _ if wanted in _BYTE_STRINGS and isinstance(raw, bytes):
            return raw
        case _:
            return None


def _integer(annotation: Mapping[str, Any], raw: int) -> int:
    signed: bool = annotation.get("isSigned", True)
    bits: int = annotation.get("bitWidth", 64)
    return raw if signed else raw % (1 << max(32, bits))


def _time(wanted: TypeId, annotation: Mapping[str, Any], physical: str, raw: int) -> int | None:
    per_tick = 1 if wanted in _IN_NANOS else NANOS_PER_MICRO
    match annotation["Type"]:
        case "Timestamp" | "Time":
            nanos: int = raw * _NANOS_PER_UNIT[annotation["timeUnit"]]
            return nanos // per_tick
        case "Date":
            return raw * MICROS_PER_DAY * NANOS_PER_MICRO // per_tick
        case "None" if wanted is TypeId.TIME and physical == "INT64":
            return raw
        case _:
            return None
