"""Implements the DynamoDB catalog, with the same items as Java Iceberg and PyIceberg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from icebergds.catalog.aws.client import aws_client
from icebergds.catalog.base import Identifier
from icebergds.catalog.dynamodb.items import DynamoDbPointer, Items, namespace_key, properties_of
from icebergds.catalog.pointer.catalog import PointerCatalog, has_changes
from icebergds.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    NamespaceNotEmptyError,
)
from icebergds.io.aws_settings import aws_settings, check_names
from icebergds.io.fileio import FileIO

__all__ = ["DynamoDbCatalog", "dynamodb_catalog"]


@dataclass(frozen=True, slots=True)
class DynamoDbCatalog(PointerCatalog):
    """A catalog that stores the current metadata file of each table in an item of DynamoDB.

    Namespaces are items of their own; a namespace also exists if it contains others.
    """

    items: Items
    deletes_exactly: ClassVar[bool] = True

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables, sorted. Raises NoSuchNamespaceError."""
        self.namespace_properties(namespace)
        return sorted((*namespace, name) for name in self.items.tables(namespace))

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces directly below another, sorted. Raises NoSuchNamespaceError."""
        depth = len(parent) + 1
        known = self.items.namespaces()
        found = {n[:depth] for n in known if len(n) >= depth and n[: depth - 1] == parent}
        if parent and not found and parent not in known:
            raise self._no_namespace(parent)
        return sorted(found)

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Creates a namespace; its parents need not exist.

        Raises:
            AlreadyExistsError: it exists.
            InvalidOptionError: a part of it is empty or has a dot.
        """
        self._check_namespace(namespace)
        reply = self.items.insert(namespace_key(namespace), properties)
        what = f"create namespace {self._named(namespace)}"
        if not reply.confirmed(what, lambda: self._properties(namespace) == properties):
            if reply.code == "ConditionalCheckFailedException":
                raise AlreadyExistsError(f"namespace {self._named(namespace)} already exists")
            reply.check()

    def drop_namespace(self, namespace: Identifier) -> None:
        """Drops an empty namespace. Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        tables = self.list_tables(namespace)
        if inside := (*self.list_namespaces(namespace), *tables):
            raise NamespaceNotEmptyError(
                f"namespace {self._named(namespace)} is not empty: it contains "
                f"{'.'.join(inside[0])}"
            )
        reply = self.items.delete(namespace_key(namespace), None)
        what = f"drop namespace {self._named(namespace)}"
        if not reply.confirmed(what, lambda: self._properties(namespace) is None):
            if reply.code == "ConditionalCheckFailedException":
                raise self._no_namespace(namespace)
            reply.check()

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """The properties of a namespace; empty if it only contains other namespaces.

        Raises NoSuchNamespaceError.
        """
        found = self._properties(namespace)
        if found is None:
            self.list_namespaces(namespace)
            return {}
        return found

    def _update_namespace(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        self._check_namespace(namespace)

        def is_changed() -> bool:
            return has_changes(self.namespace_properties(namespace), removals, updates)

        reply = self.items.update(namespace_key(namespace), None, updates, set(removals))
        if not reply.confirmed(f"change namespace {self._named(namespace)}", is_changed):
            if reply.code == "ConditionalCheckFailedException":
                raise self._no_namespace(namespace)
            reply.check()

    # Implementation of `PointerCatalog`.

    def _pointer(self, identifier: Identifier) -> DynamoDbPointer:
        return DynamoDbPointer(self.items, identifier, self._named(identifier))

    def _require(self, namespace: Identifier) -> dict[str, str]:
        """The properties of a namespace with an item. Raises NoSuchNamespaceError."""
        found = self._properties(namespace)
        if found is None:
            raise self._no_namespace(namespace)
        return found

    def _location_of(self, namespace: Identifier) -> str | None:
        properties = self._require(namespace)
        # The property's name in Java Iceberg, and in PyIceberg.
        return properties.get("default_location") or properties.get("location")

    def _some_tables(self, namespace: Identifier) -> list[str] | None:
        if self._properties(namespace) is None:
            return None
        return self.items.some_tables(namespace)

    def _some_namespaces(self) -> list[Identifier]:
        return self.items.some_namespaces()

    def _check(self, identifier: Identifier) -> None:
        # The parts are stored joined by dots, so a dot in a part would be ambiguous.
        if len(identifier) < 2 or any(not part or "." in part for part in identifier):
            raise InvalidOptionError(
                f"catalog {self.name}: {identifier!r} is not an identifier in DynamoDB: expected a "
                "namespace and a name without dots, such as ('db', 'events'); to load a location, "
                "leave the catalog out"
            )

    def _check_namespace(self, namespace: Identifier) -> None:
        if not namespace or any(not part or "." in part for part in namespace):
            raise InvalidOptionError(
                f"catalog {self.name}: {namespace!r} is not a namespace in DynamoDB: expected "
                "names without dots, such as ('db', 'raw')"
            )

    def _properties(self, namespace: Identifier) -> dict[str, str] | None:
        """The properties of a namespace; None if it does not exist."""
        self._check_namespace(namespace)
        item = self.items.find(namespace_key(namespace))
        return None if item is None else properties_of(item)


def dynamodb_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> DynamoDbCatalog:
    """The catalog in a DynamoDB table, which is created at first use if it does not exist.

    Args:
        properties: `dynamodb.table-name` (iceberg), or `table-name`; `warehouse`, for tables in
            namespaces without a location; and those of `aws_settings`.

    Raises:
        InvalidOptionError: a property is unknown or malformed.
    """
    check_names(name, "dynamodb", properties, _TABLE_NAME)
    table = next((properties[key] for key in _TABLE_NAME if properties.get(key)), "iceberg")
    client = aws_client(aws_settings(name, "dynamodb", properties), {})
    return DynamoDbCatalog(name, properties.get("warehouse"), io, Items(client, table))


# The property's name in Java Iceberg, and in PyIceberg.
_TABLE_NAME = ("dynamodb.table-name", "table-name")
