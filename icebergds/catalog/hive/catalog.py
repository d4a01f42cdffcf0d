"""Implements the catalog of a Hive Metastore (`HiveCatalog`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icebergds.catalog.base import Identifier, nearest_namespace, nearest_table
from icebergds.catalog.hive.calls import (
    ALTER_DATABASE,
    CREATE_DATABASE,
    DROP_DATABASE,
    DROP_TABLE,
    GET_ALL_DATABASES,
    GET_ALL_TABLES,
    GET_DATABASE,
    GET_TABLE_NAMES,
    AlreadyExists,
    InvalidObject,
    InvalidOperation,
    NoSuchObject,
)
from icebergds.catalog.hive.changes import make_change
from icebergds.catalog.hive.connection import Connection
from icebergds.catalog.hive.messages import Database
from icebergds.catalog.hive.namespaces import LOCATION, database_of, properties_of
from icebergds.catalog.hive.options import HiveOptions, hive_options
from icebergds.catalog.hive.pointer import HivePointer
from icebergds.catalog.hive.renaming import rename_table
from icebergds.catalog.pointer.table_operations import PointerTableOperations
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidOptionError,
    MissingFileError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.suggestions import did_you_mean

__all__ = ["HiveCatalog", "hive_catalog"]


@dataclass(frozen=True, slots=True)
class HiveCatalog:
    """A catalog whose namespaces are the databases of a Hive Metastore.

    Names of tables and namespaces are in lower case in the metastore, which finds them in any.
    """

    name: str
    options: HiveOptions
    io: FileIO

    def operations(self, identifier: Identifier) -> PointerTableOperations:
        return PointerTableOperations(self._pointer(identifier), self.io, self._named(identifier))

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: the catalog has no such table, or one of another format; the message
                suggests a similar name.
            InvalidOptionError: the identifier is not one of a database and a table.
        """
        if len(identifier) > 2:
            # Such as a metadata table of a table, which is looked for as a table first.
            raise NoSuchTableError(
                f"table {self._named(identifier)} does not exist: a Hive Metastore has no "
                "namespaces in namespaces; expected a database and a table, such as db.events"
            )
        operations = self.operations(identifier)
        try:
            return operations.refresh()
        except NoSuchTableError as error:
            raise NoSuchTableError(f"{error}{self._nearest(identifier)}") from None

    def new_table_location(self, identifier: Identifier) -> str:
        """A location in that of the database.

        Raises:
            NoSuchNamespaceError: the database does not exist.
            InvalidOptionError: the identifier is not a directory name, or not one of a database
                and a table; or neither the database nor the catalog has a location.
        """
        self._check(identifier)
        database, table = identifier
        if table in (".", "..") or "/" in table:
            raise InvalidOptionError(
                f"catalog {self.name}: {table!r} cannot be the name of a directory; give the table "
                "a location"
            )
        with self.options.metastore.connect() as connection:
            location = self._database(connection, (database,)).location
        location = location or self._new_database_location(database)
        if location is None:
            raise InvalidOptionError(
                f"catalog {self.name} has no warehouse for {'.'.join(identifier)}: set "
                "option('catalog.warehouse', '<directory>'), or give the table a location"
            )
        return f"{self.io.absolute(location).rstrip('/')}/{table}"

    def check_creation(self, identifier: Identifier, location: str) -> None:
        """Checks that the table's database exists.

        Raises:
            NoSuchNamespaceError: it does not.
            InvalidOptionError: the identifier is not one of a database and a table.
        """
        self._check(identifier)
        self.namespace_properties(identifier[:-1])

    def create(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
        """Creates a table in an existing database.

        Raises:
            AlreadyExistsError: a table or view with this name exists, in any format.
            NoSuchNamespaceError: its database does not exist.
            InvalidOptionError: the metastore does not allow the name.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        operations = self.operations(identifier)
        self.namespace_properties(identifier[:-1])
        try:
            return operations.create(updates)
        except NoSuchTableError as error:
            raise AlreadyExistsError(f"{error}; it has the name of the new table") from None

    def register(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Adds an existing table by its metadata file, which stays where it is.

        Raises:
            AlreadyExistsError: a table or view with this name exists, in any format.
            NoSuchNamespaceError: its database does not exist.
            MissingFileError: the metadata file does not exist.
            CommitStateUnknownError: it is unknown whether the table was registered.
        """
        pointer = self._pointer(identifier)
        with self.options.metastore.connect() as connection:
            self._database(connection, identifier[:-1])
            # An entry with this very file could else be taken for that of a repeated request.
            if pointer.is_taken(connection):
                raise AlreadyExistsError(f"{pointer.what} already exists, or a view of that name")
        location = self.io.absolute(metadata_location)
        return self.operations(identifier).register(location)

    def drop(self, identifier: Identifier) -> TableState | None:
        """Drops a table but keeps its files.

        Returns:
            The table's last state; None if its metadata is missing or damaged.

        Raises:
            NoSuchTableError: there is no such table, or it is of another format.
            CommitStateUnknownError: it is unknown whether it was dropped.
        """
        pointer = self._pointer(identifier)
        try:
            state = self.operations(identifier).refresh()
        except (FormatError, MissingFileError):
            state = None
        with self.options.metastore.connect() as connection:
            try:
                make_change(
                    connection,
                    self.options.metastore,
                    f"drop {pointer.what}",
                    lambda: not pointer.is_taken(connection),
                    DROP_TABLE,
                    pointer.database,
                    pointer.table,
                    False,
                )
            except NoSuchObject:
                raise NoSuchTableError(f"{pointer.what} does not exist in its catalog") from None
        return state

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a table; its files stay where they are.

        Raises:
            NoSuchTableError: there is no such table, or it is of another format.
            NoSuchNamespaceError: the database of the target does not exist.
            AlreadyExistsError: the target exists.
            CommitStateUnknownError: it is unknown whether it was renamed.
        """
        old, new = self._pointer(source), self._pointer(target)
        with self.options.metastore.connect() as connection:
            self._database(connection, target[:-1])
            rename_table(connection, old, new)

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a database's Iceberg tables, sorted; of all tables by `list-all-tables`.

        Raises NoSuchNamespaceError.
        """
        with self.options.metastore.connect() as connection:
            self._database(connection, namespace)
            return sorted((*namespace, name) for name in self._names(connection, namespace[0]))

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """All databases, sorted; none below another namespace. Raises NoSuchNamespaceError."""
        with self.options.metastore.connect() as connection:
            if parent:
                self._database(connection, parent)
                return []
            return sorted((name,) for name in connection.ask(GET_ALL_DATABASES))

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Creates a database.

        Args:
            properties: `location` (by default a directory in the warehouse), `comment`,
                `hive.metastore.database.owner` and `hive.metastore.database.owner-type`, and any
                others.

        Raises:
            AlreadyExistsError: it exists.
            UnsupportedFeatureError: the namespace has more than one level.
            InvalidOptionError: the metastore does not allow the name or a property.
            CommitStateUnknownError: it is unknown whether it was created.
        """
        if len(namespace) > 1:
            raise UnsupportedFeatureError(
                f"namespace {self._named(namespace)} cannot be created: a Hive Metastore has "
                "namespaces of one level only"
            )
        self._check_namespace(namespace)
        name = namespace[0].lower()
        if (location := self._new_database_location(name)) is not None:
            properties = {LOCATION: location, **properties}
        database = database_of(name, properties)
        with self.options.metastore.connect() as connection:
            try:
                make_change(
                    connection,
                    self.options.metastore,
                    f"create namespace {self._named(namespace)}",
                    lambda: self._has_database(connection, name),
                    CREATE_DATABASE,
                    database,
                )
            except AlreadyExists:
                raise AlreadyExistsError(
                    f"namespace {self._named(namespace)} already exists"
                ) from None
            except InvalidObject as error:
                raise InvalidOptionError(
                    f"namespace {self._named(namespace)} cannot be created: {error}"
                ) from error

    def drop_namespace(self, namespace: Identifier) -> None:
        """Drops an empty database; its directory stays.

        Raises:
            NoSuchNamespaceError: it does not exist.
            NamespaceNotEmptyError: it has tables, of whatever format.
            InvalidOptionError: it is `default`, which the metastore keeps.
            CommitStateUnknownError: it is unknown whether it was dropped.
        """
        with self.options.metastore.connect() as connection:
            name = self._database(connection, namespace).name
            if name == "default":
                raise InvalidOptionError(
                    f"namespace {self._named(namespace)} is the database that each metastore has, "
                    "and cannot be dropped"
                )
            try:
                make_change(
                    connection,
                    self.options.metastore,
                    f"drop namespace {self._named(namespace)}",
                    lambda: not self._has_database(connection, name),
                    DROP_DATABASE,
                    name,
                    False,
                    False,
                )
            except InvalidOperation as error:
                raise NamespaceNotEmptyError(
                    f"namespace {self._named(namespace)} is not empty: {error}"
                ) from None
            except NoSuchObject:
                raise self._no_namespace(connection, namespace) from None

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """Raises NoSuchNamespaceError."""
        with self.options.metastore.connect() as connection:
            return properties_of(self._database(connection, namespace))

    def update_namespace_properties(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Removes and sets properties; of two such changes at once, one may undo the other.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
            InvalidOptionError: a property is both removed and set, or malformed.
            CommitStateUnknownError: it is unknown whether they were changed.
        """
        if both := set(removals) & updates.keys():
            raise InvalidOptionError(
                f"namespace {self._named(namespace)}: {', '.join(sorted(both))} cannot be both "
                "removed and set"
            )
        with self.options.metastore.connect() as connection:
            database = self._database(connection, namespace)
            kept = {k: v for k, v in properties_of(database).items() if k not in removals}
            changed = database_of(database.name, {**kept, **updates}, database)

            def is_changed() -> bool:
                found = properties_of(self._database(connection, namespace))
                return updates.items() <= found.items() and found.keys().isdisjoint(removals)

            try:
                make_change(
                    connection,
                    self.options.metastore,
                    f"change namespace {self._named(namespace)}",
                    is_changed,
                    ALTER_DATABASE,
                    database.name,
                    changed,
                )
            except NoSuchObject:
                raise self._no_namespace(connection, namespace) from None

    def _pointer(self, identifier: Identifier) -> HivePointer:
        self._check(identifier)
        return HivePointer(
            metastore=self.options.metastore,
            io=self.io,
            # As the metastore has them; its locks are by these names.
            database=identifier[0].lower(),
            table=identifier[1].lower(),
            what=f"table {self._named(identifier)}",
            lock_enabled=self.options.lock_enabled,
            lock=self.options.lock,
            entries=self.options.entries,
        )

    def _names(self, connection: Connection, database: str) -> Sequence[str]:
        if self.options.list_all_tables:
            return connection.ask(GET_ALL_TABLES, database)
        # Not `=`, which some of the metastore's databases do not have for values of parameters.
        iceberg = 'hive_filter_field_params__table_type like "ICEBERG"'
        return connection.ask(GET_TABLE_NAMES, database, iceberg, -1)

    def _has_database(self, connection: Connection, name: str) -> bool:
        return name in connection.ask(GET_ALL_DATABASES)

    def _database(self, connection: Connection, namespace: Identifier) -> Database:
        """An existing database. Raises NoSuchNamespaceError."""
        self._check_namespace(namespace)
        if len(namespace) > 1:
            raise self._no_namespace(connection, namespace)
        try:
            return connection.ask(GET_DATABASE, namespace[0].lower())
        except NoSuchObject:
            raise self._no_namespace(connection, namespace) from None

    def _no_namespace(self, connection: Connection, namespace: Identifier) -> NoSuchNamespaceError:
        text = ".".join(namespace)
        near = did_you_mean(text, connection.ask(GET_ALL_DATABASES))
        hint = near or f"create it with create_namespace({text!r}) or CREATE NAMESPACE"
        return NoSuchNamespaceError(f"catalog {self.name} has no namespace {text}; {hint}")

    def _nearest(self, identifier: Identifier) -> str:
        """The hint of a message that there is no such table."""
        with self.options.metastore.connect() as connection:
            databases = connection.ask(GET_ALL_DATABASES)
            if identifier[0].lower() in databases:
                return nearest_table(identifier, self._names(connection, identifier[0].lower()))
        namespace = identifier[:-1]
        near = nearest_namespace(namespace, [(name,) for name in databases])
        return f"; there is no namespace {'.'.join(namespace)}{near}"

    def _new_database_location(self, name: str) -> str | None:
        if self.options.warehouse is None:
            return None
        return f"{self.io.absolute(self.options.warehouse).rstrip('/')}/{name.lower()}.db"

    def _check(self, identifier: Identifier) -> None:
        if len(identifier) != 2 or not all(identifier):
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} is not an identifier in a Hive "
                "Metastore: expected a database and a table, such as db.events; to load a "
                "location, leave the catalog out"
            )

    def _check_namespace(self, namespace: Identifier) -> None:
        if not namespace or not all(namespace):
            raise InvalidOptionError(
                f"catalog {self.name}: {namespace!r} is not a namespace: expected the name of a "
                "database, such as 'db'"
            )

    def _named(self, identifier: Identifier) -> str:
        return ".".join((self.name, *identifier))


def hive_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> HiveCatalog:
    """The catalog of the Hive Metastore at a `uri`; it is not contacted yet.

    Args:
        name: the catalog's name in messages.
        properties: `uri` (thrift://host:port, several joined by commas are tried in turn);
            `warehouse`, where databases are created; `list-all-tables`; `ugi` (user:group);
            `hive.hive2-compatible`; `hive.kerberos-authentication` and
            `hive.kerberos-service-name`; how locks are waited for: `lock-check-min-wait-time`,
            `lock-check-max-wait-time` (seconds) and `lock-check-retries`, or Java Iceberg's
            `iceberg.hive.lock-timeout-ms`, `iceberg.hive.lock-check-min-wait-ms`,
            `iceberg.hive.lock-check-max-wait-ms` and `iceberg.hive.lock-heartbeat-interval-ms`;
            `iceberg.engine.hive.lock-enabled` (false: tables are not locked, for metastores with
            HIVE-26882); `iceberg.engine.hive.enabled` (Hive can query the tables);
            `iceberg.hive.table-property-max-size`.

    Raises:
        InvalidOptionError: a property is missing, unknown or malformed, or a package is missing
            that it needs.
    """
    return HiveCatalog(name, hive_options(name, properties), io)
