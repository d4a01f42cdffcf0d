"""Defines the catalog protocol: tables and namespaces by identifier, and atomic commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from icebergds.commit.operations import TableCommit, TableOperations, TableState
from icebergds.errors import NoSuchNamespaceError
from icebergds.io.fileio import FileIO
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.suggestions import did_you_mean

Identifier: TypeAlias = tuple[str, ...]
"""Namespace and name of a table, or a namespace."""


def nearest_table(identifier: Identifier, names: Iterable[str]) -> str:
    """The hint of an unknown-table message: a similar name in its namespace; may be empty."""
    namespace, name = identifier[:-1], identifier[-1]
    near = did_you_mean(name, names, shown=lambda known: ".".join((*namespace, known)))
    return f"; {near}" if near else ""


def nearest_namespace(namespace: Identifier, known: Iterable[Identifier]) -> str:
    """The hint of an unknown-namespace message: a similar one, or a few; may be empty."""
    names = sorted(map(".".join, known))
    hint = did_you_mean(".".join(namespace), names)
    if not hint and names:
        hint = f"there are {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
    return f"; {hint}" if hint else ""


def missing_table_hint(
    identifier: Identifier,
    tables: Iterable[str] | None,
    namespaces: Callable[[], Iterable[Identifier]],
) -> str:
    """The hint of an unknown-table message: a similar table or namespace; may be empty.

    Args:
        tables: names in its namespace; None if there is no such namespace.
        namespaces: called if there is no such namespace.
    """
    if tables is not None:
        # A server may list a name without metadata, which is not a table yet.
        return nearest_table(identifier, (name for name in tables if name != identifier[-1]))
    namespace = identifier[:-1]
    near = nearest_namespace(namespace, namespaces())
    return f"; there is no namespace {'.'.join(namespace)}{near}"


def no_namespace(
    catalog: str, namespace: Identifier, known: Iterable[Identifier]
) -> NoSuchNamespaceError:
    """The error of a namespace that a catalog does not have, with a similar name."""
    text = ".".join(namespace)
    near = did_you_mean(text, map(".".join, known))
    hint = near or f"create it with create_namespace({text!r}) or CREATE NAMESPACE"
    return NoSuchNamespaceError(f"catalog {catalog} has no namespace {text}; {hint}")


class Catalog(Protocol):
    """Tables and namespaces by identifier."""

    @property
    def name(self) -> str: ...

    @property
    def io(self) -> FileIO:
        """The storage of the tables' metadata and files."""
        ...

    def operations(self, identifier: Identifier) -> TableOperations:
        """The operations that load and commit one table; its existence is not checked yet."""
        ...

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: the catalog has no such table; the message suggests a similar name.
        """
        ...

    def new_table_location(self, identifier: Identifier) -> str:
        """The location of a table that is created without one."""
        ...

    def check_creation(self, identifier: Identifier, location: str) -> None:
        """Checks the name and location of a new table as `create` does, before files are written.

        Raises:
            NoSuchNamespaceError: the catalog requires namespaces, and this one does not exist.
            InvalidOptionError: the table cannot have this name or location.
            UnsupportedFeatureError: the storage does not support commits.
        """
        ...

    def create(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
        """Creates a table atomically by applying updates, which may add its first snapshot.

        Raises:
            AlreadyExistsError: the table exists.
            NoSuchNamespaceError: the catalog requires namespaces, and this one does not exist.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        ...

    def register(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Adds an existing table by its metadata file.

        Raises AlreadyExistsError, NoSuchNamespaceError.
        """
        ...

    def drop(self, identifier: Identifier) -> TableState | None:
        """Drops a table but keeps its files; returns its last state, if that can be read.

        Raises NoSuchTableError.
        """
        ...

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a table.

        Raises:
            NoSuchTableError, AlreadyExistsError, NoSuchNamespaceError.
            UnsupportedFeatureError: the catalog does not support renames.
        """
        ...

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables, sorted. Raises NoSuchNamespaceError."""
        ...

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces directly below another, sorted. Raises NoSuchNamespaceError."""
        ...

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Raises AlreadyExistsError."""
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
        """Raises NoSuchNamespaceError; UnsupportedFeatureError if namespaces have no properties."""
        ...


@runtime_checkable
class StagingCatalog(Protocol):
    """A catalog that gives access to the location of a table before the table is created."""

    def new_table_io(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> FileIO:
        """The storage for the files of a table that does not exist yet.

        Args:
            updates: create the table, without its first snapshot.

        Raises:
            AlreadyExistsError: the table exists.
            NoSuchNamespaceError: the namespace does not exist.
        """
        ...


@runtime_checkable
class PurgingCatalog(Protocol):
    """A catalog that deletes a table's files together with the table; it cannot keep them."""

    def purge(self, identifier: Identifier) -> TableState | None:
        """Drops a table and deletes its files; returns its last state, if that can be read.

        Raises NoSuchTableError.
        """
        ...


@runtime_checkable
class OverwritingCatalog(Protocol):
    """A catalog that can set the metadata file of a table that it has."""

    def register_over(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Registers a table by its metadata file, atomically instead of the table of this name.

        If there is no such table, it is added. No files of the replaced table are deleted.

        Raises:
            AlreadyExistsError: a view, or a table of another format, has this name.
            NoSuchNamespaceError: its namespace does not exist.
            UnsupportedFeatureError: the server does not support this.
            CommitStateUnknownError: it is unknown whether the table was registered.
        """
        ...


@runtime_checkable
class UnregisteringCatalog(Protocol):
    """A catalog that can remove a table in a known state."""

    def unregister(self, identifier: Identifier) -> str:
        """Removes a table but keeps its files; returns its last metadata file.

        That file has all commits that were ever made to the table in this catalog.

        Raises:
            NoSuchTableError: there is no such table.
            UnsupportedFeatureError: the server does not support this.
            CommitStateUnknownError: it is unknown whether the table was removed.
        """
        ...


@runtime_checkable
class ReferencingCatalog(Protocol):
    """A catalog whose server decides by views what may be read through them."""

    def referenced_by(self, views: Sequence[Identifier]) -> Catalog:
        """The same catalog for names in the query of a view; its server is told the views.

        Args:
            views: the views of this catalog whose queries contain the names, outermost first.
        """
        ...


@runtime_checkable
class ServedCatalog(Protocol):
    """A catalog whose server adds properties to the user's."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The user's properties and the server's."""
        ...


@runtime_checkable
class TransactionCatalog(Protocol):
    """A catalog that can commit to several tables at once."""

    @property
    def commits_atomically(self) -> bool:
        """Whether it never commits to only some of the tables, even if it fails."""
        ...

    def check_transactions(self) -> None:
        """Raises UnsupportedFeatureError if this catalog, or its server, does not support it."""
        ...

    def commit_tables(self, commits: Sequence[TableCommit]) -> Sequence[TableState]:
        """Commits to all tables or to none; see `CommitsTables`."""
        ...
