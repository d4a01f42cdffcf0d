"""Refuses files with old dates that Spark wrote in another calendar than Iceberg's.

Spark before 3.0, and later ones if they are set so, write dates before 1582 to Parquet in the
Julian calendar, and timestamps with the offsets from UTC that zones had before 1900; to ORC, Spark
and Hive write all days so. Spark converts them when it reads such files, which are marked; other
engines do not where the files are those of an Iceberg table.
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
    ListType,
    MapType,
    NestedField,
    StructType,
)
from icebergds.spec.values.dates import MICROS_PER_DAY, NANOS_PER_MICRO

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
        for field_id in file.hybrid.keys() & inside.keys():
            values = file.statistics.ranges.get(field_id)
            if values is None:
                if field not in unknown:
                    unknown.append(field)
            elif values.least < _first(file, inside[field_id]):
                raise _too_old(field, location)
    if not unknown:
        return
    opened = open_data_file(io, location, file_format, table_schema=schema, name_mapping=mapping)
    with opened as reader:
        for positioned in reader.batches(ReadRequest(Schema(tuple(unknown)))):
            for field, column in zip(unknown, positioned.batch.columns, strict=True):
                if any(_is_old(file, leaf, values) for leaf, values in _leaves(field, column)):
                    raise _too_old(field, location)


def _first(file: StoredFile, leaf: NestedField) -> int:
    """The first value that is the same in both calendars."""
    day = file.hybrid[leaf.field_id]
    if leaf.field_type == DATE:
        return day
    return day * MICROS_PER_DAY * (NANOS_PER_MICRO if leaf.field_type in _NANOS else 1)


def _leaves(field: NestedField, array: pa.Array) -> Iterator[tuple[NestedField, pa.Array]]:
    match field.field_type:
        case StructType(fields):
            for inner, values in zip(fields, array.flatten(), strict=True):
                yield from _leaves(inner, values)
        case MapType() as kind:
            yield from _leaves(kind.key_field, array.keys)
            yield from _leaves(kind.value_field, array.items)
        case ListType() as kind:
            yield from _leaves(kind.element_field, array.flatten())
        case _:
            yield field, array


def _is_old(file: StoredFile, leaf: NestedField, array: pa.Array) -> bool:
    if leaf.field_id not in file.hybrid:
        return False
    width = pa.int32() if leaf.field_type == DATE else pa.int64()
    least = pc.min(array.cast(width)).as_py()
    return least is not None and bool(least < _first(file, leaf))


def _too_old(field: NestedField, location: str) -> InvalidDataError:
    return InvalidDataError(
        f"{location} cannot be added: it stores dates of column {field.name!r} in the Julian "
        "calendar, which would be read as other ones; read the file with Spark and write its rows "
        "to the table"
    )
