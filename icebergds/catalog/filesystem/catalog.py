"""Implements the file system catalog: the table `db.events` is at `<warehouse>/db/events`."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icebergds.catalog.base import Identifier, nearest_namespace, nearest_table
from icebergds.catalog.filesystem.commits import (
    check_creation_at,
    create_at_location,
    create_first_version,
    location_operations,
)
from icebergds.catalog.metadata_files import (
    VERSION_HINT,
    list_versions,
    load_from_location,
    own_version,
)
from icebergds.commit.operations import TableOperations, TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    FormatError,
    InvalidOptionError,
    MissingFileError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.expr.names import quote_name
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.metadata import metadata_directory
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.suggestions import nearest_of

__all__ = ["FileSystemCatalog", "file_system_catalog", "load_from_location"]

_PROPERTIES = ("type", "warehouse")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileSystemCatalog:
    """Tables as directories under a warehouse, in the layout of Java's Hadoop catalog.

    Namespaces are directories without properties, created with their first table at the latest.
    """

    name: str
    warehouse: str
    io: FileIO

    def operations(self, identifier: Identifier) -> TableOperations:
        return location_operations(self.io, self._directory(identifier), self._named(identifier))

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: there is no such table; the message suggests a similar name.
            InvalidOptionError: the identifier has an empty part or one that is not a file name.
        """
        location = self._directory(identifier)
        try:
            return load_from_location(self.io, location, self._named(identifier))
        except NoSuchTableError as error:
            directory = self._namespace_directory(identifier[:-1])
            near = nearest_table(identifier, self._names_in(directory))
            if identifier[:-1] and not self._is_namespace(directory):
                near = f"; there is no namespace {'.'.join(identifier[:-1])}"
                near += self._near(identifier[:-1])
            raise NoSuchTableError(f"{error}{near}") from None

    def new_table_location(self, identifier: Identifier) -> str:
        """The only location that the table can have."""
        return self._directory(identifier)

    def check_creation(self, identifier: Identifier, location: str) -> None:
        """Checks that the location is the only possible one; namespaces need not exist.

        Raises:
            InvalidOptionError: the location is not `new_table_location`, or is within another
                table's location.
            UnsupportedFeatureError: the storage cannot create files exclusively.
        """
        self._refuse_within_table(identifier)
        check_creation_at(self.io, self._directory(identifier), location, self._named(identifier))

    def create(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
        """Creates a table, and its namespace if that does not exist.

        Raises:
            AlreadyExistsError: the table exists.
            InvalidOptionError: the updates set another location than `new_table_location`, or it is
                within another table's location.
            UnsupportedFeatureError: the storage cannot create files exclusively.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        self._refuse_within_table(identifier)
        return create_at_location(
            self.io, self._directory(identifier), updates, self._named(identifier)
        )

    def register(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Adds a table that is already at its location in the warehouse, such as a dropped one.

        The metadata is copied to a new first version.

        Raises:
            AlreadyExistsError: the table exists.
            UnsupportedFeatureError: the table is at another location.
        """
        location, name = self._directory(identifier), self._named(identifier)
        data = self.io.read_bytes(metadata_location)
        metadata = parse_metadata(data, metadata_location, self.io.max_metadata_bytes)
        if self.io.resolve(metadata.location).rstrip("/") != self.io.resolve(location):
            raise UnsupportedFeatureError(
                f"table {name} must be at {location}, but {metadata_location} describes a table at "
                f"{metadata.location}: a file system catalog has only tables in its warehouse; "
                "register it in a catalog of type sql or rest"
            )
        return create_first_version(self.io, location, metadata, name)

    def drop(self, identifier: Identifier) -> TableState | None:
        """Drops a table by deleting its metadata files, the newest last.

        Data files, manifests and all other files stay; Java's catalog deletes the whole directory.
        Until the newest metadata file is deleted, the table exists unchanged. To be able to restore
        it, keep a copy of that file and `register` it.

        Returns:
            The table's last state; None if its metadata is damaged.

        Raises:
            NoSuchTableError: there is no such table.
            UnsupportedFeatureError: another catalog wrote its metadata and may still have it.
        """
        location, name = self._directory(identifier), self._named(identifier)
        try:
            state = self.load(identifier)
        except FormatError:
            state = None
        # Repeated if there are concurrent commits.
        while versions := list_versions(self.io, location):
            files = [file for version in sorted(versions) for file in versions[version]]
            if foreign := [file for file in files if own_version(file) is None]:
                raise UnsupportedFeatureError(
                    f"table {name} cannot be dropped here: {metadata_directory(location)}/"
                    f"{foreign[-1]} was written by another catalog, which may still have the "
                    "table; drop it there"
                )
            if self._delete_metadata(location, files, name):
                break
        for empty in (metadata_directory(location), f"{location}/data", location):
            with contextlib.suppress(OSError, UnsupportedFeatureError):
                self.io.remove_empty_directory(empty)
        return state

    def _delete_metadata(self, location: str, files: Sequence[str], name: str) -> bool:
        """Deletes metadata files, the newest last.

        Returns:
            Whether the table is certainly gone; otherwise there may be new commits.

        Raises:
            StorageError: the newest metadata file, and so the table, still exists.
            CommitStateUnknownError: it is unknown whether it exists.
        """
        directory = metadata_directory(location)
        *older, newest = files
        self.io.delete(f"{directory}/{VERSION_HINT}")
        self.io.delete_all(f"{directory}/{file}" for file in older)
        failure = None
        try:
            self.io.delete(f"{directory}/{newest}")
        except StorageError as error:
            failure = error
        try:
            left = list_versions(self.io, location)
        except StorageError as error:
            if failure is None:
                # The table is dropped; a concurrent commit would have failed without its base.
                _LOG.warning("table %s was dropped, but its directory was left: %s", name, error)
                return True
            raise CommitStateUnknownError(
                f"table {name}: it is unknown whether it was dropped ({failure}; {error}); look "
                f"whether {directory}/{newest} exists before trying again"
            ) from failure
        if failure is not None and any(newest in found for found in left.values()):
            raise failure
        return not left

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Raises UnsupportedFeatureError: a table's name is its location."""
        raise UnsupportedFeatureError(
            f"catalog {self.name} is a file system catalog, where a table's name is its location: "
            f"{'.'.join(source)} cannot be renamed to {'.'.join(target)}"
        )

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables, sorted. Raises NoSuchNamespaceError."""
        directory = self._existing(namespace)
        names = sorted(self._names_in(directory))
        return [(*namespace, n) for n in names if list_versions(self.io, f"{directory}/{n}")]

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces directly below another, sorted. Raises NoSuchNamespaceError."""
        directory = self._existing(parent)
        names = sorted(self._names_in(directory))
        return [(*parent, n) for n in names if self._is_namespace(f"{directory}/{n}")]

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Creates the namespace's directory.

        Raises:
            AlreadyExistsError: it exists, as a namespace or a table.
            InvalidOptionError: it would be within a table.
            UnsupportedFeatureError: properties are given.
        """
        self._check(namespace)
        if properties:
            raise self._without_properties(namespace)
        directory = self._namespace_directory(namespace)
        if self.io.exists(directory):
            raise AlreadyExistsError(
                f"catalog {self.name}: {'.'.join(namespace)} already exists at {directory}"
            )
        self._refuse_within_table(namespace, "namespace")
        self.io.make_directory(directory)

    def drop_namespace(self, namespace: Identifier) -> None:
        """Removes an empty directory. Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        self._check(namespace)
        directory = self._existing(namespace)
        if found := self._names_in(directory):
            raise NamespaceNotEmptyError(
                f"catalog {self.name}: namespace {'.'.join(namespace)} is not empty: {directory} "
                f"contains {', '.join(sorted(found)[:5])}; files of dropped tables count, too"
            )
        try:
            self.io.remove_empty_directory(directory)
        except StorageError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise NamespaceNotEmptyError(
                f"catalog {self.name}: namespace {'.'.join(namespace)} was not dropped: {error}"
            ) from error

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """The namespace's directory as `location`. Raises NoSuchNamespaceError."""
        return {"location": self._existing(namespace)}

    def update_namespace_properties(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Raises NoSuchNamespaceError, or else UnsupportedFeatureError."""
        self._existing(namespace)
        raise self._without_properties(namespace)

    def _refuse_within_table(self, identifier: Identifier, what: str = "table") -> None:
        """Rejects names such as `db.events.branch_b`, within the directory of `db.events`."""
        for parts in range(2, len(identifier)):
            outer = identifier[:parts]
            if list_versions(self.io, self._namespace_directory(outer)):
                raise InvalidOptionError(
                    f"{what} {self._named(identifier)} cannot be created: {self._named(outer)} is "
                    "a table, not a namespace; to write to a branch of that table, use the option "
                    "'branch'"
                )

    def _named(self, identifier: Identifier) -> str:
        return quote_name((self.name, *identifier))

    def _check(self, identifier: Identifier) -> None:
        if not identifier or any(p in ("", ".", "..") or "/" in p for p in identifier):
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} is not an identifier: expected "
                "names joined by dots, such as db.events; to load a location, leave the catalog out"
            )

    def _directory(self, identifier: Identifier) -> str:
        self._check(identifier)
        return self._namespace_directory(identifier)

    def _namespace_directory(self, namespace: Identifier) -> str:
        return "/".join((self.io.absolute(self.warehouse).rstrip("/"), *namespace))

    def _existing(self, namespace: Identifier) -> str:
        """A namespace's directory. Raises NoSuchNamespaceError."""
        directory = self._namespace_directory(namespace)
        if not namespace:
            return directory
        self._check(namespace)
        if not self._is_namespace(directory):
            raise NoSuchNamespaceError(
                f"catalog {self.name} has no namespace {'.'.join(namespace)}: {directory} is not a "
                f"directory, or is a table{self._near(namespace)}"
            )
        return directory

    def _near(self, namespace: Identifier) -> str:
        """A hint with a similar namespace in the same parent."""
        parent = namespace[:-1]
        directory = self._namespace_directory(parent)
        beside = [
            (*parent, name)
            for name in self._names_in(directory)
            if self._is_namespace(f"{directory}/{name}")
        ]
        return nearest_namespace(namespace, beside)

    def _is_namespace(self, directory: str) -> bool:
        return self.io.is_directory(directory) and not list_versions(self.io, directory)

    def _names_in(self, directory: str) -> list[str]:
        try:
            return self.io.list(directory)
        except MissingFileError:
            return []

    def _without_properties(self, namespace: Identifier) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"catalog {self.name}: namespace {'.'.join(namespace)} is a directory and cannot have "
            "properties; use a catalog of type sql or rest"
        )


def file_system_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> FileSystemCatalog:
    """The catalog of a `warehouse` directory.

    Raises:
        InvalidOptionError: no warehouse is given, or a property is unknown.
    """
    for key in properties:
        if "." not in key and key not in _PROPERTIES:
            raise InvalidOptionError(
                f"catalog {name}: a file system catalog has no property {key!r}; "
                f"{nearest_of(key, _PROPERTIES)} (besides those of the storage, such as "
                "s3.endpoint)"
            )
    warehouse = properties.get("warehouse")
    if not warehouse:
        raise InvalidOptionError(
            f"catalog {name} is a file system catalog and needs a warehouse: set "
            "option('catalog.warehouse', '<directory of the warehouse>'), or "
            f"spark.icebergpy.catalog.{name}.warehouse in a registered session"
        )
    return FileSystemCatalog(name, warehouse, io)
