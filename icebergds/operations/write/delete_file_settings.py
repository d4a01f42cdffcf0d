"""Reads the table properties for writing delete files."""

from __future__ import annotations

from icebergds.commit.operations import TableState
from icebergds.errors import UnsupportedFeatureError
from icebergds.operations.write.data_file_settings import file_format_property
from icebergds.spec.manifest import FileFormat
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import (
    DEFAULT_FILE_FORMAT,
    DELETE_TARGET_FILE_SIZE_BYTES,
    DELETE_TARGET_FILE_SIZE_BYTES_DEFAULT,
    choice_property,
    int_property,
)

DELETE_GRANULARITY = "write.delete.granularity"
DELETE_FILE_FORMAT = "write.delete.format.default"


def require_delete_files(state: TableState, *, by_key: bool = False) -> None:
    """Checks that a table's format version supports delete files.

    Args:
        by_key: for a change by key, which cannot do without them.

    Raises:
        UnsupportedFeatureError: the table has format version 1.
    """
    version = state.metadata.format_version
    if version < 2:
        raise UnsupportedFeatureError(
            f"table {state.name} has format version {version}, which does not support delete "
            "files; upgrade it with load_table(...).upgrade(2)"
            + (
                ""
                if by_key
                else ", or set write.delete.mode, write.update.mode and write.merge.mode to "
                "copy-on-write"
            )
        )


def delete_file_format(metadata: TableMetadata, data_format: FileFormat) -> FileFormat:
    """The format of delete files; that of data files if no table property sets it.

    Raises:
        InvalidOptionError: the table property is not a file format.
    """
    for name in (DELETE_FILE_FORMAT, DEFAULT_FILE_FORMAT):
        if name in metadata.properties:
            return file_format_property(metadata.properties, name, data_format)
    return data_format


def delete_file_size(metadata: TableMetadata) -> int:
    """The target size of delete files, in bytes."""
    return int_property(
        metadata.properties, DELETE_TARGET_FILE_SIZE_BYTES, DELETE_TARGET_FILE_SIZE_BYTES_DEFAULT
    )


def delete_granularity(metadata: TableMetadata) -> str:
    """The scope of a position delete file: one data file (`file`), or a whole `partition`.

    Raises:
        InvalidOptionError: the table property is neither.
    """
    return choice_property(
        metadata.properties, DELETE_GRANULARITY, "partition", ("file", "partition")
    )
