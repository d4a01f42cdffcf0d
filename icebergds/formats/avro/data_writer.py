"""Writes Avro data files with fastavro (spec: Appendix A, Avro)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import fastavro.write
import numpy as np
import pyarrow as pa

from icebergds.errors import InvalidOptionError
from icebergds.formats.arrow.arrays import validity, with_child, with_entries
from icebergds.formats.avro.schema import ScalarTypes, avro_name, decimal_size
from icebergds.formats.data_file.column_metrics import BatchMetrics, measured_columns
from icebergds.formats.data_file.metrics_modes import MetricsModes
from icebergds.formats.data_file.output_file import OutputFile
from icebergds.formats.data_file.required_columns import RequiredColumns
from icebergds.formats.data_file.write_properties import AVRO_CODECS, AvroProperties, codec_name
from icebergds.spec.json.schema import schema_to_json
from icebergds.spec.manifest import DataFile
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    STRING,
    VARIANT,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

_BLOCK_BYTES = 64_000
# Rows become dictionaries, so not too many at a time.
_CHUNK = 8_192


class AvroDataWriter:
    """An Avro file being written; see `DataFileWriter`.

    Args:
        output: the file, open and empty.
        schema: of the rows, with field ids.
    """

    def __init__(
        self, output: OutputFile, schema: Schema, properties: AvroProperties, modes: MetricsModes
    ) -> None:
        codec = codec_name(AVRO_CODECS, properties.codec, "Avro")
        self._output = output
        self._schema = schema
        self._required = RequiredColumns(schema, output.location)
        self._metrics = BatchMetrics(measured_columns(schema, modes))
        self._num_rows = 0
        try:
            with output.writing():
                self._writer = fastavro.write.Writer(
                    output.handle,
                    avro_schema(schema),
                    codec,
                    sync_interval=_BLOCK_BYTES,
                    metadata={"iceberg.schema": json.dumps(schema_to_json(schema))},
                    compression_level=properties.level,
                )
        except ValueError as error:
            raise InvalidOptionError(
                f"{output.location}: the codec {properties.codec!r} cannot be written: {error}"
            ) from error

    @staticmethod
    def check(schema: Schema, properties: AvroProperties, table: str) -> None:
        codec_name(AVRO_CODECS, properties.codec, "Avro")

    @property
    def location(self) -> str:
        return self._output.location

    @property
    def num_rows(self) -> int:
        return self._num_rows

    @property
    def size(self) -> int:
        """Bytes of the blocks written; less than a block is buffered."""
        return self._output.position

    def write(self, batch: pa.RecordBatch) -> None:
        self._required.check(batch)
        with self._output.encoding():
            self._metrics.add(batch)
            for start in range(0, batch.num_rows, _CHUNK):
                for row in avro_rows(batch.slice(start, _CHUNK), self._schema):
                    self._writer.write(row)
        self._num_rows += batch.num_rows

    def close(self) -> DataFile:
        with self._output.encoding():
            self._writer.flush()
        self._output.close()
        return self._output.describe(self._num_rows, self._metrics.result())

    def abort(self) -> None:
        self._output.abort()


def avro_schema(schema: Schema) -> dict[str, Any]:
    """The Avro schema of the records, with field ids."""
    return _Types().record("table", schema.fields)


def avro_rows(batch: pa.RecordBatch, schema: Schema) -> list[dict[str, Any]]:
    """A batch of the table's schema as records.

    Values are as stored: a date is its number of days, a decimal its bytes, and a map whose keys
    are not strings a list of entries.
    """
    arrays = [
        _stored(column, field.field_type)
        for column, field in zip(batch.columns, schema.fields, strict=True)
    ]
    names = [avro_name(field.name) for field in schema.fields]
    records = pa.RecordBatch.from_arrays(arrays, names)
    rows: list[dict[str, Any]] = records.to_pylist(maps_as_pydicts="strict")
    return rows


class _Types:
    """Avro types of one schema."""

    def __init__(self) -> None:
        self._scalars = ScalarTypes()

    def record(self, name: str, fields: Iterable[NestedField]) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [self._field(f) for f in fields]}

    def _field(self, field: NestedField) -> dict[str, Any]:
        name = avro_name(field.name)
        obj: dict[str, Any] = {
            "name": name,
            "type": self._optional(field),
            "field-id": field.field_id,
        }
        if name != field.name:
            obj["iceberg-field-name"] = field.name
        if field.optional:
            obj["default"] = None
        return obj

    def _optional(self, field: NestedField) -> Any:
        avro_type = self._type(field)
        return ["null", avro_type] if field.optional and avro_type != "null" else avro_type

    def _type(self, field: NestedField) -> Any:
        field_type = field.field_type
        match field_type:
            case StructType(fields=fields):
                return self.record(f"r{field.field_id}", fields)
            case ListType(element_id=element_id):
                element = self._optional(field_type.element_field)
                return {"type": "array", "items": element, "element-id": element_id}
            case MapType(key_type=key_type, key_id=key_id, value_id=value_id):
                if key_type == STRING:
                    return {
                        "type": "map",
                        "values": self._optional(field_type.value_field),
                        "key-id": key_id,
                        "value-id": value_id,
                    }
                entry = (field_type.key_field, field_type.value_field)
                items = self.record(f"k{key_id}_v{value_id}", entry)
                return {"type": "array", "logicalType": "map", "items": items}
            case _ if field_type == VARIANT:
                parts = [{"name": name, "type": "bytes"} for name in ("metadata", "value")]
                name = f"r{field.field_id}"
                return {"type": "record", "name": name, "fields": parts, "logicalType": "variant"}
            case _:
                return self._scalars.of(field_type)


def _stored(array: pa.Array, field_type: IcebergType) -> pa.Array:
    """The values as Avro stores them, with Avro's field names."""
    match field_type:
        case StructType(fields=fields):
            children = [_stored(array.field(at), f.field_type) for at, f in enumerate(fields)]
            names = [avro_name(f.name) for f in fields]
            return pa.StructArray.from_arrays(children, names, mask=_nulls(array))
        case ListType(element_type=element):
            values = _stored(array.values, element)
            return with_child(array, pa.list_(values.type), values)
        case MapType(key_type=key_type, value_type=value_type):
            entries = array.values
            keys = _stored(entries.field(0), key_type)
            values = _stored(entries.field(1), value_type)
            stored = pa.StructArray.from_arrays([keys, values], ["key", "value"])
            if key_type != STRING:
                return with_child(array, pa.list_(stored.type), stored)
            return with_entries(array, pa.map_(keys.type, values.type), keys, values)
        case DecimalType(precision=precision):
            return _decimal_bytes(array, decimal_size(precision))
        case _ if pa.types.is_date32(array.type):
            return array.view(pa.int32())
        case _ if pa.types.is_temporal(array.type):
            return array.view(pa.int64())
        case _:
            return array


def _decimal_bytes(array: pa.Array, size: int) -> pa.Array:
    """Decimals as big-endian numbers of the fewest bytes for their precision."""
    start = array.offset * 16
    words = np.frombuffer(array.buffers()[1], np.uint8)[start : start + len(array) * 16]
    data = np.ascontiguousarray(words.reshape(-1, 16)[:, ::-1][:, 16 - size :])
    buffers = [validity(array), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(size), len(array), buffers)


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
