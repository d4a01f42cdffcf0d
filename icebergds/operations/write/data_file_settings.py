"""Reads the table properties for writing data files."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.spec.manifest import FileFormat
from icebergds.spec.table_properties import (
    DEFAULT_FILE_FORMAT,
    DEFAULT_FILE_FORMAT_DEFAULT,
    FANOUT_ENABLED,
    TARGET_FILE_SIZE_BYTES,
    TARGET_FILE_SIZE_BYTES_DEFAULT,
    bool_property,
    choice_property,
    int_property,
)

_FORMATS = (FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO)


def data_file_format(properties: Mapping[str, str]) -> FileFormat:
    """The format of data files.

    Raises:
        InvalidOptionError: the table property is not a file format.
    """
    default = FileFormat(DEFAULT_FILE_FORMAT_DEFAULT)
    return file_format_property(properties, DEFAULT_FILE_FORMAT, default)


def file_format_property(
    properties: Mapping[str, str], name: str, default: FileFormat
) -> FileFormat:
    """A table property that is a file format, or its default if it is not set.

    Raises:
        InvalidOptionError: it is not a file format.
    """
    return FileFormat(choice_property(properties, name, default, _FORMATS))


def data_file_size(properties: Mapping[str, str]) -> int:
    """The target size of data files, in bytes.

    Raises:
        InvalidOptionError: the table property is not an integer.
    """
    return int_property(properties, TARGET_FILE_SIZE_BYTES, TARGET_FILE_SIZE_BYTES_DEFAULT)


def uses_fanout(properties: Mapping[str, str]) -> bool:
    """Whether a task keeps a file open for each partition.

    Raises:
        InvalidOptionError: the table property is neither true nor false.
    """
    # On by default: rows are not clustered by partition unless they were sorted first.
    return bool_property(properties, FANOUT_ENABLED, True)
