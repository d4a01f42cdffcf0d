"""Deletes the files of dropped tables (`delete_reachable_files`)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from icebergds.api.progress import ProgressOption, showing
from icebergds.catalog.address import TableAddress
from icebergds.catalog.metadata_files import is_metadata_file
from icebergds.errors import InvalidOptionError
from icebergds.io.storage_options import storage_properties_of
from icebergds.operations.maintenance.unused_files.delete_files import (
    DeletedReachableFiles,
    delete_reachable,
)
from icebergds.operations.options.arguments import mapping_argument, path_argument


def delete_reachable_files(
    metadata_location: str | os.PathLike[str],
    *,
    properties: Mapping[str, str] | None = None,
    location_map: Mapping[str, str] | None = None,
    progress: ProgressOption = None,
) -> DeletedReachableFiles:
    """Deletes every file that a metadata file reaches: all files of a table that was dropped.

    These are the data and delete files, manifests and manifest lists of its snapshots, statistics,
    older metadata files, and the metadata file itself. It is not checked whether a catalog still
    has the table. To drop a table with its files, see `Catalog.purge_table`.

    Args:
        metadata_location: the metadata file, such as `<table>/metadata/00012-<uuid>.metadata.json`.
        properties: of the storage, such as `s3.endpoint`.
        location_map: maps prefixes of locations to their replacements, for tables that were moved.
        progress: whether to show progress, or what to call with it: see `Table.maintain`.

    Returns:
        How many files were deleted. If some could not be deleted, the metadata file is kept, and
        the call can be repeated.

    Raises:
        NoSuchTableError: there is no such metadata file.
        ValidationError: the table property `gc.enabled` is false.
        CorruptFileError: a manifest list or manifest is damaged; nothing was deleted.
        InvalidOptionError: the location is not a metadata file, or a property is unknown;
            or the metadata file was copied or moved, and the table's location is not mapped to
            where the file is: it may reach the files of another table.
    """
    location = path_argument("metadata_location", metadata_location)
    if not is_metadata_file(location):
        raise InvalidOptionError(
            f"metadata_location = {location!r}: expected a metadata file, whose name ends in "
            ".metadata.json"
        )
    given = mapping_argument("properties", properties)
    storage = storage_properties_of(given)
    rest = {key: value for key, value in given.items() if key not in storage}
    locations = mapping_argument("location_map", location_map)
    address = TableAddress(location, None, rest, storage, locations)
    with showing("delete_reachable_files", location, progress):
        return delete_reachable(address.load())
