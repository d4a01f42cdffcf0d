"""Describes an existing Avro data file; Avro has no statistics, and rows are counted by block."""

from __future__ import annotations

import pyarrow as pa

from icebergds.formats.avro.blocks import AvroBlocks
from icebergds.formats.avro.data_reader import file_columns
from icebergds.formats.data_file.file_schema import has_ids, walk_columns, with_ids
from icebergds.formats.data_file.stored_file import ColumnStatistics, StoredFile
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema


def stored_avro(
    handle: pa.NativeFile, location: str, schema: Schema, name_mapping: NameMapping
) -> StoredFile:
    """Describes an open file, whose columns have their names' ids if it has none.

    Raises:
        CorruptFileError: the file is damaged or not an Avro file of records.
        UnsupportedFeatureError: the file is encrypted.
    """
    blocks = AvroBlocks(handle, location)
    found = file_columns(blocks, location)
    columns = with_ids(found, schema, name_mapping)
    # Iceberg alone says whether a timestamp is an instant; to Avro's own readers it is.
    unzoned = {
        column.field_id
        for column in walk_columns(columns)
        if pa.types.is_timestamp(column.arrow_type) and not has_ids(found)
    }
    return StoredFile(
        columns,
        has_ids(found),
        sum(block.count for block in blocks),
        handle.size(),
        (),
        ColumnStatistics(),
        frozenset(field_id for field_id in unzoned if field_id is not None),
    )
