"""Writes small Parquet files of in-memory values and returns them as `DataFile`s."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icebergds.encryption.key_metadata import new_key_metadata
from icebergds.encryption.stored_files import key_of_file
from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.formats.parquet.encryption import decryption_options, encryption_options
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import DOUBLE, FLOAT, UNKNOWN, VARIANT, IcebergType, is_scalar
from icebergds.spec.values.binary import to_bytes

Row = Sequence[Any]
"""In-memory values (see `spec.types`), one per column."""


def write_parquet_file(
    path: Path,
    schema: Schema,
    rows: Sequence[Row],
    row_group_size: int | None = None,
    with_metrics: bool = True,
    key_length: int | None = None,
) -> DataFile:
    """Writes rows as an unpartitioned data file with exact metrics of top-level scalar columns.

    Args:
        key_length: of the key that it is encrypted with, in bytes; None writes a plain file.
    """
    key = None if key_length is None else new_key_metadata(key_length)
    columns = [
        to_array(field.field_type, [row[index] for row in rows])
        for index, field in enumerate(schema.fields)
    ]
    pq.write_table(
        pa.table(columns, schema=schema_to_arrow(schema)),
        path,
        row_group_size=row_group_size,
        **encryption_options(key),
    )
    footer = pq.read_metadata(path, **decryption_options(key))
    length = path.stat().st_size
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    nans: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for field, column in zip(schema.fields, columns, strict=True):
        if not with_metrics or not is_scalar(field.field_type) or field.field_type == VARIANT:
            continue
        values[field.field_id] = len(column)
        nulls[field.field_id] = column.null_count
        if field.field_type in (FLOAT, DOUBLE):
            nans[field.field_id] = pc.sum(pc.is_nan(column)).as_py() or 0
        found = _ordered([row[schema.fields.index(field)] for row in rows], field.field_type)
        if found:
            lower[field.field_id] = to_bytes(field.field_type, found[0])
            upper[field.field_id] = to_bytes(field.field_type, found[-1])
    return DataFile(
        content=FileContent.DATA,
        file_path=str(path),
        file_format=FileFormat.PARQUET,
        spec_id=0,
        partition=(),
        record_count=len(rows),
        file_size_in_bytes=length,
        value_counts=values,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=tuple(_start_of(footer, i) for i in range(footer.num_row_groups)),
        key_metadata=None if key is None else key.of_length(length).serialized(),
    )


def table_in(file: DataFile, columns: list[str] | None = None) -> pa.Table:
    """What a Parquet file holds, as Arrow reads it."""
    key = key_of_file(file.key_metadata, file.file_path)
    return pq.ParquetFile(file.file_path, **decryption_options(key)).read(columns)


def ids_in(file: DataFile) -> list[int]:
    """The column `id` of a Parquet file, in its order."""
    ids: list[int] = table_in(file, ["id"])["id"].to_pylist()
    return ids


def _ordered(values: Sequence[Any], field_type: IcebergType) -> list[Any]:
    """The values that bounds cover, those that are neither null nor NaN, in ascending order."""
    if field_type == UNKNOWN:
        return []
    return sorted(value for value in values if value is not None and value == value)


def _start_of(footer: pq.FileMetaData, row_group: int) -> int:
    column = footer.row_group(row_group).column(0)
    offsets = (column.dictionary_page_offset, column.data_page_offset)
    return min(int(offset) for offset in offsets if offset)
