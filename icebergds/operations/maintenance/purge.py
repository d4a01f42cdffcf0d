"""Purges a table: drops it and deletes every file reachable from its metadata."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from icebergds.catalog.base import Catalog, Identifier
from icebergds.commit.operations import TableState
from icebergds.errors import IcebergError, UnsupportedFeatureError, ValidationError
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.spec.table_properties import GC_ENABLED, GC_ENABLED_DEFAULT, bool_property


def purge(catalog: Catalog, identifier: Identifier) -> None:
    """Drops a table, then deletes all of its files.

    Raises:
        NoSuchTableError: the table does not exist.
        ValidationError: the table property `gc.enabled` is false.
        FormatError, MissingFileError: metadata or a manifest is damaged or missing, so the files
            cannot be listed; the table was not dropped.
        IcebergError: the table was dropped, but some files could not be deleted.
    """
    before = catalog.load(identifier)
    _require_garbage_collection(before)
    files = set(reachable_files(before))
    for file in files:
        # What the storage refuses is refused while the table is still there.
        before.io.resolve(file)
    last = catalog.drop(identifier)
    if last is None:
        last = before
    try:
        if last.metadata_location != before.metadata_location:
            # Files that were committed after `before` was loaded.
            _require_garbage_collection(last)
            files |= set(reachable_files(last))
        last.io.delete_all(sorted(files))
    except Exception as error:
        raise IcebergError(
            f"table {last.name} was dropped, but some of its files were left behind: {error}"
        ) from error
    _remove_directories(last.io, last.metadata.location, files)


def reachable_files(state: TableState) -> Iterator[str]:
    """Lists data and delete files, manifests, manifest lists, statistics and metadata files.

    Locations are as in the metadata; some come more than once.

    Raises:
        MissingFileError: a manifest list or manifest does not exist.
        CorruptFileError: one is damaged.
    """
    metadata = state.metadata
    yield state.metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (file.statistics_path for file in metadata.statistics)
    yield from (file.statistics_path for file in metadata.partition_statistics)
    manifests = {}
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list is not None:
            yield snapshot.manifest_list
        for manifest in read_snapshot_manifests(state.io, snapshot):
            manifests[manifest.manifest_path] = manifest
    for path, manifest in manifests.items():
        yield path
        columns = read_manifest_columns(
            state.io,
            manifest,
            metadata.specs_by_id,
            metadata.schema(),
            history=metadata.schema_history,
            stats_ids=frozenset(),
            live_only=False,
            # What a damaged manifest still lists is deleted too.
            wrong_counts=WrongCounts.WARN,
        )
        yield from columns.file_path.to_pylist()


def _require_garbage_collection(state: TableState) -> None:
    if not bool_property(state.metadata.properties, GC_ENABLED, GC_ENABLED_DEFAULT):
        raise ValidationError(
            f"table {state.name} has the property {GC_ENABLED} = false, because other tables may "
            "share its files; drop the table without purging it, or set the property to true"
        )


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
