"""Writes and reads single data files, of every format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.data_reader import (
    DataFileReader,
    PositionedBatch,
    ReadRequest,
    open_data_file,
)
from icebergds.formats.data_writer import open_data_writer
from icebergds.formats.parquet import thrift
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.sort import SortOrder


def with_id(
    name: str, arrow_type: pa.DataType, field_id: int | None = None, nullable: bool = True
) -> pa.Field:
    """An Arrow field with a field id, as Parquet files hold it."""
    metadata = None if field_id is None else {"PARQUET:field_id": str(field_id)}
    return pa.field(name, arrow_type, nullable=nullable, metadata=metadata)


def write_parquet(
    path: Path, fields: Sequence[pa.Field], columns: Sequence[Iterable[Any]], **options: Any
) -> str:
    """Writes columns of Python values or arrays; returns the file's location."""
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type)
        for field, column in zip(fields, columns, strict=True)
    ]
    pq.write_table(pa.table(arrays, schema=pa.schema(fields)), path, **options)
    return str(path)


def open_file(
    location: str,
    file_format: FileFormat = FileFormat.PARQUET,
    *,
    table_schema: Schema | None = None,
    name_mapping: NameMapping | None = None,
    key: KeyMetadata | None = None,
) -> AbstractContextManager[DataFileReader]:
    return open_data_file(
        FileIO(),
        location,
        file_format,
        table_schema=table_schema or Schema(()),
        name_mapping=name_mapping,
        key_metadata=None if key is None else key.serialized(),
    )


def encrypting(key: KeyMetadata | None, **more: Any) -> dict[str, Any]:
    """The options of `write_parquet` that encrypt a file; `more` are options of pyarrow's keys."""
    if key is None:
        return {}
    from pyarrow.parquet.encryption import create_encryption_properties

    given = {"aad_prefix": key.aad_prefix, "store_aad_prefix": False, **more}
    return {"encryption_properties": create_encryption_properties(key.encryption_key, **given)}


def read_batches(
    location: str,
    schema: Schema,
    *,
    file_format: FileFormat = FileFormat.PARQUET,
    name_mapping: NameMapping | None = None,
    constants: Mapping[int, Any] | None = None,
    split: tuple[int | None, int | None] = (None, None),
    key: KeyMetadata | None = None,
    **request: Any,
) -> list[PositionedBatch]:
    with open_file(
        location, file_format, table_schema=schema, name_mapping=name_mapping, key=key
    ) as reader:
        asked = ReadRequest(schema, constants or {}, **request)
        return list(reader.batches(asked, *split))


def read_rows(location: str, schema: Schema, **options: Any) -> list[tuple[Any, ...]]:
    """The rows of a file as tuples in the order of the schema."""
    return [row for read in read_batches(location, schema, **options) for row in rows_of(read)]


def rows_of(read: PositionedBatch) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in read.batch.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * read.num_rows


def write_file(
    path: Path,
    schema: Schema,
    batches: Sequence[pa.RecordBatch],
    properties: Mapping[str, str] | None = None,
    *,
    file_format: FileFormat = FileFormat.PARQUET,
    content: FileContent = FileContent.DATA,
) -> DataFile:
    """Writes batches to one file as write tasks do."""
    settings = WriteProperties.of(properties or {}, schema, SortOrder())
    writer = open_data_writer(FileIO(), str(path), file_format, schema, settings, content=content)
    for batch in batches:
        writer.write(batch)
    return writer.close()


def with_optional_keys(location: Path | str) -> str:
    """Makes maps with optional keys, as some writers do, of a file's lists of required pairs.

    Arrow writes no such maps; their values are stored like those of the lists.
    """
    path = Path(location)
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer, _ = thrift.decode_struct(content, start)
    elements = thrift.values_of(footer, 2, thrift.STRUCT)
    paths = [
        thrift.values_of(chunk[3][1], 3, thrift.BINARY)
        for group in thrift.values_of(footer, 4, thrift.STRUCT)
        for chunk in thrift.values_of(group, 1, thrift.STRUCT)
    ]
    for group, entries, pair in zip(elements[:], elements[1:], elements[2:], strict=False):
        # Repetition types: 0 required, 2 repeated. Annotations: 3 LIST, 1 and 2 MAP.
        if entries.get(3) == (thrift.I32, 2) and pair.get(3) == (thrift.I32, 0) and 5 in pair:
            group |= {6: (thrift.I32, 1), 10: (thrift.STRUCT, {2: (thrift.STRUCT, {})})}
            entries |= {4: (thrift.BINARY, b"key_value"), 5: pair[5]}
            elements.remove(pair)
    for parts in paths:
        parts[:] = b".".join(parts).replace(b"list.element", b"key_value").split(b".")
    encoded = thrift.encode_struct(footer)
    path.write_bytes(content[:start] + encoded + len(encoded).to_bytes(4, "little") + b"PAR1")
    return str(path)
