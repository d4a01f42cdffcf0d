"""Writes data and delete files of any format."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

import pyarrow as pa

from icebergds.encryption.key_metadata import new_key_metadata
from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.data_file.encryption import encrypted_orc
from icebergds.formats.data_file.output_file import OutputFile
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.schema import Schema


class DataFileWriter(Protocol):
    """A data or delete file being written; finished with `close` or `abort`.

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
        """Bytes written so far plus an estimate for the rows still in memory."""
        ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Appends rows, which must have exactly the Arrow schema `schema_to_arrow(schema)`.

        Raises:
            InvalidDataError: the batch has another schema, a required column has nulls, or a
                value cannot be stored.
        """
        ...

    def close(self) -> DataFile:
        """Completes the file and returns its `DataFile`, with metrics.

        The caller sets `spec_id`, `partition`, `equality_ids` and whatever else the writer does
        not know.
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
    """Creates a file, replacing an existing one, and opens it to write rows of a schema.

    Args:
        schema: of the rows; its field ids and its JSON go into the file.
        content: what the file holds; delete files have their own write properties.

    Raises:
        UnsupportedFeatureError: data files cannot have this format, or the format cannot store a
            column of the schema, or cannot be encrypted.
        InvalidOptionError: the format does not support the codec of the write options.
    """
    kind, chosen = _writer(file_format, properties, content, location)
    length = properties.key_length
    key = None if length is None else new_key_metadata(length)
    output = OutputFile(io, location, file_format, content, key)
    try:
        writer: DataFileWriter = kind(output, schema, chosen, properties.metrics)
    except BaseException:
        output.abort()
        raise
    return writer


def check_data_writer(
    file_format: FileFormat, schema: Schema, properties: WriteProperties, table: str
) -> None:
    """Checks, before a file is created, that a format can store a table's rows.

    Raises what `open_data_writer` raises.
    """
    kind, chosen = _writer(file_format, properties, FileContent.DATA, table)
    kind.check(schema, chosen, table)


def _writer(
    file_format: FileFormat, properties: WriteProperties, content: FileContent, where: str
) -> tuple[Any, Any]:
    """The writer class of a format and its settings; imports only that format's writer."""
    if properties.key_length is not None:
        _check_encrypted(file_format, properties, content, where)
    match file_format:
        case FileFormat.PARQUET:
            module = import_module("icebergds.formats.parquet.writer")
            return module.ParquetDataWriter, properties.parquet_for(content)
        case FileFormat.ORC:
            module = import_module("icebergds.formats.orc.writer")
            return module.OrcDataWriter, properties.orc_for(content)
        case FileFormat.AVRO:
            module = import_module("icebergds.formats.avro.data_writer")
            return module.AvroDataWriter, properties.avro_for(content)
        case _:
            raise UnsupportedFeatureError(
                f"{where}: {file_format} is not a data file format; "
                "supported are parquet, avro, orc"
            )


def _check_encrypted(
    file_format: FileFormat, properties: WriteProperties, content: FileContent, where: str
) -> None:
    if file_format is FileFormat.ORC:
        raise encrypted_orc(where)
    if file_format is FileFormat.PARQUET and properties.parquet_for(content).bloom_filters:
        raise UnsupportedFeatureError(
            f"{where}: encrypted Parquet files cannot have Bloom filters; remove the properties "
            "write.parquet.bloom-filter-enabled.* of the table"
        )
