"""Describes an existing ORC file by its tail."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.orc as orc

from icebergds.errors import CorruptFileError
from icebergds.formats.arrow.errors import decoding
from icebergds.formats.data_file.encryption import encrypted
from icebergds.formats.data_file.file_schema import FileColumn, has_ids, walk_columns, with_ids
from icebergds.formats.data_file.stored_file import StoredFile, columns_with_statistics
from icebergds.formats.orc.file_statistics import file_statistics
from icebergds.formats.orc.reader import file_columns
from icebergds.formats.orc.tail import checked_stripes, has_hybrid_calendar, is_encrypted
from icebergds.spec.name_mapping import NameMapping
from icebergds.spec.schema import Schema
from icebergds.spec.values.dates import FIRST_GREGORIAN_DAY


def stored_orc(
    handle: pa.NativeFile, location: str, schema: Schema, name_mapping: NameMapping
) -> StoredFile:
    """Describes an open file, whose columns have their names' ids if it has none.

    Raises:
        CorruptFileError: the file is damaged or not an ORC file.
        UnsupportedFeatureError: the file is encrypted.
    """
    with decoding(location, "ORC"):
        file = orc.ORCFile(handle)
        tail = file.reader.serialized_file_tail()
        if is_encrypted(tail):
            raise encrypted(location)
        found = file_columns(file, tail, location)
    columns = with_ids(found, schema, name_mapping)
    is_hybrid = not has_ids(found) and has_hybrid_calendar(tail)
    try:
        statistics = file_statistics(
            tail,
            columns,
            columns_with_statistics(columns, schema),
            file.nrows,
            is_hybrid=is_hybrid,
        )
        offsets = tuple(s.offset for s in checked_stripes(tail, file.nstripes, file.nrows))
    except ValueError as error:
        raise CorruptFileError(f"{location}: the file's tail is damaged: {error}") from error
    return StoredFile(
        columns,
        has_ids(found),
        file.nrows,
        handle.size(),
        offsets,
        statistics,
        unzoned=frozenset(),
        hybrid=_old_days(columns) if is_hybrid else {},
    )


def _old_days(columns: Sequence[FileColumn]) -> dict[int, int]:
    return {
        column.field_id: FIRST_GREGORIAN_DAY
        for column in walk_columns(columns)
        if column.field_id is not None
        and (pa.types.is_date(column.arrow_type) or pa.types.is_timestamp(column.arrow_type))
    }
