"""Implements the Glue catalog, with the tables and databases of Java Iceberg's and PyIceberg's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icebergds.catalog.aws.client import AwsClient, aws_client
from icebergds.catalog.aws.settings import aws_settings, check_names, flag
from icebergds.catalog.base import Identifier, nearest_table
from icebergds.catalog.glue.databases import GlueDatabases, database_properties
from icebergds.catalog.glue.pointer import GluePointer
from icebergds.catalog.glue.renaming import rename_entry
from icebergds.catalog.glue.table_input import is_iceberg
from icebergds.catalog.pointer.table_operations import PointerTableOperations
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidOptionError,
    MissingFileError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.updates.table_updates import TableUpdate

__all__ = ["GlueCatalog", "glue_catalog"]


@dataclass(frozen=True, slots=True)
class GlueCatalog:
    """A catalog of the tables in Glue's databases that are Iceberg tables.

    Attributes:
        skip_archive: whether Glue does not keep the versions that commits replace.
        skip_name_validation: whether names may have other characters than a-z, 0-9 and _.
    """

    name: str
    warehouse: str | None
    io: FileIO
    client: AwsClient
    skip_archive: bool = True
    skip_name_validation: bool = False

    def operations(self, identifier: Identifier) -> PointerTableOperations:
        return PointerTableOperations(self._pointer(identifier), self.io, self._named(identifier))

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: there is no such table; the message suggests a similar name. Or it is
                not an Iceberg table.
            InvalidOptionError: Glue does not allow the name.
        """
        if len(identifier) > 2:
            # Such as a metadata table of a table, which is looked for as a table first.
            raise NoSuchTableError(
                f"table {self._named(identifier)} does not exist: Glue has no namespaces in "
                "namespaces"
            )
        try:
            return self.operations(identifier).refresh()
        except NoSuchTableError as error:
            if self._pointer(identifier).entry() is not None:
                raise
            try:
                tables = self._databases.some_tables(identifier[0])
            except NoSuchNamespaceError as missing:
                raise NoSuchTableError(f"{error}; {missing}") from None
            near = nearest_table(identifier, (t["Name"] for t in tables if is_iceberg(t)))
            raise NoSuchTableError(f"{error}{near}") from None

    def new_table_location(self, identifier: Identifier) -> str:
        """A location in the `location` of the namespace, or else in the warehouse.

        Raises:
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: there is no warehouse, or Glue does not allow the name.
        """
        self._check(identifier)
        database, table = identifier
        if any(part in (".", "..") or "/" in part for part in identifier):
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} cannot be the name of a directory; "
                "give the table a location"
            )
        location = database_properties(self._databases.require(database)).get("location")
        if location:
            return f"{self.io.absolute(location).rstrip('/')}/{table}"
        if not self.warehouse:
            raise InvalidOptionError(
                f"catalog {self.name} has no warehouse for {database}.{table}: set "
                "option('catalog.warehouse', '<directory>'), or give the namespace or the table a "
                "location"
            )
        return f"{self.io.absolute(self.warehouse).rstrip('/')}/{database}.db/{table}"

    def check_creation(self, identifier: Identifier, location: str) -> None:
        """Checks that the table's namespace exists.

        Raises:
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: Glue does not allow the name.
            UnsupportedFeatureError: the namespace is one of S3 Tables.
        """
        self._check(identifier)
        database = self._databases.require(identifier[0])
        if database.get("FederatedDatabase", {}).get("ConnectionType") == "aws:s3tables":
            raise UnsupportedFeatureError(
                f"namespace {self._named(identifier[:1])} is one of S3 Tables, in which a Glue "
                "catalog cannot create tables; use a catalog of type s3tables"
            )

    def create(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
        """Creates a table in an existing namespace.

        Raises:
            AlreadyExistsError: a table with this name exists, of whatever kind.
            NoSuchNamespaceError: its namespace does not exist.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        self.check_creation(identifier, "")
        self._require_free(identifier)
        return self.operations(identifier).create(updates)

    def register(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Adds an existing table by its metadata file, which stays where it is.

        Raises:
            AlreadyExistsError: a table with this name exists, of whatever kind.
            NoSuchNamespaceError: its namespace does not exist.
            MissingFileError: the metadata file does not exist.
            CommitStateUnknownError: it is unknown whether the table was registered.
        """
        self.check_creation(identifier, "")
        self._require_free(identifier)
        return self.operations(identifier).register(self.io.absolute(metadata_location))

    def drop(self, identifier: Identifier) -> TableState | None:
        """Drops a table but keeps its files.

        Returns:
            The table's last state; None if its metadata is missing or damaged.

        Raises:
            NoSuchTableError: there is no such table, or it is not an Iceberg table.
            CommitStateUnknownError: it is unknown whether the table was dropped.
        """
        try:
            state = self.operations(identifier).refresh()
        except (FormatError, MissingFileError):
            state = None
        database, table = identifier
        reply = self.client.send("delete_table", DatabaseName=database, Name=table)
        pointer = self._pointer(identifier)
        if not reply.confirmed(f"drop table {pointer.name}", lambda: pointer.entry() is None):
            if reply.code == "EntityNotFoundException":
                raise NoSuchTableError(f"table {pointer.name} does not exist in its catalog")
            reply.check()
        return state

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a table by creating its new entry and deleting the old one; files stay.

        Glue cannot do both at once: nobody should commit to the table meanwhile.

        Raises:
            NoSuchTableError: there is no such table, or it is not an Iceberg table.
            NoSuchNamespaceError: the namespace of the target does not exist.
            AlreadyExistsError: the target exists.
            CommitConflictError: the table was changed meanwhile, and was not renamed.
            CommitStateUnknownError: the table may have both names.
        """
        old, new = self._pointer(source), self._pointer(target)
        self.check_creation(target, "")
        rename_entry(old, new)

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's Iceberg tables, sorted. Raises NoSuchNamespaceError."""
        tables = self._databases.tables(self._database(namespace))
        return sorted((*namespace, table["Name"]) for table in tables if is_iceberg(table))

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces, sorted; none are below another. Raises NoSuchNamespaceError."""
        if parent:
            self._databases.require(self._database(parent))
            return []
        return sorted((name,) for name in self._databases.names())

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Creates a database in Glue.

        Args:
            properties: `location`, the directory of its tables; `comment`, its description; others
                are its parameters.

        Raises:
            AlreadyExistsError: it exists.
            UnsupportedFeatureError: it has several levels.
            InvalidOptionError: Glue does not allow the name.
        """
        self._databases.create(self._database(namespace), properties)

    def drop_namespace(self, namespace: Identifier) -> None:
        """Drops a namespace without tables of any kind.

        Raises NoSuchNamespaceError, NamespaceNotEmptyError.
        """
        self._databases.drop(self._database(namespace))

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """Raises NoSuchNamespaceError."""
        return database_properties(self._databases.require(self._database(namespace)))

    def update_namespace_properties(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Removes and sets properties; of changes at the same time, the last one counts.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
            InvalidOptionError: a property is both removed and set.
        """
        database = self._database(namespace)
        if both := set(removals) & updates.keys():
            raise InvalidOptionError(
                f"namespace {self._named(namespace)}: {', '.join(sorted(both))} cannot be both "
                "removed and set"
            )
        self._databases.update(database, removals, updates)

    @property
    def _databases(self) -> GlueDatabases:
        return GlueDatabases(self.client, self.name)

    def _pointer(self, identifier: Identifier) -> GluePointer:
        self._check(identifier)
        database, table = identifier
        return GluePointer(self.client, database, table, self._named(identifier), self.skip_archive)

    def _require_free(self, identifier: Identifier) -> None:
        pointer = self._pointer(identifier)
        entry = pointer.entry()
        if entry is not None:
            kind = "" if is_iceberg(entry) else ", and is not an Iceberg table"
            raise AlreadyExistsError(f"table {pointer.name} already exists{kind}")

    def _check(self, identifier: Identifier) -> None:
        if len(identifier) < 2:
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} is not an identifier: expected a "
                "namespace and a name, such as db.events; to load a location, leave the catalog out"
            )
        self._database(identifier[:-1])
        self._check_name(identifier[-1], 255)

    def _database(self, namespace: Identifier) -> str:
        if len(namespace) > 1:
            raise UnsupportedFeatureError(
                f"catalog {self.name}: Glue has no namespaces in namespaces, such as "
                f"{'.'.join(namespace)}; expected one level"
            )
        name = "".join(namespace)
        self._check_name(name, 252)
        return name

    def _check_name(self, name: str, longest: int) -> None:
        if self.skip_name_validation and name:
            return
        if not re.fullmatch("[a-z0-9_]+", name) or len(name) > longest:
            raise InvalidOptionError(
                f"catalog {self.name}: {name!r} cannot be a name in Glue: expected at most "
                f"{longest} characters of a-z, 0-9 and _, as Hive and Athena do; "
                "glue.skip-name-validation = true allows others"
            )

    def _named(self, identifier: Identifier) -> str:
        return ".".join((self.name, *identifier))


def glue_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> GlueCatalog:
    """The catalog in Glue's Data Catalog.

    Args:
        properties: `warehouse`, for tables and namespaces created without a location; `glue.id`,
            the account whose Data Catalog it is (by default the caller's); `glue.skip-archive`
            (true); `glue.skip-name-validation` (false); and those of `aws_settings`.

    Raises:
        InvalidOptionError: a property is unknown or malformed.
    """
    check_names(name, "glue", properties, _OWN)
    fixed = {"CatalogId": properties["glue.id"]} if properties.get("glue.id") else {}
    return GlueCatalog(
        name,
        properties.get("warehouse"),
        io,
        aws_client(aws_settings(name, "glue", properties), fixed),
        flag(name, properties, "glue.skip-archive", True),
        flag(name, properties, "glue.skip-name-validation", False),
    )


_OWN = ("glue.id", "glue.skip-archive", "glue.skip-name-validation")
