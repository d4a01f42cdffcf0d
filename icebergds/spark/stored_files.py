"""Tells from footers how Spark's Parquet reader finds columns in data files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.formats.data_file.file_schema import (
    columns_of,
    has_ids,
)
from icebergds.formats.parquet.footer import read_footer
from icebergds.formats.parquet.open import open_parquet
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile
from icebergds.spec.types import NestedField


def file_has_ids(io: FileIO, location: str) -> bool:
    """Whether any column of a file has a field id."""
    return has_ids(columns_of(_read(io, location)[1]))


def is_named(io: FileIO, file: DataFile, fields: Sequence[NestedField]) -> bool:
    """Whether a file has columns under the names of the fields, and no others under these."""
    columns = columns_of(_read(io, file.file_path)[1])
    ids = {field.field_id for field in fields}
    named = {field.name.lower(): field.field_id for field in fields}
    return all(
        column.field_id == named[name] if name in named else column.field_id not in ids
        for name, column in ((column.name.lower(), column) for column in columns)
    )


def some_of(files: Sequence[DataFile]) -> Iterator[DataFile]:
    """The first file, the last one and one between them."""
    yield from (files[index] for index in {0, len(files) // 2, len(files) - 1})


def _read(io: FileIO, location: str) -> tuple[pq.FileMetaData, pa.Schema]:
    with storage_failures("reading", location), io.open(location) as handle:
        footer = read_footer(handle, location)
        with open_parquet(handle, footer) as file:
            return footer, file.schema_arrow
