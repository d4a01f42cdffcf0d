"""Opens data and delete files of any format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.data_file.read_request import DataFileReader, PositionedBatch, ReadRequest
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema

__all__ = ["DataFileReader", "PositionedBatch", "ReadRequest", "open_data_file"]


# Imported with the first file of the format: most tasks read one format alone.
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
) -> Iterator[DataFileReader]:
    """A file, opened to read columns by field id (spec: Column Projection).

    Args:
        location: of the file, as metadata names it.
        table_schema: of the table, for files without field ids that no name mapping describes:
            Parquet columns are then matched by position, ORC and Avro columns by name.
        name_mapping: the table's `schema.name-mapping.default`, for files without field ids.

    Raises:
        MissingFileError: there is no such file.
        CorruptFileError: it is no whole file of the format.
        UnsupportedFeatureError: the format holds no rows, or uses what is not read.
    """
    if file_format not in _READERS:
        raise UnsupportedFeatureError(f"{location}: {file_format} is no format of data files")
    module, name = _READERS[file_format]
    kind = getattr(import_module(module), name)
    with io.open(location) as handle:
        yield kind(handle, location, table_schema=table_schema, name_mapping=name_mapping)
