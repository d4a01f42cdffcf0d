"""Implements the REST catalog: tables, views and namespaces on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from icebergds.catalog.base import Identifier, nearest_namespace, nearest_table
from icebergds.catalog.rest import (
    creation,
    functions,
    namespaces,
    registration,
    transactions,
    views,
)
from icebergds.catalog.rest.config import RENAME_TABLE, TRANSACTION
from icebergds.catalog.rest.failures import RestError, refusals, settle
from icebergds.catalog.rest.namespaces import listed
from icebergds.catalog.rest.operations import RestTableOperations
from icebergds.catalog.rest.options import flag, integer
from icebergds.catalog.rest.scan_planning import check_planning
from icebergds.catalog.rest.session import RestSession, rest_session
from icebergds.catalog.rest.table_access import storage_of_all
from icebergds.catalog.rest.tables import load_table, named, renaming
from icebergds.catalog.views import ViewState, is_view, view_not_table
from icebergds.commit.operations import TableCommit, TableState
from icebergds.errors import (
    AlreadyExistsError,
    FormatError,
    IcebergError,
    InvalidOptionError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.functions import FunctionMetadata
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.spec.views.updates import ViewUpdate

__all__ = ["RestCatalog", "rest_catalog"]


@dataclass(frozen=True, slots=True)
class RestCatalog:
    """A catalog on a server that implements the Iceberg REST catalog specification.

    Attributes:
        io: the storage of the tables, with the properties that the server sets for all of them.
    """

    name: str
    io: FileIO
    session: RestSession = field(repr=False)

    @property
    def properties(self) -> Mapping[str, str]:
        """The user's properties and the server's."""
        return self.session.config.properties

    # Tables.

    def operations(self, identifier: Identifier) -> RestTableOperations:
        self._check(identifier)
        return RestTableOperations(self.session, self.io, identifier, named(self.name, identifier))

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: the catalog has no such table; the message suggests a similar name.
            InvalidOptionError: the identifier has no namespace, or an empty part.
        """
        try:
            return self.operations(identifier).refresh()
        except NoSuchTableError as error:
            if is_view(self, identifier):
                raise NoSuchTableError(view_not_table(self, identifier)) from None
            raise NoSuchTableError(f"{error}{self._near(identifier)}") from None

    def new_table_location(self, identifier: Identifier) -> str:
        """The location that the server chooses, or one under that of the namespace or warehouse.

        Raises:
            InvalidOptionError: the server chooses none, and neither of these is set.
        """
        self._check(identifier)
        return creation.new_location(self.session, self.io, identifier, "table")

    def check_creation(self, identifier: Identifier, location: str) -> None:
        """Checks that the table's namespace exists.

        Raises:
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: the identifier has no namespace, or an empty part.
        """
        self._check(identifier)
        self.namespace_properties(identifier[:-1])

    def new_table_io(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> FileIO:
        """The storage of a table before it is created, with credentials for its location.

        Raises AlreadyExistsError, NoSuchNamespaceError, UnsupportedFeatureError.
        """
        self._check(identifier)
        return creation.stage(self.session, self.io, identifier, updates).io

    def create(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
        """Creates a table in an existing namespace.

        Raises:
            AlreadyExistsError: a table or view with this name exists.
            NoSuchNamespaceError: its namespace does not exist.
            UnsupportedFeatureError: the server does not support the format version.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        return creation.create(self.operations(identifier), updates)

    def register(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Adds an existing table by its metadata file, which the server must be able to read.

        Raises:
            AlreadyExistsError: a table or view with this name exists.
            NoSuchNamespaceError: its namespace does not exist.
            UnsupportedFeatureError: the server does not support this.
            CommitStateUnknownError: it is unknown whether the table was registered.
        """
        return self._register(identifier, metadata_location, overwrite=False)

    def register_over(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Implements `OverwritingCatalog.register_over`."""
        return self._register(identifier, metadata_location, overwrite=True)

    def unregister(self, identifier: Identifier) -> str:
        """Implements `UnregisteringCatalog.unregister`."""
        return registration.unregister(self.operations(identifier))

    def drop(self, identifier: Identifier) -> TableState | None:
        """Drops a table but keeps its files.

        Returns:
            The table's last state; None if its metadata is damaged.

        Raises:
            NoSuchTableError: there is no such table.
            CommitStateUnknownError: it is unknown whether it was dropped.
        """
        operations = self.operations(identifier)
        try:
            state = operations.refresh_whole()
        except FormatError:
            state = None
        path = self.session.routes.table(identifier)
        with refusals({404: lambda error: creation.missing(operations.name)}):
            try:
                self.session.change("DELETE", path, query={"purgeRequested": "false"})
            except RestError as error:
                settle(f"drop table {operations.name}", error, lambda: not self._has(identifier))
        self.session.seen.forget(path)
        return state

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a table; its files stay where they are.

        Raises:
            NoSuchTableError: there is no such table.
            NoSuchNamespaceError: the namespace of the target does not exist.
            AlreadyExistsError: the target exists.
            UnsupportedFeatureError: the server does not rename tables.
            CommitStateUnknownError: it is unknown whether it was renamed.
        """
        self._check(source)
        self._check(target)
        session = self.session
        session.config.require(self.name, RENAME_TABLE, "renaming tables")
        old, new = named(self.name, source), named(self.name, target)
        if source == target:
            # Servers differ in their answers.
            if not self._has(source):
                raise creation.missing(old)
            raise AlreadyExistsError(f"table {old} cannot be renamed: {new} exists")

        def missing(error: RestError) -> IcebergError:
            if error.kind == "NoSuchNamespaceException" or self._has(source):
                return namespaces.missing(session, target[:-1])
            return creation.missing(old)

        errors = {
            404: missing,
            406: lambda error: UnsupportedFeatureError(
                f"table {old} cannot be renamed to {new}: {error.explanation or error.reason}"
            ),
            409: lambda error: AlreadyExistsError(f"table {old} cannot be renamed: {new} exists"),
        }
        with refusals(errors):
            try:
                session.change("POST", session.routes.rename_table(), renaming(source, target))
            except RestError as error:
                settle(
                    f"rename table {old}",
                    error,
                    lambda: not self._has(source) and self._has(target),
                )
        session.seen.forget(session.routes.table(source))
        session.seen.forget(session.routes.table(target))

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables, sorted. Raises NoSuchNamespaceError."""
        if not namespace:
            return []
        path = self.session.routes.tables(namespace)
        with refusals({404: lambda error: namespaces.missing(self.session, namespace)}):
            return listed(self.session, path, "identifiers")

    @property
    def commits_atomically(self) -> bool:
        """Not all servers commit atomically."""
        return False

    def check_transactions(self) -> None:
        """Checks that the server supports multi-table commits. Raises UnsupportedFeatureError."""
        self.session.config.require(self.name, TRANSACTION, "commits to several tables")

    def commit_tables(self, commits: Sequence[TableCommit]) -> Sequence[TableState]:
        """Commits to several tables in one request; errors are those of `CommitsTables`."""
        self.check_transactions()
        return transactions.commit_tables(
            [(self.operations(each.identifier), each) for each in commits]
        )

    # Namespaces.

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces directly below another, sorted. Raises NoSuchNamespaceError."""
        return namespaces.list_below(self.session, parent)

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Raises AlreadyExistsError, UnsupportedFeatureError, CommitStateUnknownError."""
        namespaces.create(self.session, namespace, properties)

    def drop_namespace(self, namespace: Identifier) -> None:
        """Raises NoSuchNamespaceError, NamespaceNotEmptyError, CommitStateUnknownError."""
        namespaces.drop(self.session, namespace)

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """Raises NoSuchNamespaceError."""
        return namespaces.properties(self.session, namespace)

    def update_namespace_properties(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Removes and sets properties at once.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
            InvalidOptionError: a property is both removed and set.
            UnsupportedFeatureError: the server's namespaces have no properties.
            CommitStateUnknownError: it is unknown whether they were changed.
        """
        namespaces.update(self.session, namespace, removals, updates)

    # Views.

    def load_view(self, identifier: Identifier) -> ViewState:
        """The current state of a view. Raises NoSuchViewError, UnsupportedFeatureError."""
        self._check(identifier)
        return views.load(self.session, identifier)

    def create_view(self, identifier: Identifier, updates: Sequence[ViewUpdate]) -> ViewState:
        """Creates a view; errors are those of `ViewCatalog.create_view`."""
        self._check(identifier)
        return views.create(self.session, identifier, updates)

    def register_view(self, identifier: Identifier, metadata_location: str) -> ViewState:
        """Implements `RegisteringViews.register_view`."""
        self._check(identifier)
        location = self.io.absolute(metadata_location)
        return registration.register_view(self.session, identifier, location)

    def commit_view(
        self, identifier: Identifier, base: ViewState, updates: Sequence[ViewUpdate]
    ) -> ViewState:
        """Changes a view; errors are those of `ViewCatalog.commit_view`.

        The protocol has no requirement on a view's version, so a concurrent commit between the
        check of `base` and the change goes unnoticed.
        """
        self._check(identifier)
        return views.commit(self.session, identifier, base, updates)

    def drop_view(self, identifier: Identifier) -> None:
        """Drops a view. Raises NoSuchViewError, UnsupportedFeatureError."""
        self._check(identifier)
        views.drop(self.session, identifier)

    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Renames a view. Raises NoSuchViewError, AlreadyExistsError, NoSuchNamespaceError."""
        self._check(source)
        self._check(target)
        views.rename(self.session, source, target)

    def list_views(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's views, sorted. Raises NoSuchNamespaceError."""
        return views.list_in(self.session, namespace)

    def new_view_location(self, identifier: Identifier) -> str:
        """A location under that of the namespace or warehouse, or one that the server chooses."""
        self._check(identifier)
        return creation.new_location(self.session, self.io, identifier, "view")

    # Functions.

    @property
    def has_functions(self) -> bool:
        """Implements `FunctionCatalog.has_functions`."""
        return functions.are_supported(self.session)

    def list_functions(self, namespace: Identifier) -> list[Identifier]:
        """Implements `FunctionCatalog.list_functions`."""
        return functions.list_in(self.session, namespace)

    def load_function(self, identifier: Identifier) -> FunctionMetadata:
        """Implements `FunctionCatalog.load_function`."""
        self._check(identifier)
        return functions.load(self.session, identifier)

    def referenced_by(self, views: Sequence[Identifier]) -> RestCatalog:
        """Implements `ReferencingCatalog.referenced_by`."""
        return replace(self, session=self.session.referenced_by(views))

    def _register(
        self, identifier: Identifier, metadata_location: str, *, overwrite: bool
    ) -> TableState:
        self._check(identifier)
        location = self.io.absolute(metadata_location)
        return registration.register(
            self.session, self.io, identifier, location, overwrite=overwrite
        )

    def _has(self, identifier: Identifier) -> bool:
        try:
            load_table(self.session, self.io, identifier, named(self.name, identifier))
        except NoSuchTableError:
            return False
        except FormatError:
            return True
        return True

    def _near(self, identifier: Identifier) -> str:
        """The suggestion in an unknown-table message; empty if tables cannot be listed."""
        namespace = identifier[:-1]
        try:
            names = [name for *_, name in self.list_tables(namespace)]
            return nearest_table(identifier, names)
        except NoSuchNamespaceError:
            pass
        except IcebergError:
            return ""
        try:
            near = nearest_namespace(namespace, self.list_namespaces())
        except IcebergError:
            near = ""
        return f"; there is no namespace {'.'.join(namespace)}{near}"

    def _check(self, identifier: Identifier) -> None:
        if len(identifier) < 2 or not all(identifier):
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} is not the name of a table in a "
                "REST catalog: expected a namespace and a name joined by dots, such as db.events; "
                "to load a location, leave the catalog out"
            )
        self.session.routes.check(identifier)


def rest_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> RestCatalog:
    """The catalog on the server at `uri`.

    Args:
        name: the catalog's name in messages.
        properties: those of `options`, and of the storage.
        io: a storage with the user's properties.

    Raises:
        InvalidOptionError: a property is unknown or malformed, or the server has no such warehouse.
        StorageError: the server does not answer, or refuses to.
    """
    session = rest_session(name, properties)
    merged = session.config.properties
    check_planning(session)
    flag(name, merged, "rest-metrics-reporting-enabled", True)
    flag(name, merged, "view-endpoints-supported", False)
    integer(name, merged, "rest-page-size", 1)
    return RestCatalog(name, storage_of_all(session, io), session)
