"""Writes data and delete files of any format."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.avro_writer import AvroDataWriter
from icebergds.formats.orc_writer import OrcDataWriter
from icebergds.formats.output_file import OutputFile
from icebergds.formats.parquet_writer import ParquetDataWriter
from icebergds.formats.write_properties import WriteProperties
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.schema import Schema


class DataFileWriter(Protocol):
    """A data or delete file that is being written; it ends with `close` or `abort`.

    After an error only `abort` may be called.
    """

    @property
    def location(self) -> str: ...

    @property
    def num_rows(self) -> int:
        """Rows written so far."""
        ...

    @property
    def size(self) -> int:
        """Bytes written so far, and about how many more the rows in memory will take."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows, of exactly the Arrow schema `schema_to_arrow(schema)`.

        Raises:
            InvalidDataError: the batch is of another schema, a required column has nulls, or a
                value cannot be stored.
        """
        ...

    def close(self) -> DataFile:
        """Completes the file and describes it, with metrics, as one of no partition.

        `spec_id`, `partition`, `equality_ids` and what else the file does not know is the caller's
        to replace.
        """
        ...

    def abort(self) -> None:
        """Closes the file and deletes it."""
        ...


def open_data_writer(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    schema: Schema,
    properties: WriteProperties,
    *,
    content: FileContent = FileContent.DATA,
) -> DataFileWriter:
    """A new file, in the place of one that is there, opened to write rows of a schema.

    Args:
        schema: of the rows; its field ids and its JSON go into the file.
        content: what the file holds; delete files have settings of their own.

    Raises:
        UnsupportedFeatureError: the format holds no rows, or cannot hold a column of the schema.
        InvalidOptionError: the codec of the write options is none of the format's.
    """
    if file_format not in _FORMATS:
        raise UnsupportedFeatureError(f"{location}: {file_format} is no format of data files")
    output = OutputFile(io, location, file_format, content)
    try:
        match file_format:
            case FileFormat.PARQUET:
                return ParquetDataWriter(
                    output, schema, properties.parquet_for(content), properties.metrics
                )
            case FileFormat.ORC:
                return OrcDataWriter(
                    output, schema, properties.orc_for(content), properties.metrics
                )
            case _:
                return AvroDataWriter(
                    output, schema, properties.avro_for(content), properties.metrics
                )
    except BaseException:
        output.abort()
        raise


_FORMATS = frozenset({FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO})
