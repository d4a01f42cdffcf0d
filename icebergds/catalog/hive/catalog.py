"""Implements the Hive Metastore catalog (`HiveCatalog`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from icebergds.catalog.base import Identifier
from icebergds.catalog.hive.calls import (
    ALTER_DATABASE,
    CREATE_DATABASE,
    DROP_DATABASE,
    GET_ALL_DATABASES,
    GET_ALL_TABLES,
    GET_DATABASE,
    GET_TABLE_NAMES,
    AlreadyExists,
    InvalidObject,
    InvalidOperation,
    NoSuchObject,
)
from icebergds.catalog.hive.connection import Connection, make_change
from icebergds.catalog.hive.entries import current_user
from icebergds.catalog.hive.messages import Database, PrincipalType
from icebergds.catalog.hive.options import HiveOptions, hive_options
from icebergds.catalog.hive.pointer import HivePointer
from icebergds.catalog.pointer.catalog import PointerCatalog, has_changes
from icebergds.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    NamespaceNotEmptyError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO

__all__ = ["HiveCatalog", "hive_catalog"]


@dataclass(frozen=True, slots=True)
class HiveCatalog(PointerCatalog):
    """A catalog whose namespaces are the databases of a Hive Metastore.

    The metastore stores names of tables and namespaces in lower case, and ignores case in look-ups.
    """

    options: HiveOptions
    flat: ClassVar[str] = "a Hive Metastore"

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a database's Iceberg tables (`list-all-tables`: all tables), sorted.

        Raises NoSuchNamespaceError.
        """
        with self.options.metastore.connect() as connection:
            self._database(connection, namespace)
            return sorted((*namespace, name) for name in self._names(connection, namespace[0]))

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """All databases, sorted; other namespaces contain none. Raises NoSuchNamespaceError."""
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
        if (location := self._in_warehouse((name,))) is not None:
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
        """Drops an empty database; its directory is kept.

        Raises:
            NoSuchNamespaceError: it does not exist.
            NamespaceNotEmptyError: it has tables, of any format.
            InvalidOptionError: it is `default`, which the metastore cannot drop.
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
                raise self._no_namespace(namespace) from None

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """Raises NoSuchNamespaceError."""
        return properties_of(self._require(namespace))

    def _update_namespace(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Replaces the properties; one of two concurrent changes may undo the other."""
        with self.options.metastore.connect() as connection:
            database = self._database(connection, namespace)
            kept = {k: v for k, v in properties_of(database).items() if k not in removals}
            changed = database_of(database.name, {**kept, **updates}, database)

            def is_changed() -> bool:
                found = properties_of(self._database(connection, namespace))
                return has_changes(found, removals, updates)

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
                raise self._no_namespace(namespace) from None

    # Implementation of `PointerCatalog`.

    def _pointer(self, identifier: Identifier) -> HivePointer:
        return HivePointer(
            metastore=self.options.metastore,
            io=self.io,
            # As stored in the metastore; its locks use these names.
            database=identifier[0].lower(),
            table=identifier[1].lower(),
            what=f"table {self._named(identifier)}",
            lock_enabled=self.options.lock_enabled,
            lock=self.options.lock,
            entries=self.options.entries,
        )

    def _require(self, namespace: Identifier) -> Database:
        with self.options.metastore.connect() as connection:
            return self._database(connection, namespace)

    def _location_of(self, namespace: Identifier) -> str | None:
        database = self._require(namespace)
        return database.location or self._in_warehouse((database.name,))

    def _some_tables(self, namespace: Identifier) -> Sequence[str] | None:
        name = namespace[0].lower()
        with self.options.metastore.connect() as connection:
            if self._has_database(connection, name):
                return self._names(connection, name)
        return None

    def _some_namespaces(self) -> list[Identifier]:
        with self.options.metastore.connect() as connection:
            return [(name,) for name in connection.ask(GET_ALL_DATABASES)]

    def _names(self, connection: Connection, database: str) -> Sequence[str]:
        if self.options.list_all_tables:
            return connection.ask(GET_ALL_TABLES, database)
        # Not `=`, which some metastore databases do not support for values of parameters.
        iceberg = 'hive_filter_field_params__table_type like "ICEBERG"'
        return connection.ask(GET_TABLE_NAMES, database, iceberg, -1)

    def _has_database(self, connection: Connection, name: str) -> bool:
        return name in connection.ask(GET_ALL_DATABASES)

    def _database(self, connection: Connection, namespace: Identifier) -> Database:
        """An existing database. Raises NoSuchNamespaceError."""
        self._check_namespace(namespace)
        if len(namespace) > 1:
            raise self._no_namespace(namespace)
        try:
            return connection.ask(GET_DATABASE, namespace[0].lower())
        except NoSuchObject:
            raise self._no_namespace(namespace) from None

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


def hive_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> HiveCatalog:
    """The catalog of the Hive Metastore at `uri`; does not connect to it yet.

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
        InvalidOptionError: a property is missing, unknown or malformed, or needs a package that is
            missing.
    """
    return HiveCatalog(
        name, properties.get("warehouse") or None, io, hive_options(name, properties)
    )


LOCATION = "location"
COMMENT = "comment"
OWNER = "hive.metastore.database.owner"
OWNER_TYPE = "hive.metastore.database.owner-type"


def database_of(name: str, properties: Mapping[str, str], base: Database | None = None) -> Database:
    """The database with the properties of a namespace.

    Args:
        base: the current database, whose other fields are kept.

    Raises:
        InvalidOptionError: the type of the owner is unknown, or given without an owner.
    """
    base = base or Database(name=name)
    given = (LOCATION, COMMENT, OWNER, OWNER_TYPE)
    owner = properties.get(OWNER)
    return Database(
        name=base.name,
        description=properties.get(COMMENT),
        location=properties.get(LOCATION),
        parameters={key: value for key, value in properties.items() if key not in given},
        owner=owner or current_user(),
        owner_type=_owner_type(properties),
        catalog=base.catalog,
        create_time=base.create_time,
        managed_location=base.managed_location,
    )


def properties_of(database: Database) -> dict[str, str]:
    """The properties of the namespace of a database."""
    found = dict(database.parameters or {})
    if database.location is not None:
        found[LOCATION] = database.location
    if database.description is not None:
        found[COMMENT] = database.description
    if database.owner is not None:
        found[OWNER] = database.owner
        if database.owner_type is not None:
            found[OWNER_TYPE] = PrincipalType(database.owner_type).name
    return found


def _owner_type(properties: Mapping[str, str]) -> int:
    text = properties.get(OWNER_TYPE)
    if text is None:
        return PrincipalType.USER
    if OWNER not in properties:
        raise InvalidOptionError(f"{OWNER_TYPE} is given without {OWNER}; give both or none")
    try:
        return PrincipalType[text]
    except KeyError:
        raise InvalidOptionError(
            f"{OWNER_TYPE} is {text!r}, expected one of {', '.join(PrincipalType.__members__)}"
        ) from None
