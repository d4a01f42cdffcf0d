"""Implements the Glue catalog, with the same tables and databases as Java Iceberg and PyIceberg."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from icebergds.catalog.aws.client import AwsClient, aws_client
from icebergds.catalog.base import Identifier
from icebergds.catalog.glue.pointer import GluePointer
from icebergds.catalog.glue.table_input import is_iceberg
from icebergds.catalog.pointer.catalog import PointerCatalog
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidOptionError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    UnsupportedFeatureError,
)
from icebergds.io.aws_settings import aws_settings, check_names, flag
from icebergds.io.fileio import FileIO

__all__ = ["GlueCatalog", "glue_catalog"]


@dataclass(frozen=True, slots=True)
class GlueCatalog(PointerCatalog):
    """A catalog of the Iceberg tables in Glue's databases.

    Attributes:
        skip_archive: whether Glue discards the versions that commits replace.
        skip_name_validation: whether to allow characters other than a-z, 0-9 and _ in names.
    """

    client: AwsClient
    skip_archive: bool = True
    skip_name_validation: bool = False
    flat: ClassVar[str] = "Glue"

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's Iceberg tables, sorted. Raises NoSuchNamespaceError."""
        tables = self._tables(namespace)
        return sorted((*namespace, table["Name"]) for table in tables if is_iceberg(table))

    # Namespaces are Glue's databases.

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces, sorted; they are not nested. Raises NoSuchNamespaceError."""
        if parent:
            self._database(parent)
            return []
        pages = self.client.pages("get_databases")
        return sorted((found["Name"],) for page in pages for found in page.require("DatabaseList"))

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
        given = _database_input(self._level(namespace), properties)
        reply = self.client.send("create_database", DatabaseInput=given)
        what = f"create namespace {self._named(namespace)}"
        if not reply.confirmed(what, lambda: self._properties(namespace) == properties):
            if reply.code == "AlreadyExistsException":
                raise AlreadyExistsError(f"namespace {self._named(namespace)} already exists")
            reply.check()

    def drop_namespace(self, namespace: Identifier) -> None:
        """Drops a namespace that contains no tables of any kind.

        Raises NoSuchNamespaceError, NamespaceNotEmptyError.
        """
        if tables := self._tables(namespace):
            raise NamespaceNotEmptyError(
                f"namespace {self._named(namespace)} is not empty: it contains the table "
                f"{tables[0]['Name']}, and {len(tables) - 1} more"
            )
        reply = self.client.send("delete_database", Name=self._level(namespace))
        what = f"drop namespace {self._named(namespace)}"
        if not reply.confirmed(what, lambda: self._properties(namespace) is None):
            if reply.code == "EntityNotFoundException":
                raise self._no_namespace(namespace)
            reply.check()

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """Raises NoSuchNamespaceError."""
        return _database_properties(self._database(namespace))

    def _update_namespace(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Replaces the properties by changed ones; the last of two concurrent changes wins."""
        database = self._database(namespace)
        kept = {k: v for k, v in _database_properties(database).items() if k not in removals}
        properties, name = {**kept, **updates}, self._level(namespace)
        given = _database_input(name, properties) | {
            key: database[key] for key in _NOT_PROPERTIES if key in database
        }
        reply = self.client.send("update_database", Name=name, DatabaseInput=given)
        what = f"change namespace {self._named(namespace)}"
        if not reply.confirmed(what, lambda: self._properties(namespace) == properties):
            if reply.code == "ConcurrentModificationException":
                raise CommitConflictError(f"{what} failed: it was changed meanwhile; try again")
            if reply.code == "EntityNotFoundException":
                raise self._no_namespace(namespace)
            reply.check()

    # Implementation of `PointerCatalog`.

    def _pointer(self, identifier: Identifier) -> GluePointer:
        database, table = identifier
        return GluePointer(self.client, database, table, self._named(identifier), self.skip_archive)

    def _require(self, namespace: Identifier) -> None:
        database = self._database(namespace)
        if database.get("FederatedDatabase", {}).get("ConnectionType") == "aws:s3tables":
            raise UnsupportedFeatureError(
                f"namespace {self._named(namespace)} is one of S3 Tables, in which a Glue catalog "
                "cannot create tables; use a catalog of type s3tables"
            )

    def _location_of(self, namespace: Identifier) -> str | None:
        return self.namespace_properties(namespace).get("location")

    def _some_tables(self, namespace: Identifier) -> Iterable[str] | None:
        # Hints do not need all names if there are many, and must not fail.
        reply = self.client.send("get_tables", DatabaseName=self._level(namespace))
        if reply.code == "EntityNotFoundException":
            return None
        return [table["Name"] for table in reply.body.get("TableList", ()) if is_iceberg(table)]

    def _some_namespaces(self) -> list[Identifier]:
        some = self.client.send("get_databases").body.get("DatabaseList", ())
        return [(database["Name"],) for database in some]

    def _check(self, identifier: Identifier) -> None:
        if len(identifier) < 2:
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} is not an identifier: expected a "
                "namespace and a name, such as db.events; to load a location, leave the catalog out"
            )
        self._level(identifier[:-1])
        self._check_name(identifier[-1], 255)

    def _level(self, namespace: Identifier) -> str:
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

    def _database(self, namespace: Identifier) -> Mapping[str, Any]:
        """A database as Glue has it. Raises NoSuchNamespaceError."""
        reply = self.client.send("get_database", Name=self._level(namespace))
        if reply.code == "EntityNotFoundException":
            raise self._no_namespace(namespace)
        found: Mapping[str, Any] = reply.require("Database")
        return found

    def _properties(self, namespace: Identifier) -> dict[str, str] | None:
        """The properties of a namespace; None if it does not exist."""
        try:
            return self.namespace_properties(namespace)
        except NoSuchNamespaceError:
            return None

    def _tables(self, namespace: Identifier) -> list[Mapping[str, Any]]:
        """The tables of a database, of all kinds. Raises NoSuchNamespaceError."""
        found: list[Mapping[str, Any]] = []
        for page in self.client.pages("get_tables", DatabaseName=self._level(namespace)):
            if page.code == "EntityNotFoundException":
                raise self._no_namespace(namespace)
            found.extend(page.require("TableList"))
        return found


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


def _database_properties(database: Mapping[str, Any]) -> dict[str, str]:
    """The properties of a namespace, under Java Iceberg's names."""
    properties = dict(database.get("Parameters") or {})
    if location := database.get("LocationUri"):
        properties[_LOCATION] = location.rstrip("/")
    if (description := database.get("Description")) is not None:
        properties[_COMMENT] = description
    return properties


_LOCATION = "location"
_COMMENT = "comment"
# Other parts that a change of a database must keep.
_NOT_PROPERTIES = ("CreateTableDefaultPermissions", "TargetDatabase", "FederatedDatabase")


def _database_input(name: str, properties: Mapping[str, str]) -> dict[str, Any]:
    parameters = {k: v for k, v in properties.items() if k not in (_LOCATION, _COMMENT)}
    result: dict[str, Any] = {"Name": name, "Parameters": parameters}
    if _LOCATION in properties:
        result["LocationUri"] = properties[_LOCATION]
    if _COMMENT in properties:
        result["Description"] = properties[_COMMENT]
    return result
