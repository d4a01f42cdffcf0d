"""Reads how a table wants its delete files written."""

from __future__ import annotations

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError, UnsupportedFeatureError
from icebergds.operations.write.append_overwrite import file_format_property
from icebergds.spec.manifest import FileFormat
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import (
    DEFAULT_FILE_FORMAT,
    DELETE_TARGET_FILE_SIZE_BYTES,
    DELETE_TARGET_FILE_SIZE_BYTES_DEFAULT,
    int_property,
)

DELETE_GRANULARITY = "write.delete.granularity"
DELETE_FILE_FORMAT = "write.delete.format.default"


def require_delete_files(state: TableState, *, by_key: bool = False) -> None:
    """Refuses delete files for a table whose version does not know them.

    Args:
        by_key: of changes by key, for which there is no other way.

    Raises:
        UnsupportedFeatureError: it is of version 1.
    """
    version = state.metadata.format_version
    if version < 2:
        raise UnsupportedFeatureError(
            f"table {state.name} has format version {version}, which knows no delete files; "
            "upgrade it with load_table(...).upgrade(2)"
            + (
                ""
                if by_key
                else ", or set write.delete.mode, write.update.mode and write.merge.mode to "
                "copy-on-write"
            )
        )


def delete_file_format(metadata: TableMetadata, data_format: FileFormat) -> FileFormat:
    """The format of delete files; that of data files where the table does not say.

    Raises:
        InvalidOptionError: the table's property is none of the formats.
    """
    for name in (DELETE_FILE_FORMAT, DEFAULT_FILE_FORMAT):
        if name in metadata.properties:
            return file_format_property(name, metadata.properties[name])
    return data_format


def delete_file_size(metadata: TableMetadata) -> int:
    """The size at which delete files end, in bytes."""
    return int_property(
        metadata.properties, DELETE_TARGET_FILE_SIZE_BYTES, DELETE_TARGET_FILE_SIZE_BYTES_DEFAULT
    )


def delete_granularity(metadata: TableMetadata) -> str:
    """How position delete files are divided: `file` for one a data file, or `partition`.

    Raises:
        InvalidOptionError: the table's property is neither.
    """
    text = metadata.properties.get(DELETE_GRANULARITY, "partition")
    if text.lower() not in ("file", "partition"):
        raise InvalidOptionError(
            f"table property {DELETE_GRANULARITY} = {text!r}: expected file or partition"
        )
    return text.lower()
