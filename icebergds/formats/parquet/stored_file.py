"""Describes an existing Parquet file by its footer."""

from __future__ import annotations

import pyarrow as pa

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.arrow.errors import decoding
from icebergds.formats.data_file.file_schema import columns_of, has_ids, walk_columns, with_ids
from icebergds.formats.data_file.stored_file import StoredFile, columns_with_statistics
from icebergds.formats.parquet.columns import leaves_in
from icebergds.formats.parquet.file_metrics import footer_statistics, row_group_offsets
from icebergds.formats.parquet.footer import read_footer
from icebergds.formats.parquet.open import open_parquet
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema

_BY_ARROW = "parquet-cpp-arrow"


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
    unzoned = {
        column.field_id
        for column in walk_columns(columns)
        if pa.types.is_timestamp(column.arrow_type)
        and footer.schema.column(column.leaves[0]).physical_type == "INT96"
    }
    by_arrow = (footer.created_by or "").startswith(_BY_ARROW)
    return StoredFile(
        columns,
        has_ids(found),
        footer.num_rows,
        handle.size(),
        row_group_offsets(footer),
        footer_statistics(footer, leaves_in(columns), measured, {}, by_arrow=by_arrow),
        frozenset(field_id for field_id in unzoned if field_id is not None),
    )
