"""Implements the common parts of catalogs with pointers (`PointerCatalog`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from icebergds.catalog.base import Identifier, missing_table_hint, no_namespace
from icebergds.catalog.pointer.pointer import MetadataPointer, Pointer
from icebergds.catalog.pointer.table_operations import PointerTableOperations
from icebergds.commit.operations import TableState
from icebergds.errors import (
    CommitConflictError,
    InvalidOptionError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.expr.names import quote_name
from icebergds.io.fileio import FileIO
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.updates.table_updates import TableUpdate

__all__ = ["PointerCatalog", "has_changes"]

_Seen = TypeVar("_Seen")


@dataclass(frozen=True, slots=True)
class PointerCatalog(ABC):
    """A catalog whose server stores the location of each table's current metadata file.

    A subclass implements the requests to its server, and lists, creates and drops namespaces; the
    table methods of `Catalog` are implemented here.

    Attributes:
        warehouse: the location of tables whose namespace has no location; None if there is none.
        flat: the name in messages of a server without nested namespaces; empty for others.
        deletes_exactly: whether a pointer's `delete` deletes only the entry that was found, not one
            that has changed since.
    """

    name: str
    warehouse: str | None
    io: FileIO
    flat: ClassVar[str] = ""
    deletes_exactly: ClassVar[bool] = False

    # Requests to the server.

    @abstractmethod
    def _check(self, identifier: Identifier) -> None:
        """Raises InvalidOptionError if this cannot be a table's name."""

    @abstractmethod
    def _pointer(self, identifier: Identifier) -> MetadataPointer[TableMetadata]:
        """The entry of a table whose name has been checked."""

    @abstractmethod
    def _require(self, namespace: Identifier) -> object:
        """Checks that a namespace can have tables. Raises NoSuchNamespaceError."""

    @abstractmethod
    def _some_tables(self, namespace: Identifier) -> Iterable[str] | None:
        """Names of tables for hints; None if there is no such namespace."""

    @abstractmethod
    def _some_namespaces(self) -> Iterable[Identifier]:
        """Namespaces for hints."""

    @abstractmethod
    def _update_namespace(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Removes and sets properties, which are disjoint."""

    def _location_of(self, namespace: Identifier) -> str | None:
        """The location that a namespace sets for its tables. Raises NoSuchNamespaceError."""
        return None

    def _elsewhere(self) -> str:
        """A hint where else a namespace that does not exist may be."""
        return ""

    # Tables.

    def operations(self, identifier: Identifier) -> PointerTableOperations:
        self._check(identifier)
        return PointerTableOperations(self._pointer(identifier), self.io, self._named(identifier))

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: the catalog has no such table, or one of another format; the message
                suggests a similar name.
            InvalidOptionError: the identifier cannot be the name of a table.
        """
        if self.flat and len(identifier) > 2:
            # For example a metadata table, which is first looked up as a table.
            raise NoSuchTableError(
                f"table {self._named(identifier)} does not exist: {self.flat} has no namespaces "
                "in namespaces; expected a database and a table, such as db.events"
            )
        try:
            return self.operations(identifier).refresh()
        except NoSuchTableError as error:
            raise NoSuchTableError(f"{error}{self._hint(identifier)}") from None

    def new_table_location(self, identifier: Identifier) -> str:
        """A location under that of the namespace, or else under the warehouse.

        Raises:
            NoSuchNamespaceError: the namespace does not exist.
            InvalidOptionError: neither is set, or the identifier is not a directory name.
        """
        self._check(identifier)
        if any(part in (".", "..") or "/" in part for part in identifier):
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} cannot be the name of a directory; "
                "give the table a location"
            )
        *namespace, table = identifier
        location = self._location_of(tuple(namespace)) or self._in_warehouse(tuple(namespace))
        if not location:
            raise InvalidOptionError(
                f"catalog {self.name} has no warehouse for {'.'.join(identifier)}: set "
                "option('catalog.warehouse', '<directory>'), or give the namespace or the table a "
                "location"
            )
        return f"{self.io.absolute(location).rstrip('/')}/{table}"

    def check_creation(self, identifier: Identifier, location: str) -> None:
        """Checks that the table's namespace exists.

        Raises:
            NoSuchNamespaceError: it does not.
            InvalidOptionError: the identifier cannot be the name of a table.
        """
        self._check(identifier)
        self._require(identifier[:-1])

    def create(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
        """Creates a table in an existing namespace.

        Raises:
            AlreadyExistsError: a table or view with this name exists, in any format.
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: the server does not allow the name.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        self.check_creation(identifier, "")
        return self.operations(identifier).create(updates)

    def register(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Adds an existing table by its metadata file, which stays where it is.

        Raises:
            AlreadyExistsError: a table or view with this name exists, in any format.
            NoSuchNamespaceError: its namespace does not exist.
            MissingFileError: the metadata file does not exist.
            CommitStateUnknownError: it is unknown whether the table was registered.
        """
        self.check_creation(identifier, "")
        return self.operations(identifier).register(self.io.absolute(metadata_location))

    def register_over(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Implements `OverwritingCatalog.register_over`."""
        self.check_creation(identifier, "")
        return self.operations(identifier).register_over(self.io.absolute(metadata_location))

    def unregister(self, identifier: Identifier) -> str:
        """Implements `UnregisteringCatalog.unregister`.

        Raises:
            NoSuchTableError: there is no such table, or it is of another format.
            InvalidMetadataError: the catalog has no metadata file for it.
            UnsupportedFeatureError: the server cannot compare and delete an entry at once.
            CommitConflictError: other commits changed it each time; it was not removed.
            CommitStateUnknownError: it is unknown whether it was removed.
        """
        operations = self.operations(identifier)
        if not self.deletes_exactly:
            raise UnsupportedFeatureError(
                f"table {operations.name} was not unregistered: its catalog cannot make sure that "
                "no commit is lost meanwhile. Stop all writers, note the metadata_location of the "
                "table, and drop it with drop_table, which keeps its files"
            )
        return self._delete(operations, operations.kept_location)

    def drop(self, identifier: Identifier) -> TableState | None:
        """Drops a table but keeps its files.

        Returns:
            The table's last state; None if its metadata is missing or damaged.

        Raises:
            NoSuchTableError: there is no such table, or it is of another format.
            CommitConflictError: other commits changed it each time; it was not dropped.
            CommitStateUnknownError: it is unknown whether it was dropped.
        """
        operations = self.operations(identifier)
        return self._delete(operations, operations.last_state)

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a table; its files stay where they are.

        Raises:
            NoSuchTableError: there is no such table, or it is of another format.
            NoSuchNamespaceError: the namespace of the target does not exist.
            AlreadyExistsError: the target exists.
            CommitConflictError: the table was changed in the meantime, and was not renamed.
            CommitStateUnknownError: it is unknown whether it was renamed.
        """
        old, new = self.operations(source), self.operations(target)
        self._require(target[:-1])
        old.rename(new)

    # Namespaces.

    def update_namespace_properties(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Removes and sets properties.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
            InvalidOptionError: a property is both removed and set, or not allowed.
            UnsupportedFeatureError: namespaces have no properties.
            CommitStateUnknownError: it is unknown whether they were changed.
        """
        if both := set(removals) & updates.keys():
            raise InvalidOptionError(
                f"namespace {self._named(namespace)}: {', '.join(sorted(both))} cannot be both "
                "removed and set"
            )
        self._update_namespace(namespace, removals, updates)

    # For subclasses.

    def _delete(
        self, operations: PointerTableOperations, seen: Callable[[Pointer], _Seen]
    ) -> _Seen:
        """Deletes a table's entry; returns what `seen` tells of the entry just before that."""
        for _ in range(_DROPS):
            found = operations.existing()
            result = seen(found)
            if operations.pointer.delete(found):
                return result
        raise CommitConflictError(
            f"table {operations.name} was not dropped: other commits changed it {_DROPS} times "
            "meanwhile; try again"
        )

    def _named(self, identifier: Identifier) -> str:
        return quote_name((self.name, *identifier))

    def _no_namespace(self, namespace: Identifier) -> NoSuchNamespaceError:
        """The error for a namespace that does not exist."""
        error = no_namespace(self.name, namespace, self._some_namespaces())
        return NoSuchNamespaceError(f"{error}{self._elsewhere()}")

    def _in_warehouse(self, namespace: Identifier) -> str | None:
        """The directory of a namespace without a location, following Java Iceberg."""
        if not self.warehouse:
            return None
        return f"{self.io.absolute(self.warehouse).rstrip('/')}/{'.'.join(namespace)}.db"

    def _hint(self, identifier: Identifier) -> str:
        tables = self._some_tables(identifier[:-1])
        hint = missing_table_hint(identifier, tables, self._some_namespaces)
        return hint if tables is not None else f"{hint}{self._elsewhere()}"


def has_changes(
    properties: Mapping[str, str], removals: Sequence[str], updates: Mapping[str, str]
) -> bool:
    """Whether the properties of a namespace have the changes."""
    return updates.items() <= properties.items() and properties.keys().isdisjoint(removals)


# Attempts to drop a table that others commit to.
_DROPS = 20
