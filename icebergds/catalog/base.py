"""What a catalog is: identifiers, the current metadata of tables, and how that is swapped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from icebergds.commit.operations import TableOperations, TableState
from icebergds.io.fileio import FileIO
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.suggestions import did_you_mean

Identifier: TypeAlias = tuple[str, ...]
"""Namespace and name of a table, or a namespace."""


def nearest_table(identifier: Identifier, names: Iterable[str]) -> str:
    """The end of a message that a table does not exist: which name of its namespace is close."""
    namespace, name = identifier[:-1], identifier[-1]
    near = did_you_mean(name, names, shown=lambda known: ".".join((*namespace, known)))
    return f"; {near}" if near else ""


class Catalog(Protocol):
    """Tables and namespaces by identifier."""

    @property
    def name(self) -> str: ...

    @property
    def io(self) -> FileIO:
        """Storage of the tables' metadata and files."""
        ...

    def operations(self, identifier: Identifier) -> TableOperations:
        """Loads and commits one table; whether it exists shows when it is used."""
        ...

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: the catalog has no table under this identifier; names the nearest.
        """
        ...

    def new_table_location(self, identifier: Identifier) -> str:
        """Where a table goes that is created without a location."""
        ...

    def check_creation(self, identifier: Identifier, location: str) -> None:
        """Refuses what `create` would refuse of a table's name and place, before files are written.

        Raises:
            NoSuchNamespaceError: the catalog keeps namespaces, and this one does not exist.
            InvalidOptionError: the table cannot have this name or location.
            UnsupportedFeatureError: the storage cannot have tables.
        """
        ...

    def create(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
        """Creates a table from nothing but updates (which may add its first snapshot), atomically.

        Raises:
            AlreadyExistsError: there is such a table.
            NoSuchNamespaceError: the catalog keeps namespaces, and this one does not exist.
            CommitStateUnknownError: whether the table was created is not known.
        """
        ...

    def register(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Takes in a table by its metadata file.

        Raises AlreadyExistsError, NoSuchNamespaceError.
        """
        ...

    def drop(self, identifier: Identifier) -> TableState | None:
        """Forgets a table and leaves its files; its last state, if that can be read.

        Raises NoSuchTableError.
        """
        ...

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Gives a table another identifier.

        Raises:
            NoSuchTableError, AlreadyExistsError, NoSuchNamespaceError.
            UnsupportedFeatureError: the catalog cannot rename.
        """
        ...

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables, in order. Raises NoSuchNamespaceError."""
        ...

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces directly below another, in order. Raises NoSuchNamespaceError."""
        ...

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Raises AlreadyExistsError where it is there."""
        ...

    def drop_namespace(self, namespace: Identifier) -> None:
        """Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        ...

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """Raises NoSuchNamespaceError."""
        ...

    def update_namespace_properties(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Raises NoSuchNamespaceError; UnsupportedFeatureError where there are no properties."""
        ...
