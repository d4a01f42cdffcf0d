"""Describes an existing Parquet file by its footer."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.errors import InvalidDataError, UnsupportedFeatureError
from icebergds.formats.arrow.arrays import as_list_of_entries, compacted, storage
from icebergds.formats.arrow.errors import decoding
from icebergds.formats.data_file.file_schema import (
    ColumnKind,
    FileColumn,
    columns_of,
    has_ids,
    walk_columns,
    with_ids,
)
from icebergds.formats.data_file.stored_file import StoredFile, columns_with_statistics
from icebergds.formats.parquet.columns import leaves_in
from icebergds.formats.parquet.encryption import decrypting_parquet
from icebergds.formats.parquet.file_metrics import footer_statistics, row_group_offsets
from icebergds.formats.parquet.footer import open_parquet, read_footer
from icebergds.formats.parquet.footer_counts import check_footer
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.values.dates import FIRST_GREGORIAN_DAY

_BATCH_ROWS = 8192
_BUFFER_SIZE = 1024 * 1024
_BY_ARROW = "parquet-cpp-arrow"

# The marks of files with values of the Julian calendar, and the versions of Spark that set them.
_INT96 = ("legacyINT96", (3, 1))
_DATES_AND_TIMES = ("legacyDateTime", (3, 0))
_FIRST_DAY_OF_1900 = -25_567


def stored_parquet(
    handle: pa.NativeFile,
    location: str,
    schema: Schema,
    name_mapping: NameMapping,
    key: KeyMetadata | None = None,
) -> StoredFile:
    """Describes an open file, whose columns have their names' ids if it has none.

    Maps with optional keys are read: a footer does not tell null keys from empty maps.

    Raises:
        CorruptFileError: the file is damaged or not a Parquet file, or its footer contradicts
            itself.
        InvalidDataError: a map has a null key.
        UnsupportedFeatureError: the file is encrypted and has no key, or has columns that Arrow
            does not support.
    """
    with decoding(location, "Parquet"), decrypting_parquet(key, location):
        footer = read_footer(handle, location, key)
        file = open_parquet(handle, footer, _BUFFER_SIZE, key)
        found = columns_of(file.schema_arrow)
        by_arrow = (footer.created_by or "").startswith(_BY_ARROW)
    if sum(len(column.leaves) for column in found) != footer.num_columns:
        raise UnsupportedFeatureError(
            f"{location}: the Parquet schema has columns that Arrow does not support"
        )
    check_footer(footer, handle.size(), location)
    with decoding(location, "Parquet"), decrypting_parquet(key, location):
        _check_keys(file, found, location)
    columns = with_ids(found, schema, name_mapping)
    measured = [column for column, _ in columns_with_statistics(columns, schema)]
    unzoned = frozenset(
        column.field_id
        for column in walk_columns(columns)
        if column.field_id is not None and _is_int96(column, footer)
    )
    int96, others = _is_hybrid(footer, *_INT96), _is_hybrid(footer, *_DATES_AND_TIMES)
    hybrid = {
        column.field_id: first
        for column in walk_columns(columns)
        if column.field_id is not None
        and (int96 if column.field_id in unzoned else others)
        and (first := _first_same_day(column.arrow_type)) is not None
    }
    return StoredFile(
        columns,
        has_ids(found),
        footer.num_rows,
        handle.size(),
        row_group_offsets(footer),
        footer_statistics(footer, leaves_in(columns), measured, {}, by_arrow=by_arrow),
        unzoned,
        hybrid,
    )


def _check_keys(file: pq.ParquetFile, columns: Sequence[FileColumn], location: str) -> None:
    for column in columns:
        if not any(part.has_optional_keys for part in walk_columns([column])):
            continue
        groups = list(range(file.num_row_groups))
        batches = file.reader.iter_batches(
            _BATCH_ROWS, groups, column_indices=list(column.leaves), use_threads=False
        )
        if any(_has_null_keys(column, batch.column(0)) for batch in batches):
            raise InvalidDataError(
                f"column {column.name!r} of {location} has maps with null keys, which Iceberg does "
                "not have; leave the file out"
            )


def _has_null_keys(column: FileColumn, array: pa.Array) -> bool:
    array = storage(array)
    match column.kind:
        case ColumnKind.STRUCT:
            parts = array.flatten()
        case ColumnKind.LIST:
            parts = [compacted(array).values]
        case ColumnKind.MAP:
            parts = compacted(as_list_of_entries(array)).values.flatten()
            if parts[0].null_count:
                return True
        case _:
            return False
    return any(map(_has_null_keys, column.children, parts))


def _is_int96(column: FileColumn, footer: pq.FileMetaData) -> bool:
    if not pa.types.is_timestamp(column.arrow_type):
        return False
    kind: str = footer.schema.column(column.leaves[0]).physical_type
    return kind == "INT96"


def _first_same_day(arrow_type: pa.DataType) -> int | None:
    """From which day on Spark writes alike in both calendars; None for types without days."""
    if pa.types.is_date(arrow_type):
        return FIRST_GREGORIAN_DAY
    # Spark converts timestamps with the offsets of zones from UTC, which changed until 1900.
    return _FIRST_DAY_OF_1900 if pa.types.is_timestamp(arrow_type) else None


def _is_hybrid(footer: pq.FileMetaData, mark: str, since: tuple[int, int]) -> bool:
    """Whether Spark wrote values before 1582 in the Julian calendar, which Iceberg has not.

    Args:
        mark: with which Spark marks such files since a version; earlier ones wrote all so.
    """
    told = footer.metadata or {}
    version = told.get(b"org.apache.spark.version")
    if version is None:
        return False
    numbers = tuple(int(part) for part in re.findall(rb"\d+", version)[:2])
    return numbers < since or f"org.apache.spark.{mark}".encode() in told
