"""Writes Parquet data files with pyarrow.

Rows are buffered as Arrow batches until they fill a row group. `write.parquet.row-group-size-bytes`
limits their size in memory; encoded row groups are smaller.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icebergds.formats.arrow.bounding_boxes import is_geospatial
from icebergds.formats.arrow.types import FIELD_ID
from icebergds.formats.data_file.bounds import Range, union_of
from icebergds.formats.data_file.column_metrics import (
    BatchMetrics,
    FileMetrics,
    MeasuredColumn,
    count_nans,
    measured_columns,
    range_of,
)
from icebergds.formats.data_file.metrics_modes import MetricsModes
from icebergds.formats.data_file.output_file import OutputFile
from icebergds.formats.data_file.required_columns import RequiredColumns
from icebergds.formats.data_file.stored_columns import stored_schema
from icebergds.formats.data_file.write_properties import (
    PARQUET_CODECS,
    BloomFilter,
    ParquetProperties,
    codec_name,
)
from icebergds.formats.parquet.columns import PARQUET
from icebergds.formats.parquet.encryption import encryption_options
from icebergds.formats.parquet.file_metrics import footer_metrics, row_group_offsets
from icebergds.formats.parquet.variant_annotation import AnnotatedOutput
from icebergds.formats.parquet.variant_columns import Layout, VariantMetrics
from icebergds.spec.json.schema import schema_to_json
from icebergds.spec.manifest import DataFile
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    STRING,
    VARIANT,
    FixedType,
)

# If a value is longer, Arrow's statistics have no range.
_STATISTICS_LIMIT = 4_096
_MAX_ROWS = 1 << 26
_WRITER_OPTIONS = frozenset(inspect.signature(pq.ParquetWriter.__init__).parameters)
# To estimate the encoded size of buffered rows, so many bytes of them are encoded: first once
# `_FIRST_SAMPLE` bytes are buffered, then each time the buffer is `_SAMPLE_AGAIN` times as large.
_SAMPLE_BYTES = 1024 * 1024
_FIRST_SAMPLE = 64 * 1024
_SAMPLE_AGAIN = 16


class ParquetDataWriter:
    """A Parquet file being written; see `DataFileWriter`.

    Args:
        output: the file, open and empty.
        schema: of the rows, with field ids.
    """

    def __init__(
        self, output: OutputFile, schema: Schema, properties: ParquetProperties, modes: MetricsModes
    ) -> None:
        self._codec = codec_name(PARQUET_CODECS, properties.codec, "Parquet")
        plain = stored_schema(schema, PARQUET, output.location)
        self._layout = Layout.of(schema, plain, output.location)
        self._output = output
        self._schema = schema
        self._properties = properties
        self._modes = modes
        self._required = RequiredColumns(schema, output.location)
        self._metrics = _RowGroupMetrics(measured_columns(schema, modes))
        self._variants = VariantMetrics(self._layout, ())
        self._buffer = RowBuffer()
        self._writer: pq.ParquetWriter | None = None
        self._annotated = _annotated_output(output, schema)
        self._footers: list[pq.FileMetaData] = []
        self._num_row_groups = 0
        self._num_rows = 0
        self._encoded_share = 1.0
        self._next_sample: float = _FIRST_SAMPLE

    @staticmethod
    def check(schema: Schema, properties: ParquetProperties, table: str) -> None:
        codec_name(PARQUET_CODECS, properties.codec, "Parquet")
        stored_schema(schema, PARQUET, table)

    @property
    def location(self) -> str:
        return self._output.location

    @property
    def num_rows(self) -> int:
        return self._num_rows

    @property
    def size(self) -> int:
        """Bytes written plus an estimate for the rows in memory."""
        waiting = self._buffer.nbytes
        if waiting >= self._next_sample:
            self._encoded_share = self._measure_share(self._buffer.latest(_SAMPLE_BYTES))
            self._next_sample *= _SAMPLE_AGAIN
        return self._output.position + int(waiting * self._encoded_share)

    def write(self, batch: pa.RecordBatch) -> None:
        self._required.check(batch)
        self._buffer.append(batch)
        self._num_rows += batch.num_rows
        if self._buffer.nbytes >= self._properties.row_group_size:
            self._flush()

    def close(self) -> DataFile:
        if self._buffer.num_rows:
            self._flush()
        with self._output.encoding():
            writer = self._writer or self._open(self._stored([]))
            if self._annotated is None:
                writer.close()
            else:
                with self._annotated.end():
                    writer.close()
        (footer,) = self._footers
        metrics = footer_metrics(
            footer, self._layout.leaves, self._metrics.columns, self._modes, self._metrics.ranges
        )
        self._metrics.complete(metrics)
        self._variants.complete(metrics)
        self._output.close()
        return self._output.describe(self._num_rows, metrics, row_group_offsets(footer))

    def abort(self) -> None:
        self._buffer.clear()
        with suppress(Exception):
            if self._writer is not None:
                self._writer.close()
        self._output.abort()

    def _flush(self) -> None:
        """Writes the rows in memory as one row group, or as several after a large batch."""
        limit = self._properties.row_group_size
        num_groups = max(1, round(self._buffer.nbytes / limit))
        rows_a_group = min(math.ceil(self._buffer.num_rows / num_groups), _MAX_ROWS)
        before, held = self._output.position, self._buffer.nbytes
        rows = pa.Table.from_batches(self._buffer.take())
        if self._writer is None and self._properties.shred_variants:
            count = self._properties.variant_buffer_size
            self._layout = self._layout.shredding(rows, count)
            self._variants = VariantMetrics(self._layout, self._metrics.columns)
        for start in range(0, rows.num_rows, rows_a_group):
            batches = rows.slice(start, rows_a_group).to_batches()
            self._metrics.add(self._num_row_groups, batches)
            with self._output.encoding():
                table = self._stored(batches)
                self._variants.add(table)
                writer = self._writer or self._open(table)
                writer.write_table(table, row_group_size=table.num_rows)
            self._num_row_groups += 1
        self._encoded_share = (self._output.position - before) / held if held else 1.0
        self._next_sample = math.inf

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        self._writer = pq.ParquetWriter(
            self._annotated or self._output.handle,
            self._layout.stored,
            metadata_collector=self._footers,
            **self._options(first),
            **encryption_options(self._output.key),
        )
        self._writer.add_key_value_metadata(
            {"iceberg.schema": json.dumps(schema_to_json(self._schema))}
        )
        return self._writer

    def _stored(self, batches: Sequence[pa.RecordBatch]) -> pa.Table:
        return pa.Table.from_batches(map(self._layout.batch, batches), self._layout.stored)

    def _measure_share(self, sample: Sequence[pa.RecordBatch]) -> float:
        """The encoded size of rows relative to their size in memory."""
        held = sum(batch.nbytes for batch in sample)
        with self._output.encoding():
            table = self._stored(sample)
            sink = pa.BufferOutputStream()
            footers: list[pq.FileMetaData] = []
            options = self._options(table)
            pq.write_table(table, sink, metadata_collector=footers, **options)
        groups = [footers[0].row_group(at) for at in range(footers[0].num_row_groups)]
        encoded = sum(
            group.column(at).total_compressed_size
            for group in groups
            for at in range(group.num_columns)
        )
        return encoded / held if held else 1.0

    def _options(self, first: pa.Table) -> dict[str, Any]:
        """The options of pyarrow; the first rows decide which columns have a dictionary."""
        properties = self._properties
        # Java encrypts pages of version 2 in a way of its own, and cannot read those of Arrow.
        is_v2 = properties.page_version == "v2" and self._output.key is None
        options: dict[str, Any] = {
            "compression": self._codec,
            "compression_level": properties.level,
            "data_page_size": properties.page_size,
            "data_page_version": "2.0" if is_v2 else "1.0",
            "dictionary_pagesize_limit": properties.dictionary_size,
            "use_dictionary": self._paths_where(self._dictionary_columns(first)),
            "write_statistics": self._paths_where(properties.statistics),
            "write_page_index": True,
            "store_decimal_as_integer": True,
            # Only Arrow would use its own schema; the file has Iceberg's.
            "store_schema": False,
        }
        hints = {
            "max_rows_per_page": properties.page_row_limit,
            "bloom_filter_options": self._bloom_filters(first.num_rows),
        }
        return options | {k: v for k, v in hints.items() if v and k in _WRITER_OPTIONS}

    def _dictionary_columns(self, first: pa.Table) -> dict[int, bool]:
        """Which columns have a dictionary, by field id; nested ones have one if not listed."""
        chosen = dict(self._properties.dictionary)
        for field, column in zip(self._layout.stored, first.columns, strict=True):
            field_id = int(field.metadata[FIELD_ID])
            if field_id not in chosen:
                chosen[field_id] = wants_dictionary(column)
        return chosen

    def _paths_where(self, chosen: Mapping[int, bool]) -> bool | list[str]:
        """The paths of the chosen leaf columns for pyarrow: True for all, False for none."""
        paths = [
            leaf.path
            for leaf in self._layout.leaves
            if leaf.field_id is None or chosen.get(leaf.field_id, True)
        ]
        return len(paths) == len(self._layout.leaves) or paths or False

    def _bloom_filters(self, num_rows: int) -> dict[str, dict[str, float]]:
        max_size = self._properties.bloom_filter_max_size
        paths = {leaf.field_id: leaf.path for leaf in self._layout.leaves}
        return {
            paths[field_id]: _bloom_filter(asked, num_rows, max_size)
            for field_id, asked in self._properties.bloom_filters.items()
            if field_id in paths
            and self._schema.fields_by_id[field_id].field_type not in (BOOLEAN, VARIANT)
        }


def _annotated_output(output: OutputFile, schema: Schema) -> AnnotatedOutput | None:
    """The file object that Arrow writes to if the schema has variants, else None."""
    fields = schema.fields_by_id.items()
    variants = {field_id for field_id, field in fields if field.field_type == VARIANT}
    return AnnotatedOutput(output.handle, variants, output.key) if variants else None


def _bloom_filter(asked: BloomFilter, num_rows: int, max_size: int) -> dict[str, float]:
    """A Bloom filter's options: for `ndv`, or the first row group's rows, within `max_size`."""
    # Split block Bloom filters: bits = -8 * ndv / ln(1 - fpp ** (1 / 8)).
    most = int(-math.log(1 - asked.fpp ** (1 / 8)) * max_size)
    return {"fpp": asked.fpp, "ndv": max(1, min(asked.ndv or num_rows, most))}


class _RowGroupMetrics:
    """Computes what footers lack: NaN counts, ranges of long values, metrics of geometries."""

    def __init__(self, columns: Sequence[MeasuredColumn]) -> None:
        self._geospatial = BatchMetrics(c for c in columns if is_geospatial(c.field_type))
        self._nans = {c: 0 for c in columns if c.is_floating}
        self._texts = [c for c in columns if c.has_bounds and _may_be_long(c)]
        self.columns = [c for c in columns if not is_geospatial(c.field_type)]
        self.ranges: dict[tuple[int, int], Range] = {}

    def add(self, row_group: int, batches: Sequence[pa.RecordBatch]) -> None:
        """Adds the rows of a row group, of the table's schema."""
        for batch in batches:
            self._geospatial.add(batch)
            for column in self._nans:
                self._nans[column] += count_nans(column.values(batch))
        for column in self._texts:
            arrays = [column.values(batch) for batch in batches]
            if any(_longest(array) > _STATISTICS_LIMIT for array in arrays):
                values = union_of(range_of(array) for array in arrays)
                if values is not None:
                    self.ranges[row_group, column.field_id] = values

    def complete(self, metrics: FileMetrics) -> None:
        """Adds these metrics to those of the footer."""
        metrics.add(self._geospatial.result())
        for column, count in self._nans.items():
            if column.field_id in metrics.value_counts:
                metrics.nan_value_counts[column.field_id] = count


def _may_be_long(column: MeasuredColumn) -> bool:
    field_type = column.field_type
    if isinstance(field_type, FixedType):
        return field_type.length > _STATISTICS_LIMIT
    return field_type in (STRING, BINARY)


def _longest(array: pa.Array) -> int:
    return int(pc.max(pc.binary_length(array)).as_py() or 0)


_SAMPLE_ROWS = 4_096
_SAMPLE_POSITIONS = np.sort(np.random.default_rng(0).random(_SAMPLE_ROWS))
# More distinct values do not fit into a dictionary, and trying one costs time.
_MOST_DISTINCT = 300_000
# A column of n values drawn from 0.63 n different ones has n / 2 distinct values. With more, the
# dictionary takes the space that its indices save.
_MOST_DISTINCT_SHARE = 0.63


def wants_dictionary(column: pa.ChunkedArray) -> bool:
    """Whether values repeat often enough for a dictionary, judged by a sample of random rows.

    Consecutive rows are not representative: equal values are often clustered, and so are distinct
    ones.
    """
    if pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
        return True
    if isinstance(column.type, pa.BaseExtensionType):
        stored = [chunk.storage for chunk in column.chunks]
        column = pa.chunked_array(stored, column.type.storage_type)
    sample = column
    if len(column) > _SAMPLE_ROWS:
        rows = (_SAMPLE_POSITIONS * len(column)).astype(np.int64)
        # No row twice: in a short column it would count as a repeated value.
        sample = column.take(pa.array(rows[np.diff(rows, prepend=-1) > 0]))
    values = len(sample) - sample.null_count
    if not values:
        return True
    drawn_from = min(_MOST_DISTINCT, _MOST_DISTINCT_SHARE * len(column) * values / len(sample))
    # The expected number of distinct values in as many draws from that many values.
    expected = drawn_from * -np.expm1(-values / drawn_from)
    return bool(pc.count_distinct(sample).as_py() <= expected)


# Smaller batches are concatenated: slices may keep much larger batches in memory, and each batch
# has some kilobytes of overhead.
_SMALL_ROWS = 4_096
_SMALL_BYTES = 512 * 1024
_MAX_SMALL = 64


class RowBuffer:
    """Batches of one schema, in order."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._small: list[pa.RecordBatch] = []
        self.num_rows = 0
        self.nbytes = 0

    def append(self, batch: pa.RecordBatch) -> None:
        """Appends rows."""
        size = batch.nbytes
        self.num_rows += batch.num_rows
        self.nbytes += size
        if batch.num_rows >= _SMALL_ROWS or size >= _SMALL_BYTES:
            self._gather()
            self._batches.append(batch)
        else:
            self._small.append(batch)
            if len(self._small) >= _MAX_SMALL:
                self._gather()

    def take(self) -> list[pa.RecordBatch]:
        """Returns all rows and empties the buffer."""
        self._gather()
        batches = self._batches
        self.clear()
        return batches

    def clear(self) -> None:
        """Drops all rows."""
        self._batches, self._small = [], []
        self.num_rows = self.nbytes = 0

    def latest(self, nbytes: int) -> list[pa.RecordBatch]:
        """The last rows, at most about `nbytes` bytes of them."""
        self._gather()
        taken: list[pa.RecordBatch] = []
        wanted = nbytes
        for batch in reversed(self._batches):
            size = batch.nbytes
            if size > wanted:
                count = batch.num_rows * wanted // size
                taken.append(batch.slice(batch.num_rows - count))
                break
            taken.append(batch)
            wanted -= size
        return taken[::-1]

    def _gather(self) -> None:
        if self._small:
            self._batches.append(pa.concat_batches(self._small))
            self._small.clear()
