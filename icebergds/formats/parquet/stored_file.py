"""Describes an existing Parquet file by its footer."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.arrow.errors import decoding
from icebergds.formats.data_file.file_schema import (
    FileColumn,
    columns_of,
    has_ids,
    walk_columns,
    with_ids,
)
from icebergds.formats.data_file.stored_file import StoredFile, columns_with_statistics
from icebergds.formats.parquet.columns import leaves_in
from icebergds.formats.parquet.file_metrics import footer_statistics, row_group_offsets
from icebergds.formats.parquet.footer import read_footer
from icebergds.formats.parquet.open import open_parquet
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.values.dates import FIRST_GREGORIAN_DAY

_BY_ARROW = "parquet-cpp-arrow"

# The marks of files with values of the Julian calendar, and the versions of Spark that set them.
_INT96 = ("legacyINT96", (3, 1))
_DATES_AND_TIMES = ("legacyDateTime", (3, 0))
_FIRST_DAY_OF_1900 = -25_567


def stored_parquet(
    handle: pa.NativeFile, location: str, schema: Schema, name_mapping: NameMapping
) -> StoredFile:
    """Describes an open file, whose columns have their names' ids if it has none.

    Raises:
        CorruptFileError: the file is damaged or not a Parquet file.
        UnsupportedFeatureError: the file is encrypted, or has columns that Arrow does not support.
    """
    with decoding(location, "Parquet"):
        footer = read_footer(handle, location)
        found = columns_of(open_parquet(handle, footer).schema_arrow)
    if sum(len(column.leaves) for column in found) != footer.num_columns:
        raise UnsupportedFeatureError(
            f"{location}: the Parquet schema has columns that Arrow does not support"
        )
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
    by_arrow = (footer.created_by or "").startswith(_BY_ARROW)
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
