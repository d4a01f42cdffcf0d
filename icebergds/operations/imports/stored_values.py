"""Checks that a file has the values that its path names, where its footer does not tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from icebergds.formats.arrow.types import repeat
from icebergds.formats.data_file.read_request import ReadRequest
from icebergds.formats.data_file.stored_file import StoredFile
from icebergds.formats.data_reader import open_data_file
from icebergds.io.fileio import FileIO
from icebergds.operations.imports.partitions import contradiction
from icebergds.spec.manifest import FileFormat
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.types import DOUBLE, FLOAT, NestedField


def check_stored_values(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    file: StoredFile,
    from_path: Mapping[int, Any],
    schema: Schema,
    mapping: NameMapping,
) -> None:
    """Reads the columns whose values a path names, if the file has them and no exact statistics.

    Args:
        from_path: the values that the path names, by field id.
        schema: of the table.
        mapping: gives columns their field ids if the file has none.

    Raises:
        InvalidDataError: a column has other values.
        CorruptFileError, MissingFileError, StorageError: the file cannot be read.
    """
    stored = {column.field_id for column in file.columns}
    unproven = [
        field
        for field in schema.fields
        if field.field_id in from_path
        and field.field_id in stored
        and not _is_proven(file, field, from_path[field.field_id])
    ]
    if not unproven:
        return
    request = ReadRequest(Schema(tuple(unproven)))
    opened = open_data_file(io, location, file_format, table_schema=schema, name_mapping=mapping)
    with opened as reader:
        for positioned in reader.batches(request):
            for field, column in zip(unproven, positioned.batch.columns, strict=True):
                value = from_path[field.field_id]
                if not _are_all(column, field, value):
                    raise contradiction(field, value, location)


def _is_proven(file: StoredFile, field: NestedField, value: Any) -> bool:
    found, field_id = file.statistics, field.field_id
    nulls, values = found.null_counts.get(field_id), found.ranges.get(field_id)
    if value is None:
        return nulls is not None and nulls == found.value_counts.get(field_id)
    # Bounds leave NaN out, and do not tell -0.0 from 0.0.
    is_exact = field.field_type not in (FLOAT, DOUBLE)
    return (
        is_exact and nulls == 0 and values is not None and values.least == value == values.greatest
    )


def _are_all(column: pa.Array, field: NestedField, value: Any) -> bool:
    (expected,) = repeat(field.field_type, value, 1).to_pylist()
    return all(_is_same(found, expected) for found in _distinct(column))


def _distinct(column: pa.Array) -> Iterable[Any]:
    values: Iterable[Any] = column.unique().to_pylist()
    return values


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        # NaN is not equal to itself, and -0.0 is to 0.0.
        are_nan = one != one and other != other
        return are_nan or (one == other and math.copysign(1, one) == math.copysign(1, other))
    return bool(one == other)
