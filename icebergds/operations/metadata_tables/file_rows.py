"""Builds the rows of `files` and `entries` from the entries of a manifest, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.encryption.key_metadata import shown_key_metadata
from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.arrow.filter import filter_mask
from icebergds.formats.arrow.types import schema_to_arrow, to_arrow
from icebergds.formats.manifests import layout as ids
from icebergds.formats.manifests.bound_values import decode_bound_column
from icebergds.formats.manifests.columns import STATISTICS, EntryColumns, Int64s
from icebergds.operations.metadata_tables.schemas import ColumnMetric, MetadataTableSchema
from icebergds.spec.schema import Schema
from icebergds.spec.types import UNKNOWN, NestedField, StructType, children

_MAPS = dict(
    zip(
        (
            ids.COLUMN_SIZES,
            ids.VALUE_COUNTS,
            ids.NULL_VALUE_COUNTS,
            ids.NAN_VALUE_COUNTS,
            ids.LOWER_BOUNDS,
            ids.UPPER_BOUNDS,
        ),
        STATISTICS,
        strict=True,
    )
)
_SPEC_ID = 141
_SIZE = STATISTICS.index("column_sizes")


def needed_statistics(
    field_ids: Iterable[int], metrics: Mapping[int, ColumnMetric]
) -> frozenset[int] | None:
    """The columns whose statistics rows need; None for those of all columns.

    Args:
        field_ids: the ids of the innermost fields that are shown or compared.
    """
    field_ids = set(field_ids)
    shown = [metric for field_id, metric in metrics.items() if field_id in field_ids]
    if field_ids & set(_MAPS) or any(metric.metric == _SIZE for metric in shown):
        return None
    return frozenset(metric.column_id for metric in shown)


def innermost_ids(fields: Iterable[NestedField]) -> set[int]:
    """The ids of the fields that are not structs, at any depth of structs."""
    found: set[int] = set()
    for one in fields:
        if isinstance(one.field_type, StructType):
            found |= innermost_ids(children(one.field_type))
        else:
            found.add(one.field_id)
    return found


def entry_rows(
    columns: EntryColumns, table: MetadataTableSchema, shown: Schema, row_filter: Expr = TRUE
) -> pa.RecordBatch:
    """A row for each entry that matches a filter, in the Arrow types of `formats.arrow.types`.

    Args:
        columns: with the statistics that `needed_statistics` returns.
        shown: the columns of the rows; structs may be narrowed.
        row_filter: bound to the metadata table.
    """
    if row_filter != TRUE:
        compared = _Rows(columns, table.metrics)
        fields = table.schema.fields_by_id
        entries = pa.RecordBatch.from_arrays([columns.file_path], ["file_path"])
        mask = filter_mask(row_filter, entries, lambda field_id: compared.of(fields[field_id]))
        columns = columns.filter(mask)
    rows = _Rows(columns, table.metrics)
    arrays = [rows.of(one) for one in shown.fields]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_to_arrow(shown))


@dataclass(slots=True)
class _Rows:
    """The columns of rows, one for each entry."""

    columns: EntryColumns
    metrics: Mapping[int, ColumnMetric]
    _by_column: dict[str, _MapColumns] = field(default_factory=dict)

    def of(self, shown: NestedField) -> pa.Array:
        """A column, which may be a struct of others."""
        if not isinstance(shown.field_type, StructType):
            found, target = self.innermost(shown.field_id), to_arrow(shown.field_type)
            # Values of void transforms have another type, and those of unknown ones have none.
            if shown.field_type == UNKNOWN or found.null_count == len(found):
                return pa.nulls(len(found), target)
            return found.cast(target)
        arrays = [self.of(one) for one in shown.field_type.fields]
        return pa.StructArray.from_arrays(arrays, fields=list(to_arrow(shown.field_type)))

    def innermost(self, field_id: int) -> pa.Array:
        """The values of a field that is not a struct."""
        if field_id in self.metrics:
            return self._metric(self.metrics[field_id])
        entries = self.columns
        match field_id:
            case ids.STATUS:
                return _integers(entries.status)
            case ids.SNAPSHOT_ID:
                return pa.array(entries.snapshot_id)
            case ids.SEQUENCE_NUMBER:
                return pa.array(entries.data_sequence_number)
            case ids.FILE_SEQUENCE_NUMBER:
                return pa.array(entries.file_sequence_number)
            case ids.CONTENT:
                return _integers(entries.content)
            case ids.FILE_PATH:
                return entries.file_path
            case ids.FILE_FORMAT:
                return pc.utf8_upper(entries.file_format)
            case ids.RECORD_COUNT:
                return pa.array(entries.record_count)
            case ids.FILE_SIZE_IN_BYTES:
                return pa.array(entries.file_size_in_bytes)
            case ids.KEY_METADATA:
                return _shown_keys(entries.key_metadata)
            case ids.SPLIT_OFFSETS:
                return _usable_offsets(entries)
            case ids.EQUALITY_IDS:
                return entries.equality_ids
            case ids.SORT_ORDER_ID:
                return entries.sort_order_id.cast(pa.int32())
            case ids.FIRST_ROW_ID:
                return entries.first_row_id
            case ids.REFERENCED_DATA_FILE:
                return entries.referenced_data_file
            case ids.CONTENT_OFFSET:
                return entries.content_offset
            case ids.CONTENT_SIZE_IN_BYTES:
                return entries.content_size_in_bytes
            case _ if field_id == _SPEC_ID:
                return pa.repeat(pa.scalar(entries.spec_id, pa.int32()), len(entries))
            case _ if field_id in _MAPS:
                return entries.all_stats[_MAPS[field_id]]
            case _:
                return self._partition(field_id)

    def _partition(self, field_id: int) -> pa.Array:
        entries = self.columns
        for part, values in zip(entries.partition_type.fields, entries.partition, strict=True):
            if part.field_id == field_id:
                return values
        return pa.nulls(len(entries))

    def _metric(self, metric: ColumnMetric) -> pa.Array:
        name = STATISTICS[metric.metric]
        if self.columns.all_stats:
            if name not in self._by_column:
                self._by_column[name] = _MapColumns.of(self.columns.all_stats[name])
            values = self._by_column[name].column(metric.column_id)
        else:
            stats = self.columns.stats[metric.column_id]
            # Sizes come first, and are read only with all statistics.
            values = stats.columns()[metric.metric - 1]
        if name.endswith("bounds"):
            return decode_bound_column(metric.column_type, values)
        return values


@dataclass(frozen=True, slots=True)
class _MapColumns:
    """The entries of maps by their keys.

    Attributes:
        keys: sorted.
        order: the order of the entries, by their keys.
        rows: the map of each entry.
    """

    keys: Int64s
    order: Int64s
    rows: Int64s
    values: pa.Array
    length: int

    @classmethod
    def of(cls, maps: pa.MapArray) -> _MapColumns:
        offsets = maps.offsets.to_numpy(zero_copy_only=False)
        first, last = int(offsets[0]), int(offsets[-1])
        rows = np.repeat(np.arange(len(maps)), np.diff(offsets))
        keys = maps.keys.to_numpy(zero_copy_only=False)[first:last]
        order = np.argsort(keys, kind="stable")
        values = maps.items.slice(first, last - first)
        return cls(keys[order], order, rows, values, len(maps))

    def column(self, key: int) -> pa.Array:
        """The value of a key in each map, null if it is missing."""
        start, end = np.searchsorted(self.keys, [key, key + 1]).tolist()
        entries = self.order[start:end]
        at = np.full(self.length, -1)
        at[self.rows[entries]] = entries
        return self.values.take(pa.array(at, mask=at < 0))


def _shown_keys(key_metadata: pa.BinaryArray) -> pa.BinaryArray:
    if key_metadata.null_count == len(key_metadata):
        return key_metadata
    return pa.array(map(shown_key_metadata, key_metadata.to_pylist()), pa.binary())


def _integers(values: Int64s) -> pa.Array:
    return pa.array(values).cast(pa.int32())


def _usable_offsets(entries: EntryColumns) -> pa.ListArray:
    """The split offsets; as in Java, null if they do not lie in the file."""
    offsets = entries.split_offsets
    lengths = pc.fill_null(pc.list_value_length(offsets), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths)
    flat = offsets.flatten().to_numpy(zero_copy_only=False)
    has_any = lengths > 0
    last = np.full(len(entries), -1)
    last[has_any] = flat[ends[has_any] - 1]
    usable = has_any & (last < entries.file_size_in_bytes)
    if usable.all():
        return offsets
    return pc.if_else(pa.array(usable), offsets, pa.scalar(None, offsets.type))
