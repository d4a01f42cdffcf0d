"""Commits to tables named by their location: the next metadata file is created exclusively.

The file `v<N+1>.metadata.json` is the commit: whoever creates it has changed version N, everybody
else has not. Creating tells who came first; it does not tell whether N was still the newest
version. Old metadata files may be deleted (`write.metadata.delete-after-commit.enabled`), so the
directory is looked at before, and once more after: a file that turns out to be no successor of the
newest version is taken back.
"""

from __future__ import annotations

import errno
import gzip
import logging
import secrets
from collections.abc import Sequence
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
from icebergds.catalog.next_metadata import next_metadata
from icebergds.commit.operations import TableOperations, TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    IcebergError,
    InvalidOptionError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import parse_identity, serialise_metadata
from icebergds.spec.metadata import TableMetadata, metadata_directory
from icebergds.spec.table_properties import (
    METADATA_COMPRESSION,
    METADATA_COMPRESSION_DEFAULT,
    METADATA_DELETE_AFTER_COMMIT_ENABLED,
    METADATA_DELETE_AFTER_COMMIT_ENABLED_DEFAULT,
    METADATA_PATH,
    bool_property,
)
from icebergds.spec.updates.requirements import TableRequirement, check_requirements
from icebergds.spec.updates.table_updates import TableUpdate

_LOG = logging.getLogger(__name__)


def location_operations(io: FileIO, location: str, name: str) -> TableOperations:
    """Loads and commits the table at a location.

    Args:
        location: the table's root directory.
        name: how messages name the table.

    Raises:
        InvalidOptionError: the location is that of a metadata file.
    """
    return _LocationOperations(io, table_root(io, location, name), name)


def create_at_location(
    io: FileIO, location: str, updates: Sequence[TableUpdate], name: str
) -> TableState:
    """Creates a table at a location, from nothing but updates.

    Args:
        location: the table's root directory, which is made; the updates must set the same one.
        name: how messages name the table.

    Raises:
        AlreadyExistsError: there is a table.
        InvalidOptionError: the updates set another location.
        UnsupportedFeatureError: the storage cannot create files exclusively.
        CommitStateUnknownError: whether the table was created is not known.
    """
    metadata = next_metadata(None, None, updates)
    root = check_creation_at(io, location, metadata.location, name)
    return create_first_version(io, root, metadata, name)


def check_creation_at(io: FileIO, location: str, wanted: str, name: str) -> str:
    """Refuses what `create_at_location` would refuse of the place of a table; gives its root.

    Args:
        location: the table's root directory.
        wanted: the location that its metadata is to have.

    Raises:
        InvalidOptionError: these are two places.
        UnsupportedFeatureError: the storage cannot create files exclusively.
    """
    root = table_root(io, location, name)
    if io.resolve(wanted).rstrip("/") != io.resolve(root):
        raise InvalidOptionError(
            f"table {name} is to be created at {root}, but its metadata sets the location "
            f"{wanted}; a table named by its location can only be there"
        )
    io.require_create(metadata_directory(root) + "/")
    return root


def create_first_version(
    io: FileIO, location: str, metadata: TableMetadata, name: str
) -> TableState:
    """Creates a table of finished metadata; errors as for `create_at_location`."""
    _check_storable(None, metadata, name)
    io.require_create(metadata_directory(location) + "/")
    if list_versions(io, location):
        raise AlreadyExistsError(f"table {name} already exists at {location}")
    try:
        # Never compressed: writers that race to create the table must write the same file.
        new = NewVersion(location, 1, "v1.metadata.json", None, None, metadata)
        return _land(io, new, name)
    except CommitConflictError as conflict:
        raise AlreadyExistsError(
            f"table {name} already exists at {location}, or is being created there: {conflict}"
        ) from None


def table_root(io: FileIO, location: str, name: str) -> str:
    """A table's root directory as metadata may hold it: absolute, with no slash at its end.

    Raises:
        InvalidOptionError: the location is that of a metadata file.
    """
    if is_metadata_file(location):
        raise InvalidOptionError(
            f"table {name}: {location} is a metadata file, which is one state of a table and "
            "cannot be changed; give the table's root directory"
        )
    return io.absolute(location).rstrip("/")


@dataclass(frozen=True, slots=True)
class _LocationOperations:
    """`TableOperations` of the table at a location."""

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
        """As `TableOperations.commit` says.

        Raises:
            UnsupportedFeatureError: the table is another catalog's, or the storage cannot create
                files exclusively, or the updates move the table or its metadata.
        """
        version, file = self._replaced(base)
        check_requirements(requirements, base.metadata, self.name)
        previous = f"{metadata_directory(self.location)}/{file}"
        metadata = next_metadata(base.metadata, previous, updates)
        if metadata is base.metadata:
            return base
        _check_storable(base.metadata, metadata, self.name)
        # By the properties of the version that is replaced, so that all who race to replace it
        # create the same file.
        suffix = ".gz.metadata.json" if _is_compressed(base.metadata) else ".metadata.json"
        new = NewVersion(
            self.location, version + 1, f"v{version + 1}{suffix}", file, base.metadata, metadata
        )
        self.io.require_create(metadata_directory(self.location) + "/")
        committed = _land(self.io, new, self.name)
        _delete_unlogged(self.io, base.metadata, metadata, self.name)
        return committed

    def _replaced(self, base: TableState) -> tuple[int, str]:
        """The version that a commit replaces and its file's name: `base`, if that is the newest.

        Raises:
            CommitConflictError: it is not, or it is that of a table that was dropped since.
            UnsupportedFeatureError: the table is another catalog's.
        """
        newest = find_newest_metadata(self.io, self.location, self.name)
        file = newest.rpartition("/")[2]
        version = own_version(file)
        if version is None:
            raise UnsupportedFeatureError(
                f"table {self.name} belongs to a catalog, which alone knows that {file} is its "
                "state: a commit by location would split its history; commit through that catalog"
            )
        if not _same_state(self.io, base, newest):
            raise CommitConflictError(
                f"table {self.name} was changed by another commit: it is at {newest}, this commit "
                f"was made for {base.metadata_location}"
            )
        return version, file


def _land(io: FileIO, new: NewVersion, name: str) -> TableState:
    """Creates a version's file and makes sure that it is the table.

    Raises:
        CommitConflictError: another commit came first.
        CommitStateUnknownError: whether this one landed is not known.
    """
    path = f"{metadata_directory(new.location)}/{new.file}"
    _create(io, path, _encoded(new.metadata, compress=".gz." in new.file), name)
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
    return TableState(name, path, new.metadata, io)


def _create(io: FileIO, path: str, data: bytes, name: str) -> None:
    """Creates a file, and where that fails, finds out whether it was created nevertheless."""
    try:
        io.create(path, data)
    except AlreadyExistsError as error:
        if _content(io, path, name, error) != data:
            raise CommitConflictError(
                f"table {name} was changed by another commit: {error}"
            ) from None
    except IcebergError:
        # Ours: nothing was sent.
        raise
    except Exception as error:
        found = _content(io, path, name, error)
        if found is None and _is_refusal(error):
            raise IcebergError(
                f"table {name} was not changed: {path} could not be created: {error}"
            ) from error
        if found is None:
            raise _unknown(name, path, error) from error
        if found != data:
            raise CommitConflictError(
                f"table {name} was changed by another commit: {path} exists"
            ) from error


def _content(io: FileIO, path: str, name: str, cause: Exception) -> bytes | None:
    """What is in a file now; None where it is not there."""
    try:
        return io.read_bytes(path)
    except MissingFileError:
        return None
    except Exception as error:
        raise _unknown(name, path, error) from cause


def _write_hint(io: FileIO, new: NewVersion, name: str) -> None:
    # Readers that trust it look for newer versions from there on: late is harmless.
    try:
        io.write(f"{metadata_directory(new.location)}/{VERSION_HINT}", str(new.version).encode())
    except Exception as error:
        _LOG.warning("table %s: its version hint was not written: %s", name, error)


def _unknown(name: str, path: str, why: object) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"table {name}: whether {path} was committed is not known ({why}); look whether it is "
        "among the table's metadata files before trying again"
    )


# Commits that may come between a commit's last look at the table and its file.
_KEPT_UNLOGGED = 20
_SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")

# Answers that say the file was not written. A time-out or a lost connection does not.
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
    }
)


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, PermissionError | FileNotFoundError) or (
        isinstance(error, OSError) and error.errno in _REFUSALS
    )


def _same_state(io: FileIO, base: TableState, newest: str) -> bool:
    """Whether a table is still as it was, and was not dropped and made again since."""
    if io.resolve(base.metadata_location) != io.resolve(newest):
        return False
    try:
        found = parse_identity(io.read_bytes(newest), newest)
    except MissingFileError:
        return False
    return found == (base.metadata.table_uuid, base.metadata.last_updated_ms)


def _check_storable(base: TableMetadata | None, metadata: TableMetadata, name: str) -> None:
    """Refuses what a table named by its location cannot have."""
    if base is not None and metadata.location != base.location:
        raise UnsupportedFeatureError(
            f"table {name} is named by its location {base.location}, so its location cannot be "
            f"set to {metadata.location}"
        )
    if METADATA_PATH in metadata.properties:
        raise UnsupportedFeatureError(
            f"table {name} is named by its location, where its metadata must be: the property "
            f"{METADATA_PATH} cannot be set"
        )
    codec = metadata.properties.get(METADATA_COMPRESSION, METADATA_COMPRESSION_DEFAULT)
    if codec.lower() not in ("none", "gzip"):
        raise InvalidOptionError(
            f"table {name}: the property {METADATA_COMPRESSION} is {codec!r}, expected none or gzip"
        )


def _is_compressed(metadata: TableMetadata) -> bool:
    codec = metadata.properties.get(METADATA_COMPRESSION, METADATA_COMPRESSION_DEFAULT)
    return codec.lower() == "gzip"


def _encoded(metadata: TableMetadata, *, compress: bool) -> bytes:
    """The file's bytes, which no other attempt shares.

    Two commits of one change in one millisecond have equal metadata. White space after the
    document, 128 random bits of it, tells them apart, and with that a file of one's own from that
    of another.
    """
    mark = bytes(b" \t"[bit == "1"] for bit in f"{secrets.randbits(128):0128b}")
    data = serialise_metadata(metadata) + mark
    return gzip.compress(data, mtime=0) if compress else data


def _delete_unlogged(io: FileIO, base: TableMetadata, metadata: TableMetadata, name: str) -> None:
    """Deletes metadata files that left the log, where the table asks for it.

    They go some commits later than they could: a name that is free again may be taken by a commit
    to a state long past, one that was about to create its file and was held up.
    """
    kept = {entry.metadata_file for entry in metadata.metadata_log}
    removed = [e.metadata_file for e in base.metadata_log if e.metadata_file not in kept]
    try:
        if removed and bool_property(
            metadata.properties,
            METADATA_DELETE_AFTER_COMMIT_ENABLED,
            METADATA_DELETE_AFTER_COMMIT_ENABLED_DEFAULT,
        ):
            io.delete_all(path for file in removed for path in _deletable(file))
    except Exception as error:
        _LOG.warning("table %s: old metadata files were not deleted: %s", name, error)


def _deletable(unlogged: str) -> list[str]:
    """The files to delete when one leaves the log: one of a lower version, or a catalog's own."""
    directory, _, file = unlogged.rpartition("/")
    version = own_version(file)
    if version is None:
        return [unlogged]
    old = version - _KEPT_UNLOGGED
    return [f"{directory}/v{old}{suffix}" for suffix in _SUFFIXES] if old > 0 else []
