"""Removes orphan files: old files in a table's directory that nothing in its metadata refers to.

The directory is listed first and the metadata is loaded afterwards, so a commit in between protects
its files. Files of writes that are not committed yet are protected by their age alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.catalog.filesystem.commits import is_by_location
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.catalog.metadata_files import own_version
from icebergds.commit.operations import LoadsParts, TableState
from icebergds.display import counted
from icebergds.errors import (
    InvalidOptionError,
    MissingFileError,
    StorageError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.io.failures import storage_error
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.unused_files.candidates import (
    Candidates,
    dated,
    given_candidates,
    list_candidates,
)
from icebergds.operations.maintenance.unused_files.file_identity import (
    FileKeys,
    Flags,
    Matches,
    match_files,
)
from icebergds.operations.maintenance.unused_files.file_set import Locations
from icebergds.operations.maintenance.unused_files.orphan_files import (
    OrphanFiles,
    OrphanOptions,
    OtherTables,
    PrefixMismatch,
)
from icebergds.operations.maintenance.unused_files.other_tables import (
    nested_directories,
    refuse_sharing,
)
from icebergds.operations.maintenance.unused_files.reachable_files import (
    referenced_files,
    require_garbage_collection,
)
from icebergds.reporting import advancing, stage
from icebergds.spec.metadata import TableMetadata, metadata_directory
from icebergds.spec.table_properties import PATHS

_LOG = logging.getLogger(__name__)

_INSTEAD = "remove none of its files"
_DELETE_BATCH = 1_000
_MOST_LOGGED = 20


def remove_orphan_files(table: LoadedTable, options: OrphanOptions) -> OrphanFiles:
    """Removes orphan files. Until all of them are known, nothing is deleted.

    Files that cannot be deleted are named in the result and are not an error.

    Raises:
        InvalidOptionError: the location does not exist, or is not one of the table's directories.
        UnsupportedFeatureError: the table belongs to a catalog but is named by its location.
        ValidationError: the table property `gc.enabled` is false, there are other tables, or files
            are referenced with another scheme or authority.
        FormatError, MissingFileError: metadata or a manifest is damaged or missing.
        StorageError: the storage or the catalog failed.
    """
    with _nothing_deleted(table.name):
        found = _find(table, options)
    deleted = _Deleted() if options.dry_run else _delete(found, options, table.name)
    _LOG.info(
        "table %s: %s among %d files, %d deleted, %d failed",
        table.name,
        counted(len(found.files), "orphan file"),
        found.examined,
        deleted.count,
        len(deleted.failed),
    )
    return _result(found, deleted, options)


def find_orphan_files(table: LoadedTable, options: OrphanOptions) -> OrphanFiles:
    """Finds orphan files and deletes none; errors as for `remove_orphan_files`."""
    return _result(_find(table, options), _Deleted(), replace(options, dry_run=True))


def _result(found: _Found, deleted: _Deleted, options: OrphanOptions) -> OrphanFiles:
    files = found.files
    return OrphanFiles(
        orphan_file_locations=tuple(files["location"][: options.most_locations].to_pylist()),
        orphan_files_count=len(files),
        orphan_bytes_count=pc.sum(files["size_in_bytes"]).as_py() or 0,
        deleted_files_count=deleted.count,
        failed_deletes=deleted.failed,
        undated_files_count=found.undated,
        examined_files_count=found.examined,
        dry_run=options.dry_run,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """Orphan files with columns of `FILE_SCHEMA`, and how many others were seen.

    Attributes:
        io: reaches the files by their locations.
    """

    files: pa.Table
    io: FileIO
    undated: int
    examined: int


@dataclass(frozen=True, slots=True)
class _Deleted:
    """How many files were deleted, and why others were not."""

    count: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def _nothing_deleted(table: str) -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        error.add_outcome(f"no file of table {table} was deleted")
        raise


def _find(table: LoadedTable, options: OrphanOptions) -> _Found:
    metadata = table.metadata
    # Locations of a given list are as in metadata; listed locations are not mapped again.
    io = table.io.without_map() if options.file_list is None else table.io
    require_garbage_collection(table.state, _INSTEAD)
    location = metadata.location if options.location is None else options.location
    is_own = _is_own_directory(table.state, location, options)
    with stage("list files"):
        candidates = _candidates(table, location, options)
    # Whatever was committed until now refers to files that may have been listed.
    state = _reloaded(table)
    keys = options.aliases.keys(candidates.files["location"], io)
    with stage("read manifests"):
        matches = match_files(
            keys, referenced_files(state, options.wrong_counts), options.aliases, state.io
        )
    is_nested = _of_other_tables(state, location, candidates, keys, options)
    orphans = candidates.files.filter(pa.array(_orphans(state.name, matches, options) & ~is_nested))
    if len(orphans) and not is_own and not matches.referenced.any():
        raise InvalidOptionError(
            f"table {state.name}: location {location!r} is not one of its directories "
            f"({', '.join(_own_locations(metadata))}), and no file that the table refers to was "
            "found there; files of others would be removed"
        )
    if options.file_list is not None:
        orphans = dated(io, orphans, options.older_than_ms)
    is_undated = pc.is_null(orphans["modified_ms"])
    undated = pc.sum(is_undated).as_py() or 0
    if undated:
        _LOG.warning(
            "table %s: the storage does not tell the age of %s that nothing refers to; kept",
            state.name,
            counted(undated, "file"),
        )
    return _Found(orphans.filter(pc.invert(is_undated)), io, undated, candidates.examined)


def own_directories(metadata: TableMetadata) -> list[str | None]:
    """The directories that a table's files are in, none of them in another; None for its location.

    They are as written: two names of one directory are two.
    """
    roots: list[str] = []
    for location in sorted(_own_locations(metadata)):
        if not any(location.startswith(root.rstrip("/") + "/") for root in roots):
            roots.append(location)
    return [None if root == metadata.location else root for root in roots]


def _own_locations(metadata: TableMetadata) -> list[str]:
    named = (metadata.properties.get(name) for name in PATHS)
    return list(dict.fromkeys([metadata.location, *(path for path in named if path)]))


def _is_own_directory(state: TableState, location: str, options: OrphanOptions) -> bool:
    """Whether a directory is one of the table's or below it.

    Raises:
        InvalidOptionError: it is above one of the table's, so that it may hold anything.
    """
    prefix, path = options.aliases.directory(location, state.io)
    for own in _own_locations(state.metadata):
        own_prefix, own_path = options.aliases.directory(own, state.io)
        if own_prefix == prefix and path.startswith(own_path):
            return True
    for own in _own_locations(state.metadata):
        own_prefix, own_path = options.aliases.directory(own, state.io)
        if own_prefix == prefix and own_path.startswith(path):
            raise InvalidOptionError(
                f"table {state.name}: location {location!r} is above the table's directory {own}, "
                "and all other files there would be removed; give a directory of the table"
            )
    return False


def _candidates(table: LoadedTable, location: str, options: OrphanOptions) -> Candidates:
    if options.file_list is None:
        try:
            return list_candidates(table.io, location, options.older_than_ms, table.metadata)
        except MissingFileError as error:
            if options.location is None:
                raise
            own = ", ".join(_own_locations(table.metadata))
            raise InvalidOptionError(
                f"table {table.name}: location {location!r} does not exist; give one of the "
                f"table's directories ({own}) or one below them"
            ) from error
    return given_candidates(
        table.io, options.file_list, location, options.older_than_ms, options.aliases
    )


def _reloaded(table: LoadedTable) -> TableState:
    """The table as it is now.

    Raises:
        ValidationError: it was replaced by another, or `gc.enabled` was set to false.
        UnsupportedFeatureError: it is not known which of its metadata files is current.
    """
    operations = table.operations
    if isinstance(operations, LoadsParts):
        state = operations.refresh_whole()
    else:
        state = operations.refresh()
    require_garbage_collection(state, _INSTEAD)
    if state.metadata.table_uuid != table.metadata.table_uuid:
        raise ValidationError(
            f"table {state.name} was dropped and re-created while its files were listed; try again"
        )
    file = state.metadata_location.rpartition("/")[2]
    if not file:
        raise UnsupportedFeatureError(
            f"table {state.name}: its catalog does not tell which metadata file is the current "
            "one, so that it would be removed, too"
        )
    if is_by_location(table.operations) and own_version(file) is None:
        raise UnsupportedFeatureError(
            f"table {state.name} belongs to a catalog, which wrote {file}: without the catalog it "
            "is not known which files the table refers to; load the table from that catalog"
        )
    return state


def _of_other_tables(
    state: TableState,
    location: str,
    candidates: Candidates,
    keys: FileKeys,
    options: OrphanOptions,
) -> Flags:
    """Flags of the candidates in directories of other tables, which are kept.

    Raises:
        ValidationError: there are other tables, and the option `other-tables` does not allow it.
    """
    is_nested = np.zeros(len(keys.paths), bool)
    if options.other_tables is OtherTables.DELETE:
        return is_nested
    found = candidates.metadata_files
    nested = nested_directories(state, found, options.aliases)
    if nested and options.other_tables is OtherTables.ERROR:
        raise ValidationError(
            f"table {state.name}: there are metadata files of another table in {nested[0]}"
            f"{f' and {len(nested) - 1} more directories' if nested[1:] else ''}, whose files "
            'would be removed; options={"other-tables": "keep"} leaves all files there, and '
            '"delete" takes them for orphans'
        )
    refuse_sharing(state, _with_own_metadata(state, location, found, options), options.aliases)
    for directory in nested:
        is_nested |= pc.starts_with(keys.paths, directory).to_numpy(zero_copy_only=False)
    return is_nested


def _with_own_metadata(
    state: TableState, location: str, found: pa.Table, options: OrphanOptions
) -> pa.Table:
    """Metadata files that were found, with those of the table if another directory was listed."""
    directory = metadata_directory(state.metadata.location)
    prefix, path = options.aliases.directory(location, state.io)
    own_prefix, own_path = options.aliases.directory(directory, state.io)
    if options.file_list is None and own_prefix == prefix and own_path.startswith(path):
        return found
    try:
        listed = list_candidates(state.io, directory, 0, state.metadata)
    except MissingFileError:
        return found
    return pa.concat_tables([found, listed.metadata_files]).combine_chunks()


def _orphans(table: str, matches: Matches, options: OrphanOptions) -> Flags:
    """Flags of the files that nothing refers to.

    Raises:
        ValidationError: a file is referenced with another scheme or authority, in the mode `error`.
    """
    if not matches.conflicts or options.prefix_mismatch is PrefixMismatch.IGNORE:
        return ~(matches.referenced | matches.elsewhere)
    if options.prefix_mismatch is PrefixMismatch.DELETE:
        return ~matches.referenced
    told = [
        f"{_shown(*referenced, path)} is referenced, {_shown(*found, path)} was found"
        for (referenced, found), path in matches.conflicts.items()
    ]
    raise ValidationError(
        f"table {table}: it is not known whether some files are orphans, because the table refers "
        f"to their paths in another storage: {'; '.join(told[:5])}. If both mean the same file, "
        "say so with equal_schemes or equal_authorities; if they do not, leave such files with "
        'prefix_mismatch_mode="ignore", or remove them with "delete"'
    )


def _shown(scheme: str, authority: str, path: str) -> str:
    return f"{scheme}://{authority}{path}"


def _delete(found: _Found, options: OrphanOptions, table: str) -> _Deleted:
    """Deletes files in batches, in parallel."""
    locations = Locations(found.files["location"])
    batches = [
        locations[start : start + _DELETE_BATCH]
        for start in range(0, len(locations), _DELETE_BATCH)
    ]
    failed: dict[str, str] = {}
    with (
        stage("delete files", len(locations)),
        ThreadPoolExecutor(options.max_concurrent_deletes) as pool,
    ):
        deleted = pool.map(partial(_delete_batch, found.io), batches)
        for errors in advancing(deleted, map(len, batches)):
            failed |= errors
    for location, reason in list(failed.items())[:_MOST_LOGGED]:
        _LOG.warning("table %s: orphan file %s was not deleted: %s", table, location, reason)
    return _Deleted(len(locations) - len(failed), failed)


def _delete_batch(io: FileIO, batch: Locations) -> dict[str, str]:
    try:
        failed = io.delete_each(batch)
    except Exception as error:
        # The storage refused them all, or it is not known which it deleted.
        return {location: str(error) for location in batch}
    return {
        location: storage_error("deleting", location, error).reason
        for location, error in failed.items()
    }
