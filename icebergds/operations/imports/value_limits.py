"""Refuses files with values that other engines would read as different ones.

Spark before 3.0, and later versions if configured so, write dates before 1582 to Parquet in the
Julian calendar, and timestamps with the offsets from UTC that zones had before 1900; Spark and Hive
write all days to ORC this way. Such files are marked, and Spark converts the values when it reads
them; other engines do not if the files belong to an Iceberg table. Java reads the bits of unsigned
numbers as those of signed ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError
from icebergds.formats.data_file.file_schema import walk_columns
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
# The greatest values of signed numbers of the same width.
_SIGNED = {pa.uint32(): 2**31 - 1, pa.uint64(): 2**63 - 1}


def check_limits(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    file: StoredFile,
    schema: Schema,
    mapping: NameMapping,
) -> None:
    """Checks a file; columns are read if its footer does not show how large their values are.

    Args:
        schema: the table's schema.
        mapping: gives columns their field ids if the file has none.

    Raises:
        InvalidDataError: a column has values that would be read as others.
        CorruptFileError, MissingFileError, StorageError: the file cannot be read.
    """
    limits = _limits(file, schema)
    unknown: list[NestedField] = []
    for field in schema.fields if limits and file.num_rows else ():
        for field_id in limits.keys() & Schema((field,)).fields_by_id.keys():
            values = file.statistics.ranges.get(field_id)
            if values is not None:
                limits[field_id].check(values.least, values.greatest, field, location)
            elif field not in unknown:
                unknown.append(field)
    if not unknown:
        return
    opened = open_data_file(io, location, file_format, table_schema=schema, name_mapping=mapping)
    with opened as reader:
        for positioned in reader.batches(ReadRequest(Schema(tuple(unknown)))):
            for field, column in zip(unknown, positioned.batch.columns, strict=True):
                for leaf, values in _leaves(field, column):
                    if leaf.field_id in limits:
                        found = pc.min_max(values.cast(_width(leaf)))
                        limits[leaf.field_id].check(
                            found["min"].as_py(), found["max"].as_py(), field, location
                        )


@dataclass(frozen=True, slots=True)
class _Limit:
    """The least or the greatest value that all engines read alike."""

    value: int
    is_least: bool

    def check(
        self, least: int | None, greatest: int | None, field: NestedField, location: str
    ) -> None:
        if least is None or greatest is None:
            return
        if self.is_least and least < self.value:
            raise InvalidDataError(
                f"{location} cannot be added: it stores dates of column {field.name!r} in the "
                "Julian calendar, which would be read as other ones; read the file with Spark and "
                "write its rows to the table"
            )
        if not self.is_least and greatest > self.value:
            raise InvalidDataError(
                f"{location} cannot be added: it stores numbers of column {field.name!r} without a "
                f"sign, of which other engines read those above {self.value} as negative ones; "
                "read the file and write its rows to the table"
            )


def _limits(file: StoredFile, schema: Schema) -> Mapping[int, _Limit]:
    """The limits of the table's columns at any level, by field id."""
    fields = schema.fields_by_id
    limits = {
        field_id: _Limit(_first(day, fields[field_id]), is_least=True)
        for field_id, day in file.hybrid.items()
        if field_id in fields
    }
    for column in walk_columns(file.columns):
        greatest = _SIGNED.get(column.arrow_type)
        if greatest is not None and column.field_id is not None and column.field_id in fields:
            limits[column.field_id] = _Limit(greatest, is_least=False)
    return limits


def _first(day: int, leaf: NestedField) -> int:
    """The first value of a day."""
    if leaf.field_type == DATE:
        return day
    return day * MICROS_PER_DAY * (NANOS_PER_MICRO if leaf.field_type in _NANOS else 1)


def _width(leaf: NestedField) -> pa.DataType:
    return pa.int32() if leaf.field_type == DATE else pa.int64()


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
