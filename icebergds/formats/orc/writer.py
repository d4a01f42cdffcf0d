"""Writes ORC data files with pyarrow (spec: Appendix A, ORC).

Field ids and the spec's other annotations are attributes of ORC types; Arrow writes them from the
metadata of fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set as AbstractSet
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.arrow.arrays import with_child, with_entries, with_fields
from icebergds.formats.arrow.errors import decoding
from icebergds.formats.arrow.types import to_arrow
from icebergds.formats.data_file.column_metrics import BatchMetrics, measured_columns
from icebergds.formats.data_file.metrics_modes import MetricsModes
from icebergds.formats.data_file.output_file import OutputFile
from icebergds.formats.data_file.required_columns import RequiredColumns
from icebergds.formats.data_file.stored_columns import Dialect, stored_batch, stored_schema
from icebergds.formats.data_file.write_properties import ORC_CODECS, OrcProperties, codec_name
from icebergds.formats.orc.tail import stripes_of
from icebergds.io.failures import storage_failures
from icebergds.spec.manifest import DataFile
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    LONG,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    VARIANT,
    FixedType,
    GeographyType,
    GeometryType,
    NestedField,
    PrimitiveType,
)

# The share of distinct values up to which strings have a dictionary, as in Java's writer.
_DICTIONARY_THRESHOLD = 0.8
# The assumed size of stripes relative to rows in memory, until the first stripe is written.
_ENCODED_SHARE = 0.5
_HEADER_BYTES = 3


class OrcDataWriter:
    """An ORC file being written; see `DataFileWriter`.

    Args:
        output: the file, open and empty.
        schema: of the rows, with field ids.
    """

    def __init__(
        self,
        output: OutputFile,
        schema: Schema,
        properties: OrcProperties,
        modes: MetricsModes,
    ) -> None:
        codec = codec_name(ORC_CODECS, properties.codec, "ORC")
        self._stored_schema = stored_schema(schema, _ORC, output.location)
        self._output = output
        self._schema = schema
        self._required = RequiredColumns(schema, output.location)
        self._metrics = BatchMetrics(measured_columns(schema, modes))
        self._num_rows = 0
        self._buffered_bytes = 0
        self._flushed_bytes = 0
        self._sink = _OrcSink(output.handle)
        self._writer = orc.ORCWriter(
            pa.PythonFile(self._sink, "w"),
            stripe_size=properties.stripe_size,
            compression=codec,
            compression_strategy=properties.strategy,
            dictionary_key_size_threshold=_DICTIONARY_THRESHOLD,
            bloom_filter_columns=_bloom_columns(self._stored_schema, properties.bloom_columns),
            bloom_filter_fpp=properties.bloom_fpp,
        )

    @staticmethod
    def check(schema: Schema, properties: OrcProperties, table: str) -> None:
        codec_name(ORC_CODECS, properties.codec, "ORC")
        stored_schema(schema, _ORC, table)

    @property
    def location(self) -> str:
        return self._output.location

    @property
    def num_rows(self) -> int:
        return self._num_rows

    @property
    def size(self) -> int:
        """Bytes of the stripes written plus an estimate for the rows in memory."""
        written = self._output.position
        share = written / self._flushed_bytes if self._flushed_bytes else _ENCODED_SHARE
        return written + int(self._buffered_bytes * share)

    def write(self, batch: pa.RecordBatch) -> None:
        self._required.check(batch)
        stored = stored_batch(batch, self._schema, self._stored_schema)
        for field, column in zip(stored.schema, stored.columns, strict=True):
            self._check_timestamps(field.name, column)
        before = max(self._output.position, _HEADER_BYTES)
        with self._output.encoding():
            self._metrics.add(batch)
            self._writer.write(_orc_table(stored))
            self._sink.check()
        self._num_rows += batch.num_rows
        self._buffered_bytes += batch.nbytes
        if self._output.position > before:
            self._flushed_bytes += self._buffered_bytes
            self._buffered_bytes = 0

    def close(self) -> DataFile:
        with self._output.encoding():
            if not self._num_rows:
                # Arrow takes the file's schema from the first batch.
                self._writer.write(_orc_table(pa.RecordBatch.from_pylist([], self._stored_schema)))
            self._writer.close()
            self._sink.check()
        self._output.close()
        with (
            storage_failures("reading", self.location),
            decoding(self.location, "ORC"),
            self._output.open_again() as handle,
        ):
            stripes = stripes_of(orc.ORCFile(handle).reader.serialized_file_tail())
        offsets = [stripe.offset for stripe in stripes]
        return self._output.describe(self._num_rows, self._metrics.result(), offsets)

    def abort(self) -> None:
        with suppress(Exception):
            self._writer.close()
        self._output.abort()

    def _check_timestamps(self, name: str, array: pa.Array) -> None:
        """Rejects timestamps that Arrow stores in ORC in a way that other readers misread."""
        for times in _timestamps(array):
            counts = times.view(pa.int64())
            earliest = pc.min(counts).as_py()
            if earliest is None:
                continue
            per_second = 1_000_000 if times.type.unit == "us" else 1_000_000_000
            # Arrow rounds their seconds up and stores negative nanoseconds, which ORC does not
            # allow: Java reads them a second too early. No writer can store fractions of the last
            # second before 1970: in Java's encoding they are read a second too late.
            if earliest < 0 and _has_early_fraction(counts, per_second):
                raise UnsupportedFeatureError(
                    f"{self.location}: column {name!r} holds timestamps before 1970 with fractions "
                    "of a second, which cannot be written to ORC; write another format"
                )


def _data_type(field: NestedField) -> pa.DataType:
    field_type = field.field_type
    if field_type == TIME:
        return pa.int64()
    if field_type == UUID or isinstance(field_type, FixedType):
        return pa.binary()
    return to_arrow(field_type)


_ATTRIBUTES = {
    TIME: {"iceberg.long-type": "TIME"},
    LONG: {"iceberg.long-type": "LONG"},
    TIMESTAMP: {"iceberg.timestamp-unit": "MICROS"},
    TIMESTAMPTZ: {"iceberg.timestamp-unit": "MICROS"},
    TIMESTAMP_NS: {"iceberg.timestamp-unit": "NANOS"},
    TIMESTAMPTZ_NS: {"iceberg.timestamp-unit": "NANOS"},
    UUID: {"iceberg.binary-type": "UUID"},
    BINARY: {"iceberg.binary-type": "BINARY"},
    VARIANT: {"iceberg.struct-type": "VARIANT"},
}


def _attributes(field: NestedField) -> dict[str, str]:
    match field.field_type:
        case FixedType(length=length):
            special = {"iceberg.binary-type": "FIXED", "iceberg.length": str(length)}
        case GeometryType():
            special = {"iceberg.binary-type": "GEOMETRY"}
        case GeographyType():
            special = {"iceberg.binary-type": "GEOGRAPHY"}
        case PrimitiveType():
            special = _ATTRIBUTES.get(field.field_type, {})
        case _:
            special = {}
    ids = {"iceberg.id": str(field.field_id), "iceberg.required": str(field.required).lower()}
    return ids | special


_ORC = Dialect("ORC", _data_type, _attributes)


def _bloom_columns(stored: pa.Schema, field_ids: AbstractSet[int]) -> list[int] | None:
    """The ORC column ids of some fields: ordinals over all columns at every level, from 1."""
    fields = _walk(stored)
    found = [
        ordinal
        for ordinal, field in enumerate(fields, start=1)
        if int((field.metadata or {}).get(b"iceberg.id", -1)) in field_ids
    ]
    return found or None


def _walk(fields: Iterable[pa.Field]) -> Iterator[pa.Field]:
    for field in fields:
        yield field
        if pa.types.is_map(field.type):
            yield from _walk([field.type.key_field, field.type.item_field])
        elif pa.types.is_nested(field.type):
            yield from _walk([field.type.field(at) for at in range(field.type.num_fields)])


def _timestamps(array: pa.Array) -> Iterator[pa.Array]:
    """The timestamp arrays at or below a column."""
    if pa.types.is_timestamp(array.type):
        yield array
    elif pa.types.is_struct(array.type):
        for at in range(array.type.num_fields):
            yield from _timestamps(array.field(at))
    elif pa.types.is_map(array.type):
        yield from _timestamps(array.keys)
        yield from _timestamps(array.items)
    elif pa.types.is_nested(array.type):
        yield from _timestamps(array.values)


def _has_early_fraction(counts: pa.Array, per_second: int) -> bool:
    """Whether a time before 1970 is not a whole second."""
    values = counts.drop_null().to_numpy(zero_copy_only=False)
    return bool((values[values < 0] % per_second).any())


def _orc_table(batch: pa.RecordBatch) -> pa.Table:
    """The rows of a batch in a form that Arrow's ORC writer stores correctly.

    All fields become nullable: ORC types do not have required fields either.
    """
    fields = [_optional(field) for field in batch.schema]
    columns = [
        _with_nulls_inside(_unsliced(column), field.type)
        for column, field in zip(batch.columns, fields, strict=True)
    ]
    return pa.table(columns, pa.schema(fields))


def _optional(field: pa.Field) -> pa.Field:
    """The field, nullable at every level except for map keys."""
    return field.with_type(_with_optional(field.type)).with_nullable(True)


def _with_optional(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(arrow_type):
        return pa.struct([_optional(field) for field in arrow_type])
    if pa.types.is_map(arrow_type):
        key = arrow_type.key_field
        key_field = key.with_type(_with_optional(key.type))
        return pa.map_(key_field, _optional(arrow_type.item_field))
    if pa.types.is_list(arrow_type):
        return pa.list_(_optional(arrow_type.value_field))
    return arrow_type


def _unsliced(array: pa.Array) -> pa.Array:
    """Copies nested columns: from slices of structs, Arrow's ORC writer stores other rows."""
    return pa.concat_arrays([array, array.slice(0, 0)]) if pa.types.is_nested(array.type) else array


def _with_nulls_inside(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The same values, with nulls in all fields of null structs, even in required ones.

    ORC stores no values there. Arrow's writer leaves them out only if the struct's parent has nulls
    too; otherwise it shifts the values of all later rows.
    """
    if pa.types.is_struct(target):
        parts = [
            _with_nulls_inside(part, field.type)
            for part, field in zip(array.flatten(), target, strict=True)
        ]
        return with_fields(array, target, parts)
    if pa.types.is_map(target):
        fields = [target.key_field, target.item_field]
        keys, items = (
            _with_nulls_inside(array.values.field(at), field.type)
            for at, field in enumerate(fields)
        )
        return with_entries(array, target, keys, items)
    if pa.types.is_list(target):
        return with_child(array, target, _with_nulls_inside(array.values, target.value_type))
    return array


class _OrcSink:
    """A Python file for `pyarrow.PythonFile` whose writes never raise.

    The library closes its file in a destructor, where an error of the file would end the process.

    Args:
        handle: the file to write to; it is not closed.
    """

    closed = False

    def __init__(self, handle: pa.NativeFile) -> None:
        self._handle = handle
        self._size = 0
        self._error: BaseException | None = None

    def write(self, data: bytes) -> int:
        """Writes to the file, unless a write has failed."""
        if self._error is None:
            try:
                self._handle.write(data)
            except BaseException as error:
                # Ctrl-C, too, must not reach the library.
                self._error = error
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def check(self) -> None:
        """Raises the error of the first write that failed."""
        if self._error is not None:
            raise self._error
