"""Builds the metadata of a commit, and writes its file `<N>-<uuid>.metadata.json`."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterable, Sequence

from icebergds.catalog.metadata_files import own_version
from icebergds.errors import StorageError
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO
from icebergds.io.locations import undeleted_level
from icebergds.spec.json.metadata import remember_metadata, serialise_metadata
from icebergds.spec.json.schema import check_storable
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import (
    METADATA_COMPRESSION,
    METADATA_DELETE_AFTER_COMMIT_ENABLED,
)
from icebergds.spec.updates import apply_updates
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.spec.values.dates import now_ms

_LOG = logging.getLogger(__name__)


def next_metadata(
    base: TableMetadata | None, base_location: str | None, updates: Sequence[TableUpdate]
) -> TableMetadata:
    """The metadata of a commit on `base` at the current time, with schemas that can be read back.

    Args:
        base: None for a new table.
        base_location: the metadata file of `base`, for the metadata log; None for a new table.

    Returns:
        The new metadata; the same object if there is nothing to commit.

    Raises:
        InvalidMetadataError: an update, or the result of all, breaks the specification, or a schema
            could not be read back.
        InvalidOptionError: a property has a reserved name or a wrong value.
        UnsupportedFeatureError: a format version above 3.
        CommitConflictError: a snapshot was created on an older state of the table.
    """
    changed = apply_updates.next_metadata(base, base_location, updates, now_ms=now_ms())
    known = {} if base is None else base.schemas_by_id
    for schema in changed.schemas:
        if known.get(schema.schema_id) is not schema:
            check_storable(schema)
    return changed


def write_next_metadata(
    io: FileIO, metadata: TableMetadata, base_location: str | None, name: str
) -> str:
    """Writes metadata to a new file and returns its location.

    Args:
        base_location: the metadata file of the base; None for a new table.
        name: the table's name in messages.

    Raises:
        InvalidOptionError: the table's compression codec is not allowed for metadata files.
        StorageError: the file could not be written.
    """
    check_compression(metadata)
    compress = is_compressed(metadata)
    data = serialise_metadata(metadata, compress)
    location = next_metadata_location(metadata.metadata_directory, base_location, compress)
    write_metadata_file(io, location, data, f"table {name}")
    remember_metadata(data, metadata, io.max_metadata_bytes)
    return location


def next_metadata_location(directory: str, base_location: str | None, compress: bool) -> str:
    """The location of a new metadata file, numbered after the base's."""
    suffix = ".gz.metadata.json" if compress else ".metadata.json"
    version = 0 if base_location is None else _version(base_location) + 1
    return f"{directory}/{version:05d}-{uuid.uuid4()}{suffix}"


def write_metadata_file(io: FileIO, location: str, data: bytes, what: str) -> None:
    """Writes a new metadata file; deletes it if that fails.

    Args:
        what: the table or view in messages, such as `table lake.db.t`.

    Raises:
        StorageError: the file could not be written.
    """
    try:
        with storage_failures("writing the metadata file", location):
            io.write(location, data)
    except Exception as error:
        delete_quietly(io, location, what)
        if isinstance(error, StorageError):
            error.add_outcome(f"nothing was committed to {what}")
        raise


def check_compression(metadata: TableMetadata) -> None:
    """Raises InvalidOptionError if a table sets a compression that metadata cannot have."""
    METADATA_COMPRESSION.check(metadata.properties)


def is_compressed(metadata: TableMetadata) -> bool:
    """Whether to compress a table's metadata files."""
    return METADATA_COMPRESSION.of(metadata.properties) == "gzip"


def delete_quietly(io: FileIO, location: str, what: str) -> None:
    """Deletes a metadata file that was not committed; failures are only logged.

    Args:
        what: the table or view in messages, such as `table lake.db.t`.
    """
    try:
        io.delete(location)
    except Exception as error:
        level = undeleted_level(location)
        _LOG.log(level, "%s: %s was not deleted: %s", what, location, error)


def delete_unlogged(
    io: FileIO,
    base: TableMetadata,
    metadata: TableMetadata,
    name: str,
    files_of: Callable[[str], Iterable[str]] = lambda unlogged: (unlogged,),
) -> None:
    """Deletes metadata files that dropped out of the log, if the table's properties say so.

    Args:
        files_of: the files to delete when one drops out of the log.
    """
    kept = {entry.metadata_file for entry in metadata.metadata_log}
    removed = [e.metadata_file for e in base.metadata_log if e.metadata_file not in kept]
    try:
        if removed and METADATA_DELETE_AFTER_COMMIT_ENABLED.of(metadata.properties):
            io.delete_all(file for unlogged in removed for file in files_of(unlogged))
    except Exception as error:
        level = undeleted_level(removed[0])
        _LOG.log(level, "table %s: old metadata files were not deleted: %s", name, error)


_NUMBER = re.compile(r"([0-9]+)-")


def _version(location: str) -> int:
    """The version in a metadata file's name; -1 if there is none."""
    file = location.rpartition("/")[2]
    if (match := _NUMBER.match(file)) is not None:
        return int(match[1])
    # A table formerly committed by location keeps counting, so that its newest file sorts last.
    version = own_version(file)
    return -1 if version is None else version
