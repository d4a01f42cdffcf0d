"""Writes Avro data files with fastavro (spec: Appendix A, Avro)."""

from __future__ import annotations

import json

import fastavro.write
import pyarrow as pa

from icebergds.errors import InvalidOptionError
from icebergds.formats.avro.data_rows import avro_rows, avro_schema
from icebergds.formats.data_file.column_metrics import BatchMetrics, measured_columns
from icebergds.formats.data_file.metrics_modes import MetricsModes
from icebergds.formats.data_file.output_file import OutputFile
from icebergds.formats.data_file.required_columns import RequiredColumns
from icebergds.formats.data_file.write_properties import AVRO_CODECS, AvroProperties, codec_name
from icebergds.spec.json.schema import schema_to_json
from icebergds.spec.manifest import DataFile
from icebergds.spec.schema import Schema

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
