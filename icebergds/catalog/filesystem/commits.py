"""Commits to tables by location, with exclusive creation of the next metadata file.

The writer that creates `v<N+1>.metadata.json` has committed on top of version N; all others have
lost. That alone does not prove that N was still the newest version, because old metadata files may
be deleted (`write.metadata.delete-after-commit.enabled`). So the directory is listed before and
after the commit, and a file that does not follow the newest version is deleted again.
"""

from __future__ import annotations

import errno
import gzip
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from icebergds.catalog.filesystem.verify_commit import NewVersion, verify_commit
from icebergds.catalog.metadata_files import (
    VERSION_HINT,
    find_newest_metadata,
    is_metadata_file,
    list_versions,
    load_from_location,
    own_version,
)
from icebergds.catalog.metadata_writing import (
    check_compression,
    delete_unlogged,
    is_compressed,
    next_metadata,
)
from icebergds.commit.operations import TableOperations, TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    InvalidOptionError,
    MissingFileError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO
from icebergds.io.near import start_reading
from icebergds.io.same_directory import is_same_directory
from icebergds.spec.json.metadata import parse_identity, remember_metadata, serialise_metadata
from icebergds.spec.metadata import TableMetadata, metadata_directory
from icebergds.spec.table_properties import METADATA_PATH
from icebergds.spec.updates.requirements import TableRequirement, check_requirements
from icebergds.spec.updates.table_updates import TableUpdate

_LOG = logging.getLogger(__name__)


def location_operations(io: FileIO, location: str, name: str) -> TableOperations:
    """The operations that load and commit the table at a location.

    Args:
        location: the table's root directory.
        name: the table's name in messages.

    Raises:
        InvalidOptionError: the location is a metadata file.
    """
    return _LocationOperations(io, table_root(io, location, name), name)


def is_by_location(operations: TableOperations) -> bool:
    """Whether operations find the newest metadata file by listing a directory."""
    return isinstance(operations, _LocationOperations)


def check_changeable(operations: TableOperations, state: TableState) -> None:
    """Rejects changes to a table that was copied or moved and is addressed by its new location.

    The files named in its metadata may be those of the original table, and new files would be
    written there. Tables of catalogs that store their location always pass.

    Args:
        operations: of the table.
        state: the table as they loaded it.

    Raises:
        InvalidOptionError: the metadata has another location, even after mapping.
    """
    if isinstance(operations, _LocationOperations):
        _check_own_location(operations, state.metadata)


def create_at_location(
    io: FileIO, location: str, updates: Sequence[TableUpdate], name: str
) -> TableState:
    """Creates a table at a location by applying updates to empty metadata.

    Args:
        location: the table's root directory, which is created; the updates must set the same one.
        name: the table's name in messages.

    Raises:
        AlreadyExistsError: the table exists.
        InvalidOptionError: the updates set another location.
        UnsupportedFeatureError: the storage cannot create files exclusively.
        CommitStateUnknownError: it is unknown whether the table was created.
    """
    metadata = next_metadata(None, None, updates)
    root = check_creation_at(io, location, metadata.location, name)
    return create_first_version(io, root, metadata, name)


def check_creation_at(io: FileIO, location: str, wanted: str, name: str) -> str:
    """Checks the location of a new table as `create_at_location` does; returns its root directory.

    Args:
        location: the table's root directory.
        wanted: the location that its metadata will have.

    Raises:
        InvalidOptionError: the two differ.
        UnsupportedFeatureError: the storage cannot create files exclusively.
    """
    root = table_root(io, location, name)
    if io.resolve(wanted).rstrip("/") != io.resolve(root):
        raise InvalidOptionError(
            f"table {name} is to be created at {root}, but its metadata has the location {wanted}; "
            "a table addressed by its location must have that location"
        )
    io.require_create(metadata_directory(root) + "/")
    return root


def create_first_version(
    io: FileIO, location: str, metadata: TableMetadata, name: str
) -> TableState:
    """Creates a table from its metadata; raises what `create_at_location` raises."""
    _check_supported(None, metadata, name)
    io.require_create(metadata_directory(location) + "/")
    if list_versions(io, location):
        raise AlreadyExistsError(f"table {name} already exists at {location}")
    try:
        # Never compressed: concurrent writers must race for the same file name.
        new = NewVersion(location, 1, "v1.metadata.json", None, None, metadata)
        return _commit_version(io, new, name)
    except CommitConflictError as conflict:
        raise AlreadyExistsError(
            f"table {name} already exists at {location}, or is being created there: {conflict}"
        ) from None


def table_root(io: FileIO, location: str, name: str) -> str:
    """A table's root directory in the form for metadata: absolute, without a trailing slash.

    Raises:
        InvalidOptionError: the location is a metadata file.
    """
    if is_metadata_file(location):
        raise InvalidOptionError(
            f"table {name}: {location} is a metadata file, which holds one version of a table and "
            "cannot be changed; use the table's root directory"
        )
    return io.absolute(location).rstrip("/")


@dataclass(frozen=True, slots=True)
class _LocationOperations:
    """Implements `TableOperations` for the table at a location."""

    io: FileIO
    location: str
    name: str

    def refresh(self) -> TableState:
        return load_from_location(self.io, self.location, self.name)

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        """Implements `TableOperations.commit`.

        Raises:
            UnsupportedFeatureError: the table belongs to another catalog, the storage cannot create
                files exclusively, or the updates move the table or its metadata.
            InvalidOptionError: the table was copied or moved; see `check_changeable`.
        """
        _check_own_location(self, base.metadata)
        version, file = self._check_newest(base)
        check_requirements(requirements, base.metadata, self.name)
        previous = f"{metadata_directory(self.location)}/{file}"
        metadata = next_metadata(base.metadata, previous, updates)
        if metadata is base.metadata:
            return base
        _check_supported(base.metadata, metadata, self.name)
        # Decided by the base's properties, so that concurrent commits race for the same file name.
        suffix = ".gz.metadata.json" if is_compressed(base.metadata) else ".metadata.json"
        new = NewVersion(
            self.location, version + 1, f"v{version + 1}{suffix}", file, base.metadata, metadata
        )
        self.io.require_create(metadata_directory(self.location) + "/")
        committed = _commit_version(self.io, new, self.name)
        delete_unlogged(base.io, base.metadata, metadata, self.name, _deletable)
        return committed

    def _check_newest(self, base: TableState) -> tuple[int, str]:
        """Checks that `base` is the newest version; returns its number and file name.

        Raises:
            CommitConflictError: it is not, or the table was dropped in the meantime.
            UnsupportedFeatureError: the table belongs to another catalog.
        """
        read_base = start_reading(self.io, base.metadata_location)
        newest = find_newest_metadata(self.io, self.location, self.name)
        file = newest.rpartition("/")[2]
        version = own_version(file)
        if version is None:
            raise UnsupportedFeatureError(
                f"table {self.name} belongs to a catalog, which wrote {file}: a commit by location "
                "would fork its history; commit through that catalog"
            )
        if not _is_newest(self.io, base, newest, read_base):
            raise CommitConflictError(
                f"table {self.name} was changed by another commit: it is at {newest}, but this "
                f"commit is based on {base.metadata_location}"
            )
        return version, file


def _check_own_location(table: _LocationOperations, metadata: TableMetadata) -> None:
    """Raises InvalidOptionError if the location in the metadata is not where it was found."""
    if not is_same_directory(metadata.location, table.location, table.io):
        mapping = {metadata.location: table.location}
        raise InvalidOptionError(
            f"table {table.name} is at {table.location}, but its metadata has the location "
            f"{metadata.location}: it was copied or moved, so the files that it names may be those "
            "of another table. It can be read, but not changed, until the old location is mapped "
            f"to the new one: location_map={mapping} of load_table "
            "and load_catalog, or the option 'location-map' of a DataFrame. If the table at "
            f"{metadata.location} is meant, load it by that location or from its catalog"
        )


def _commit_version(io: FileIO, new: NewVersion, name: str) -> TableState:
    """Creates the metadata file of a version and verifies that it continues the table.

    Raises:
        CommitConflictError: another commit came first.
        CommitStateUnknownError: it is unknown whether this commit was applied.
    """
    path = f"{metadata_directory(new.location)}/{new.file}"
    data = _encoded(new.metadata, compress=".gz." in new.file)
    _create(io, path, data, name)
    try:
        verdict = verify_commit(io, new)
        if verdict.continues is False:
            io.delete(path)
    except Exception as error:
        raise _unknown(name, path, error) from error
    if verdict.continues is None:
        raise _unknown(name, path, verdict.reason)
    if not verdict.continues:
        raise CommitConflictError(
            f"table {name} was changed by another commit before version {new.version} was "
            f"created: {verdict.reason}"
        )
    _write_hint(io, new, name)
    remember_metadata(data, new.metadata, io.max_metadata_bytes)
    return TableState(name, path, new.metadata, io)


def _create(io: FileIO, path: str, data: bytes, name: str) -> None:
    """Creates a file; after a failure, finds out whether it was created anyway."""
    try:
        with storage_failures("committing the metadata file", path, Exception):
            io.create(path, data)
    except AlreadyExistsError as error:
        if _read_if_exists(io, path, name, error) != data:
            raise CommitConflictError(
                f"table {name} was changed by another commit: {error}"
            ) from None
    except StorageError as error:
        # All other errors are raised before anything is sent.
        found = _read_if_exists(io, path, name, error)
        if found is None and _is_refusal(error):
            error.add_outcome(f"nothing was committed to table {name}")
            raise
        if found is None:
            raise _unknown(name, path, error) from error
        if found != data:
            raise CommitConflictError(
                f"table {name} was changed by another commit: {path} exists"
            ) from error


def _read_if_exists(io: FileIO, path: str, name: str, cause: Exception) -> bytes | None:
    """The current content of a file; None if it does not exist."""
    try:
        return io.read_bytes(path)
    except MissingFileError:
        return None
    except Exception as error:
        raise _unknown(name, path, error) from cause


def _write_hint(io: FileIO, new: NewVersion, name: str) -> None:
    # A stale hint is harmless: readers look for newer versions starting from it.
    try:
        io.write(f"{metadata_directory(new.location)}/{VERSION_HINT}", str(new.version).encode())
    except Exception as error:
        _LOG.warning("table %s: the version hint was not written: %s", name, error)


def _unknown(name: str, path: str, why: object) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"table {name}: it is unknown whether {path} was committed ({why}); check whether it is "
        "among the table's metadata files before trying again"
    )


# How many other commits may come between a commit's check of the table and its file.
_KEPT_UNLOGGED = 20
_SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")

# Errors that prove that the file was not written, unlike a time-out or a lost connection.
_REFUSALS = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.EFBIG,
    }
)


def _is_refusal(error: StorageError) -> bool:
    is_told = isinstance(error.__cause__, PermissionError | FileNotFoundError)
    return is_told or error.errno in _REFUSALS


def _is_newest(io: FileIO, base: TableState, newest: str, read_base: Callable[[], bytes]) -> bool:
    """Whether `base` is the newest version, and the table was not dropped and re-created.

    Args:
        read_base: reads the metadata file of `base`.
    """
    if io.resolve(base.metadata_location) != io.resolve(newest):
        return False
    try:
        found = parse_identity(read_base(), newest, io.max_metadata_bytes)
    except MissingFileError:
        return False
    return found == (base.metadata.table_uuid, base.metadata.last_updated_ms)


def _check_supported(base: TableMetadata | None, metadata: TableMetadata, name: str) -> None:
    """Rejects metadata that a table addressed by location cannot have."""
    if base is not None and metadata.location != base.location:
        raise UnsupportedFeatureError(
            f"table {name} is addressed by its location {base.location}, so its location cannot be "
            f"set to {metadata.location}; to write new data files elsewhere, set the property "
            "write.data.path"
        )
    if METADATA_PATH.name in metadata.properties:
        raise UnsupportedFeatureError(
            f"table {name} is addressed by its location, where its metadata must be: the property "
            f"{METADATA_PATH.name} cannot be set"
        )
    check_compression(metadata)


def _encoded(metadata: TableMetadata, *, compress: bool) -> bytes:
    """The bytes of the metadata file, unique to this attempt.

    Two commits of the same change in the same millisecond have equal metadata. 128 random bits of
    white space after the JSON document make the files differ, so that a writer recognises its own.
    """
    mark = bytes(b" \t"[bit == "1"] for bit in f"{secrets.randbits(128):0128b}")
    data = serialise_metadata(metadata) + mark
    return gzip.compress(data, mtime=0) if compress else data


def _deletable(unlogged: str) -> list[str]:
    """The files to delete when one drops out of the log: an older version, or a catalog's file.

    Versions are deleted some commits later: a delayed commit on a very old version could otherwise
    create a file whose name is free again.
    """
    directory, _, file = unlogged.rpartition("/")
    version = own_version(file)
    if version is None:
        return [unlogged]
    old = version - _KEPT_UNLOGGED
    return [f"{directory}/v{old}{suffix}" for suffix in _SUFFIXES] if old > 0 else []
