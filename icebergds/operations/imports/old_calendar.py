"""Refuses files with old dates that Spark wrote in another calendar than Iceberg's.

Spark before 3.0, and later ones if they are set so, write dates before 1582 in the Julian calendar,
and timestamps with the offsets from UTC that zones had before 1900. Spark converts them when it
reads such files, which are marked; no reader of Iceberg does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError
from icebergds.formats.data_file.read_request import ReadRequest
from icebergds.formats.data_file.stored_file import StoredFile
from icebergds.formats.data_reader import open_data_file
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    IcebergType,
    NestedField,
)
from icebergds.spec.values.dates import NANOS_PER_MICRO

_FIRST_DAY = -141_427
"""1582-10-15, in days since 1970."""
_FIRST_MICROS = -2_208_988_800_000_000
"""1900-01-01 in UTC, since when Spark converts nothing."""
_NANOS = (TIMESTAMP_NS, TIMESTAMPTZ_NS)


def check_calendar(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    file: StoredFile,
    schema: Schema,
    mapping: NameMapping,
) -> None:
    """Checks a file; columns are read if its footer does not tell how old their values are.

    Args:
        schema: of the table.
        mapping: gives columns their field ids if the file has none.

    Raises:
        InvalidDataError: a column has values that would be read as others.
        CorruptFileError, MissingFileError, StorageError: the file cannot be read.
    """
    unknown: list[NestedField] = []
    for field in schema.fields:
        inside = Schema((field,)).fields_by_id
        for field_id in file.hybrid & inside.keys():
            values = file.statistics.ranges.get(field_id)
            if values is None:
                if field not in unknown:
                    unknown.append(field)
            elif values.least < _first(inside[field_id].field_type):
                raise _too_old(field, location)
    if not unknown:
        return
    opened = open_data_file(io, location, file_format, table_schema=schema, name_mapping=mapping)
    with opened as reader:
        for positioned in reader.batches(ReadRequest(Schema(tuple(unknown)))):
            for field, column in zip(unknown, positioned.batch.columns, strict=True):
                if any(map(_is_old, _leaves(column))):
                    raise _too_old(field, location)


def _first(field_type: IcebergType) -> int:
    """The first value that is the same in both calendars."""
    if field_type == DATE:
        return _FIRST_DAY
    return _FIRST_MICROS * (NANOS_PER_MICRO if field_type in _NANOS else 1)


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    kind = array.type
    if pa.types.is_struct(kind):
        for part in array.flatten():
            yield from _leaves(part)
    elif pa.types.is_map(kind):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(array.flatten())
    else:
        yield array


def _is_old(array: pa.Array) -> bool:
    kind = array.type
    if pa.types.is_date32(kind):
        first, least = _FIRST_DAY, pc.min(array.cast(pa.int32())).as_py()
    elif pa.types.is_timestamp(kind):
        first = _FIRST_MICROS * (NANOS_PER_MICRO if kind.unit == "ns" else 1)
        least = pc.min(array.cast(pa.int64())).as_py()
    else:
        return False
    return least is not None and bool(least < first)


def _too_old(field: NestedField, location: str) -> InvalidDataError:
    return InvalidDataError(
        f"{location} cannot be added: Spark wrote dates of column {field.name!r} in the Julian "
        "calendar, which would be read as other ones; read the file with Spark and write its rows "
        "to the table"
    )
