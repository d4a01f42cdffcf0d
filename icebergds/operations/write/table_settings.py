"""Chooses settings for writing files that depend on more than one table property."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.commit.operations import TableState
from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.manifest import FileFormat
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import (
    DEFAULT_FILE_FORMAT,
    DELETE_FILE_FORMAT,
    DELETE_GRANULARITY,
    DELETE_TARGET_FILE_SIZE_BYTES,
    DISTRIBUTION_MODE,
)
from icebergds.write.deletes.row_deletes import DeleteSettings


def data_file_format(properties: Mapping[str, str]) -> FileFormat:
    """The format of data files.

    Raises:
        InvalidOptionError: the table property is not a file format.
    """
    return FileFormat(DEFAULT_FILE_FORMAT.of(properties))


def delete_file_format(metadata: TableMetadata, data_format: FileFormat) -> FileFormat:
    """The format of delete files; that of data files if no table property sets it.

    Raises:
        InvalidOptionError: the table property is not a file format.
    """
    properties = metadata.properties
    if (own := DELETE_FILE_FORMAT.of(properties)) is not None:
        return FileFormat(own)
    return data_file_format(properties) if DEFAULT_FILE_FORMAT.name in properties else data_format


def delete_settings(metadata: TableMetadata) -> DeleteSettings:
    """How position deletes are written.

    Raises:
        InvalidOptionError: a table property is malformed.
    """
    return DeleteSettings(
        metadata.format_version,
        DELETE_GRANULARITY.of(metadata.properties),
        delete_file_format(metadata, data_file_format(metadata.properties)),
        DELETE_TARGET_FILE_SIZE_BYTES.of(metadata.properties),
        WriteProperties.of(metadata.properties, metadata.schema(), metadata.sort_order()),
    )


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


def distribution_mode(options: WriteOptions, metadata: TableMetadata) -> str:
    """`none`, `hash` or `range`: the write option, else the table property, else Java's default.

    Raises:
        InvalidOptionError: the table property is not one of these.
    """
    if not options.use_table_distribution:
        return "none"
    chosen = options.distribution_mode or DISTRIBUTION_MODE.of(metadata.properties)
    if chosen is not None:
        return chosen
    if metadata.sort_order().is_sorted:
        return "range"
    return "none" if metadata.spec().is_unpartitioned else "hash"
