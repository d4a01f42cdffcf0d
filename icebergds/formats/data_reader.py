"""Opens data and delete files of any format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from icebergds.encryption.stored_files import decrypting, key_of_file
from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.data_file.encryption import encrypted_orc, telling_encrypted
from icebergds.formats.data_file.read_request import DataFileReader, PositionedBatch, ReadRequest
from icebergds.formats.wrong_counts import Recorded
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema

__all__ = ["DataFileReader", "PositionedBatch", "ReadRequest", "open_data_file"]


# Imported with the first file of the format: most tasks read only one format.
_READERS = {
    FileFormat.PARQUET: ("icebergds.formats.parquet.reader", "ParquetReader"),
    FileFormat.AVRO: ("icebergds.formats.avro.data_reader", "AvroReader"),
    FileFormat.ORC: ("icebergds.formats.orc.reader", "OrcReader"),
}


@contextmanager
def open_data_file(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    *,
    table_schema: Schema,
    name_mapping: NameMapping | None = None,
    recorded: Recorded | None = None,
    key_metadata: bytes | None = None,
    checks_pages: bool = False,
) -> Iterator[DataFileReader]:
    """Opens a file to read its columns by field id (spec: Column Projection).

    Args:
        location: path of the file, as in metadata.
        table_schema: used for files without field ids if there is no name mapping: Parquet columns
            are then matched by position, ORC and Avro columns by name.
        name_mapping: the table's `schema.name-mapping.default`, for files without field ids.
        recorded: what the file's manifest says of it. It is compared once the number of rows is
            known, which for Avro files is after their last row was read.
        key_metadata: of the file, as its manifest has it; None if it is not encrypted.
        checks_pages: compare pages with their checksums, which some Parquet files have. Not all
            writers compute them right, so reads of rows do not.

    Raises:
        MissingFileError: the file does not exist.
        StorageError: the storage fails, also while its rows are read.
        CorruptFileError: the file is damaged, of another format, or has other rows than recorded,
            or it does not fit its key.
        UnsupportedFeatureError: data files cannot have this format, or the file is encrypted and
            has no key or is an ORC file, or it uses a feature that is not supported.
    """
    if file_format not in _READERS:
        raise UnsupportedFeatureError(
            f"{location}: {file_format} is not a data file format; "
            f"supported are {', '.join(_READERS)}"
        )
    module, name = _READERS[file_format]
    kind = getattr(import_module(module), name)
    options: dict[str, Any] = {"table_schema": table_schema, "name_mapping": name_mapping}
    key = key_of_file(key_metadata, location)
    if file_format is FileFormat.AVRO:
        options["max_block_bytes"] = io.max_block_bytes
    elif file_format is FileFormat.PARQUET:
        options |= {"key": key, "checks_pages": checks_pages}
    elif key is not None:
        raise encrypted_orc(location)
    stream_key = key if file_format is FileFormat.AVRO else None
    size = None if recorded is None else recorded.file_size_in_bytes
    with (
        storage_failures("reading", location),
        io.open(location, size) as handle,
        decrypting(handle, stream_key, location) as plain,
    ):
        with telling_encrypted(plain, location):
            reader = kind(plain, location, **options)
        if recorded is None:
            yield reader
            return
        if recorded.bounds and file_format is FileFormat.PARQUET:
            recorded.check_bounds(location, reader.outside_bounds(recorded.bounds))
        known = reader.num_rows
        if known is not None:
            recorded.check(location, known, handle.size())
        yield reader
        if known is None and reader.num_rows is not None:
            recorded.check(location, reader.num_rows, handle.size())
