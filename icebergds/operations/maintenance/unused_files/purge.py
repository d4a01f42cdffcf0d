"""Purges a table: drops it and deletes every file reachable from its metadata."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from icebergds.catalog.base import Catalog, Identifier, PurgingCatalog
from icebergds.catalog.filesystem.commits import check_changeable
from icebergds.commit.operations import LoadsParts, TableState
from icebergds.errors import IcebergError, StorageError, UnsupportedFeatureError
from icebergds.io.failures import storage_error
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.unused_files.reachable_files import (
    reachable_files,
    require_garbage_collection,
)
from icebergds.reporting import advance, kept, stage

_BATCH = 1000
_INSTEAD = "drop the table without purging it"


def purge(catalog: Catalog, identifier: Identifier) -> None:
    """Drops a table, then deletes all of its files.

    Raises:
        NoSuchTableError: the table does not exist.
        ValidationError: the table property `gc.enabled` is false.
        InvalidOptionError: the table was copied or moved, and its old location is not mapped.
        FormatError, MissingFileError: metadata or a manifest is damaged or missing, so the files
            cannot be listed; the table was not dropped.
        IcebergError: the table was dropped, but some files could not be deleted.
    """
    before, operations = catalog.load(identifier), catalog.operations(identifier)
    check_changeable(operations, before)
    require_garbage_collection(before, _INSTEAD)
    if isinstance(catalog, PurgingCatalog):
        catalog.purge(identifier)
        return
    if isinstance(operations, LoadsParts):
        before = operations.refresh_whole()
    files = _files_of(before)
    for file in files:
        # Fails on what the storage refuses while the table still exists.
        before.io.resolve(file)
    last = catalog.drop(identifier)
    kept("the table was dropped, and files that it left are not deleted")
    if last is None:
        last = before
    try:
        if last.metadata_location != before.metadata_location:
            # Files that were committed after `before` was loaded.
            require_garbage_collection(last, _INSTEAD)
            files |= _files_of(last)
        _delete(last.io, sorted(files))
    except Exception as error:
        raise IcebergError(
            f"table {last.name} was dropped, but some of its files were left behind: {error}"
        ) from error
    _remove_directories(last.io, last.metadata.location, files)


def _delete(io: FileIO, files: Sequence[str]) -> None:
    """Deletes files; raises StorageError if some could not be deleted, once the others are."""
    failed: dict[str, Exception] = {}
    with stage("delete files", len(files)):
        for start in range(0, len(files), _BATCH):
            batch = files[start : start + _BATCH]
            failed |= io.delete_each(batch)
            advance(len(batch))
    if failed:
        first = next(iter(failed))
        raise StorageError(
            f"{len(failed)} of {len(files)} files could not be deleted; the first is {first}: "
            f"{storage_error('deleting', first, failed[first]).reason}"
        ) from failed[first]


def _files_of(state: TableState) -> set[str]:
    return {file for files in reachable_files(state).values() for file in files}


def _remove_directories(io: FileIO, location: str, files: set[str]) -> None:
    """Removes directories that are empty without the files, up to the table's own."""
    root = location.rstrip("/")
    inside = {
        f"{root}/{directory}"
        for file in files
        if file.startswith(f"{root}/")
        for directory in accumulate(
            file[len(root) + 1 :].split("/")[:-1], lambda above, name: f"{above}/{name}"
        )
    }
    for directory in (*sorted(inside, key=len, reverse=True), root):
        try:
            io.remove_empty_directory(directory)
        except UnsupportedFeatureError:
            return
        except OSError:
            # It has other files, or another process removed it.
            continue
