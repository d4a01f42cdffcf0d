"""Implements the DynamoDB catalog, with the items of Java Iceberg's and PyIceberg's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icebergds.catalog.aws.client import aws_client
from icebergds.catalog.aws.settings import aws_settings, check_names
from icebergds.catalog.base import Identifier, nearest_namespace, nearest_table
from icebergds.catalog.dynamodb.items import Items, namespace_key, table_key
from icebergds.catalog.dynamodb.namespaces import Namespaces
from icebergds.catalog.dynamodb.pointer import DynamoDbPointer
from icebergds.catalog.pointer.table_operations import PointerTableOperations
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    FormatError,
    InvalidMetadataError,
    InvalidOptionError,
    MissingFileError,
    NoSuchTableError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.updates.table_updates import TableUpdate

__all__ = ["DynamoDbCatalog", "dynamodb_catalog"]


@dataclass(frozen=True, slots=True)
class DynamoDbCatalog:
    """A catalog that stores the current metadata file of each table in an item of DynamoDB."""

    name: str
    warehouse: str | None
    io: FileIO
    items: Items

    def operations(self, identifier: Identifier) -> PointerTableOperations:
        return PointerTableOperations(self._pointer(identifier), self.io, self._named(identifier))

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: there is no such table; the message suggests a similar name.
            InvalidOptionError: the identifier has no namespace, or a part that is empty or has a
                dot.
        """
        try:
            return self.operations(identifier).refresh()
        except NoSuchTableError as error:
            namespace = identifier[:-1]
            near = nearest_table(identifier, self.items.some_tables(namespace))
            if self.items.find(namespace_key(namespace)) is None:
                near = f"; there is no namespace {'.'.join(namespace)}"
                near += nearest_namespace(namespace, self.items.some_namespaces())
            raise NoSuchTableError(f"{error}{near}") from None

    def new_table_location(self, identifier: Identifier) -> str:
        """A location in the `default_location` of the namespace, or else in the warehouse.

        Raises:
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: there is no warehouse, or the identifier is not allowed.
        """
        self._check(identifier)
        *namespace, table = identifier
        if "/" in "".join(identifier):
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} cannot be the name of a directory; "
                "give the table a location"
            )
        properties = self._namespaces.require(tuple(namespace))
        # Java Iceberg's name of the property, and PyIceberg's.
        if location := properties.get("default_location") or properties.get("location"):
            return f"{self.io.absolute(location).rstrip('/')}/{table}"
        if not self.warehouse:
            raise InvalidOptionError(
                f"catalog {self.name} has no warehouse for {'.'.join(identifier)}: set "
                "option('catalog.warehouse', '<directory>'), or give the namespace or the table a "
                "location"
            )
        return f"{self.io.absolute(self.warehouse).rstrip('/')}/{'.'.join(namespace)}.db/{table}"

    def check_creation(self, identifier: Identifier, location: str) -> None:
        """Checks that the table's namespace exists.

        Raises:
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: the identifier is not allowed.
        """
        self._check(identifier)
        self._namespaces.require(identifier[:-1])

    def create(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
        """Creates a table in an existing namespace.

        Raises:
            AlreadyExistsError: a table with this name exists.
            NoSuchNamespaceError: its namespace does not exist.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        self.check_creation(identifier, "")
        return self.operations(identifier).create(updates)

    def register(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Adds an existing table by its metadata file, which stays where it is.

        Raises:
            AlreadyExistsError: a table with this name exists.
            NoSuchNamespaceError: its namespace does not exist.
            MissingFileError: the metadata file does not exist.
            CommitStateUnknownError: it is unknown whether the table was registered.
        """
        self.check_creation(identifier, "")
        return self.operations(identifier).register(self.io.absolute(metadata_location))

    def drop(self, identifier: Identifier) -> TableState | None:
        """Drops a table but keeps its files.

        Returns:
            The table's last state; None if its metadata is missing or damaged.

        Raises:
            NoSuchTableError: there is no such table.
            InvalidMetadataError: its item has no version.
            CommitConflictError: other commits changed it each time; it was not dropped.
            CommitStateUnknownError: it is unknown whether the table was dropped.
        """
        operations, pointer = self.operations(identifier), self._pointer(identifier)
        for _ in range(_DROPS):
            found = pointer.find()
            if found is None:
                raise NoSuchTableError(f"table {pointer.name} does not exist in its catalog")
            if not found.token:
                raise InvalidMetadataError(
                    f"table {pointer.name} was not dropped: its item in DynamoDB has no attribute "
                    "v, the version; delete the item, or give it a text as v"
                )
            try:
                state = operations.refresh()
            except (FormatError, MissingFileError):
                state = None
            reply = self.items.delete(table_key(identifier), str(found.token))
            if reply.confirmed(f"drop table {pointer.name}", lambda: pointer.find() is None):
                return state
            # Repeated if there was a commit meanwhile.
            if reply.code != "ConditionalCheckFailedException":
                reply.check()
        raise CommitConflictError(
            f"table {pointer.name} was not dropped: other commits changed it {_DROPS} times "
            "meanwhile; try again"
        )

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a table; its files stay where they are.

        Raises:
            NoSuchTableError: there is no such table.
            NoSuchNamespaceError: the namespace of the target does not exist.
            AlreadyExistsError: the target exists.
            CommitConflictError: the table was changed meanwhile, and was not renamed.
            CommitStateUnknownError: it is unknown whether the table was renamed.
        """
        old, new = self._pointer(source), self._pointer(target)
        self.check_creation(target, "")
        item = self.items.find(table_key(source))
        if item is None:
            raise NoSuchTableError(f"table {old.name} does not exist in its catalog")
        exists = AlreadyExistsError(f"table {old.name} cannot be renamed: {new.name} exists")
        if new.find() is not None:
            raise exists
        reply = self.items.move(item, table_key(target))

        def is_done() -> bool:
            return old.find() is None and new.find() is not None

        if not reply.confirmed(f"rename table {old.name} to {new.name}", is_done):
            if reply.code != "TransactionCanceledException":
                reply.check()
            if new.find() is not None:
                raise exists
            raise CommitConflictError(
                f"table {old.name} was changed by another commit and not renamed; try again"
            )

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables, sorted. Raises NoSuchNamespaceError."""
        self._namespaces.properties(namespace)
        return sorted((*namespace, name) for name in self.items.tables(namespace))

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces directly below another, sorted. Raises NoSuchNamespaceError."""
        return self._namespaces.below(parent)

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Creates a namespace; its parents need not exist.

        Raises:
            AlreadyExistsError: it exists.
            InvalidOptionError: a part of it is empty or has a dot.
        """
        self._namespaces.create(namespace, properties)

    def drop_namespace(self, namespace: Identifier) -> None:
        """Drops an empty namespace. Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        self._namespaces.drop(namespace)

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """Raises NoSuchNamespaceError."""
        return self._namespaces.properties(namespace)

    def update_namespace_properties(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Removes and sets properties at once.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
            InvalidOptionError: a property is both removed and set.
        """
        self._namespaces.update(namespace, removals, updates)

    @property
    def _namespaces(self) -> Namespaces:
        return Namespaces(self.items, self.name)

    def _pointer(self, identifier: Identifier) -> DynamoDbPointer:
        self._check(identifier)
        return DynamoDbPointer(self.items, identifier, self._named(identifier))

    def _check(self, identifier: Identifier) -> None:
        # The parts are stored joined by dots, so a dot in a part would be ambiguous.
        if len(identifier) < 2 or any(not part or "." in part for part in identifier):
            raise InvalidOptionError(
                f"catalog {self.name}: {identifier!r} is not an identifier in DynamoDB: expected a "
                "namespace and a name without dots, such as ('db', 'events'); to load a location, "
                "leave the catalog out"
            )

    def _named(self, identifier: Identifier) -> str:
        return ".".join((self.name, *identifier))


def dynamodb_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> DynamoDbCatalog:
    """The catalog in a table of DynamoDB, which is created at its first use if it does not exist.

    Args:
        properties: `dynamodb.table-name` (iceberg), also as `table-name`; `warehouse`, for tables
            of namespaces without a location; and those of `aws_settings`.

    Raises:
        InvalidOptionError: a property is unknown or malformed.
    """
    check_names(name, "dynamodb", properties, _TABLE_NAME)
    table = next((properties[key] for key in _TABLE_NAME if properties.get(key)), "iceberg")
    client = aws_client(aws_settings(name, "dynamodb", properties), {})
    return DynamoDbCatalog(name, properties.get("warehouse"), io, Items(client, table))


# Attempts to drop a table that others commit to.
_DROPS = 20
# Java Iceberg's name of the property, and PyIceberg's.
_TABLE_NAME = ("dynamodb.table-name", "table-name")
