"""Creates, lists, changes and drops the databases of Glue, which are a catalog's namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icebergds.catalog.aws.client import AwsClient
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
)
from icebergds.suggestions import did_you_mean

__all__ = ["GlueDatabases"]


@dataclass(frozen=True, slots=True)
class GlueDatabases:
    """The databases of an account, by their names."""

    client: AwsClient
    catalog: str

    def names(self) -> list[str]:
        pages = self.client.pages("get_databases")
        return [database["Name"] for page in pages for database in page.require("DatabaseList")]

    def require(self, name: str) -> Mapping[str, Any]:
        """A database as Glue has it. Raises NoSuchNamespaceError."""
        reply = self.client.send("get_database", Name=name)
        if reply.code == "EntityNotFoundException":
            raise self._missing(name)
        found: Mapping[str, Any] = reply.require("Database")
        return found

    def tables(self, name: str) -> list[Mapping[str, Any]]:
        """The tables of a database, of all kinds. Raises NoSuchNamespaceError."""
        found: list[Mapping[str, Any]] = []
        for page in self.client.pages("get_tables", DatabaseName=name):
            if page.code == "EntityNotFoundException":
                raise self._missing(name)
            found.extend(page.require("TableList"))
        return found

    def some_tables(self, name: str) -> list[Mapping[str, Any]]:
        """Tables of a database, for hints: not all of many, none if they may not be listed.

        Raises NoSuchNamespaceError.
        """
        reply = self.client.send("get_tables", DatabaseName=name)
        if reply.code == "EntityNotFoundException":
            raise self._missing(name)
        return list(reply.body.get("TableList", ()))

    def create(self, name: str, properties: Mapping[str, str]) -> None:
        """Raises AlreadyExistsError."""
        reply = self.client.send("create_database", DatabaseInput=_database_input(name, properties))
        what = f"create namespace {self.catalog}.{name}"
        if not reply.confirmed(what, lambda: self._properties(name) == properties):
            if reply.code == "AlreadyExistsException":
                raise AlreadyExistsError(f"namespace {self.catalog}.{name} already exists")
            reply.check()

    def update(self, name: str, removals: Sequence[str], updates: Mapping[str, str]) -> None:
        """Replaces the properties of a database, as of one that is read before.

        Raises NoSuchNamespaceError.
        """
        database = self.require(name)
        kept = {k: v for k, v in database_properties(database).items() if k not in removals}
        properties = {**kept, **updates}
        given = _database_input(name, properties) | {
            key: database[key] for key in _NOT_PROPERTIES if key in database
        }
        reply = self.client.send("update_database", Name=name, DatabaseInput=given)
        what = f"change namespace {self.catalog}.{name}"
        if not reply.confirmed(what, lambda: self._properties(name) == properties):
            if reply.code == "ConcurrentModificationException":
                raise CommitConflictError(f"{what} failed: it was changed meanwhile; try again")
            if reply.code == "EntityNotFoundException":
                raise self._missing(name)
            reply.check()

    def drop(self, name: str) -> None:
        """Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        tables = self.tables(name)
        if tables:
            raise NamespaceNotEmptyError(
                f"namespace {self.catalog}.{name} is not empty: it contains the table "
                f"{tables[0]['Name']}, and {len(tables) - 1} more"
            )
        reply = self.client.send("delete_database", Name=name)
        what = f"drop namespace {self.catalog}.{name}"
        if not reply.confirmed(what, lambda: self._properties(name) is None):
            if reply.code == "EntityNotFoundException":
                raise self._missing(name)
            reply.check()

    def _properties(self, name: str) -> dict[str, str] | None:
        """The properties of a database; None if there is none."""
        try:
            return database_properties(self.require(name))
        except NoSuchNamespaceError:
            return None

    def _missing(self, name: str) -> NoSuchNamespaceError:
        # Hints do not need all of many, and must not fail.
        some = self.client.send("get_databases").body.get("DatabaseList", ())
        near = did_you_mean(name, (database["Name"] for database in some))
        hint = near or f"create it with create_namespace({name!r}) or CREATE NAMESPACE"
        return NoSuchNamespaceError(f"catalog {self.catalog} has no namespace {name}; {hint}")


def database_properties(database: Mapping[str, Any]) -> dict[str, str]:
    """The properties of a namespace, under Java Iceberg's names."""
    properties = dict(database.get("Parameters") or {})
    if location := database.get("LocationUri"):
        properties[_LOCATION] = location.rstrip("/")
    if (description := database.get("Description")) is not None:
        properties[_COMMENT] = description
    return properties


_LOCATION = "location"
_COMMENT = "comment"
# What else a change of a database must keep.
_NOT_PROPERTIES = ("CreateTableDefaultPermissions", "TargetDatabase", "FederatedDatabase")


def _database_input(name: str, properties: Mapping[str, str]) -> dict[str, Any]:
    parameters = {k: v for k, v in properties.items() if k not in (_LOCATION, _COMMENT)}
    result: dict[str, Any] = {"Name": name, "Parameters": parameters}
    if _LOCATION in properties:
        result["LocationUri"] = properties[_LOCATION]
    if _COMMENT in properties:
        result["Description"] = properties[_COMMENT]
    return result
