"""Implements the S3 Tables catalog: tables at the places that S3 Tables chooses."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from icebergds.catalog.aws.client import aws_client
from icebergds.catalog.aws.settings import aws_settings, check_names
from icebergds.catalog.base import Identifier, nearest_table
from icebergds.catalog.pointer.table_operations import PointerTableOperations
from icebergds.catalog.s3tables.entries import TableEntries
from icebergds.catalog.s3tables.namespaces import Namespaces
from icebergds.catalog.s3tables.pointer import S3TablesPointer
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    FormatError,
    IcebergError,
    InvalidOptionError,
    MissingFileError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.updates.table_updates import SetLocation, TableUpdate

__all__ = ["S3TablesCatalog", "s3tables_catalog"]

# Attempts to drop a table that others commit to.
_DROPS = 10


@dataclass(frozen=True, slots=True)
class S3TablesCatalog:
    """A catalog of the tables in a table bucket, which S3 Tables stores and maintains.

    A table is dropped with its files: there is `purge`, but no `drop`.
    """

    name: str
    io: FileIO
    entries: TableEntries

    def operations(self, identifier: Identifier) -> PointerTableOperations:
        return PointerTableOperations(self._pointer(identifier), self.io, self._named(identifier))

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: there is no such table; the message suggests a similar name.
            InvalidOptionError: S3 Tables does not allow the name.
        """
        if len(identifier) > 2:
            # Such as a metadata table of a table, which is looked for as a table first.
            raise NoSuchTableError(
                f"table {self._named(identifier)} does not exist: S3 Tables has no namespaces in "
                "namespaces"
            )
        try:
            return self.operations(identifier).refresh()
        except NoSuchTableError as error:
            try:
                tables = self._namespaces.some_tables(identifier[0])
            except NoSuchNamespaceError as missing:
                raise NoSuchTableError(f"{error}; {missing}") from None
            others = (table for table in tables if table != identifier[1])
            raise NoSuchTableError(f"{error}{nearest_table(identifier, others)}") from None

    def new_table_location(self, identifier: Identifier) -> str:
        """The location that S3 Tables chooses for a table: it is created there, without metadata.

        Raises:
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: S3 Tables does not allow the name.
        """
        self._check(identifier)
        self._namespaces.require(identifier[0])
        return self.entries.find_or_create(identifier).location

    def check_creation(self, identifier: Identifier, location: str) -> None:
        """Checks that the table has the location that S3 Tables chooses.

        Raises:
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: the location is another one, or S3 Tables does not allow the name.
        """
        chosen = self.new_table_location(identifier)
        if location.rstrip("/") != chosen:
            self.entries.delete_unused(identifier)
            raise InvalidOptionError(
                f"table {self._named(identifier)} cannot be at {location}: S3 Tables chooses the "
                f"locations of its tables, here {chosen}; leave the location out"
            )

    def create(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
        """Creates a table in an existing namespace, at the location that S3 Tables chooses.

        Raises:
            AlreadyExistsError: a table with this name exists.
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: the updates set another location than `new_table_location`.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        for update in updates:
            if isinstance(update, SetLocation):
                self.check_creation(identifier, update.location)
        try:
            return self.operations(identifier).create(updates)
        except IcebergError as error:
            if not error.outcome_unknown:
                self.entries.delete_unused(identifier)
            raise

    def register(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Raises UnsupportedFeatureError: metadata must be where S3 Tables chose."""
        raise UnsupportedFeatureError(
            f"catalog {self.name}: S3 Tables cannot register {metadata_location} as a table: it "
            "has only tables at locations that it chose; create a table and write its rows to it"
        )

    def drop(self, identifier: Identifier) -> TableState | None:
        """Raises UnsupportedFeatureError: S3 Tables deletes files with their table."""
        raise UnsupportedFeatureError(
            f"table {self._named(identifier)} was not dropped: S3 Tables cannot drop a table and "
            "keep its files; purge_table or DROP TABLE ... PURGE drops it with its files"
        )

    def purge(self, identifier: Identifier) -> TableState | None:
        """Implements `PurgingCatalog.purge`.

        Raises:
            NoSuchTableError: there is no such table.
            CommitConflictError: S3 Tables refused each attempt; the table was not dropped.
            CommitStateUnknownError: it is unknown whether the table was dropped.
        """
        pointer, operations = self._pointer(identifier), self.operations(identifier)
        for attempt in range(_DROPS):
            time.sleep(min(0.1 * attempt, 1.0))
            entry = self.entries.find(identifier)
            if entry is None:
                raise NoSuchTableError(f"table {pointer.name} does not exist in its catalog")
            try:
                state = operations.refresh()
            except (FormatError, MissingFileError, NoSuchTableError):
                state = None
            reply = self.entries.delete(identifier, entry.version_token)
            what = f"drop table {pointer.name}"
            if reply.confirmed(what, lambda: self.entries.find(identifier) is None):
                return state
            # Repeated if there was a commit meanwhile.
            if reply.code not in ("ConflictException", "NotFoundException"):
                reply.check()
        raise CommitConflictError(
            f"table {pointer.name} was not dropped: S3 Tables refused {_DROPS} attempts "
            f"({reply.error}); try again when nobody changes the table"
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
        pointer = old.find()
        if pointer is None:
            raise NoSuchTableError(f"table {old.name} does not exist in its catalog")
        self._namespaces.require(target[0])
        if self.entries.find(target) is not None:
            raise AlreadyExistsError(f"table {old.name} cannot be renamed: {new.name} exists")
        reply = self.entries.rename(source, str(pointer.token), target)

        def is_done() -> bool:
            return old.find() is None and new.find() is not None

        if not reply.confirmed(f"rename table {old.name} to {new.name}", is_done):
            if reply.code == "ConflictException":
                raise CommitConflictError(
                    f"table {old.name} was not renamed: it was changed by another commit, or "
                    f"{new.name} was created meanwhile; try again"
                )
            reply.check()

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables, sorted. Raises NoSuchNamespaceError."""
        tables = self._namespaces.tables(self._namespace(namespace))
        return sorted((*namespace, name) for name in tables)

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces, sorted; none are below another. Raises NoSuchNamespaceError."""
        if parent:
            self._namespaces.require(self._namespace(parent))
            return []
        return sorted((name,) for name in self._namespaces.names())

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Creates a namespace.

        Raises:
            AlreadyExistsError: it exists.
            UnsupportedFeatureError: it has several levels, or properties.
            InvalidOptionError: S3 Tables does not allow the name.
        """
        self._namespaces.create(self._namespace(namespace), properties)

    def drop_namespace(self, namespace: Identifier) -> None:
        """Drops an empty namespace. Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        self._namespaces.drop(self._namespace(namespace))

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """None: namespaces have no properties. Raises NoSuchNamespaceError."""
        self._namespaces.require(self._namespace(namespace))
        return {}

    def update_namespace_properties(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Raises UnsupportedFeatureError if properties are set; NoSuchNamespaceError."""
        self._namespaces.require(self._namespace(namespace))
        self._namespaces.refuse_properties(updates)

    @property
    def _namespaces(self) -> Namespaces:
        return Namespaces(self.entries.client, self.name)

    def _pointer(self, identifier: Identifier) -> S3TablesPointer:
        self._check(identifier)
        return S3TablesPointer(self.entries, identifier, self._named(identifier))

    def _check(self, identifier: Identifier) -> None:
        if len(identifier) < 2:
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} is not an identifier: expected a "
                "namespace and a name, such as db.events; to load a location, leave the catalog out"
            )
        self._namespace(identifier[:-1])
        self._check_name(identifier[-1])

    def _namespace(self, namespace: Identifier) -> str:
        if len(namespace) > 1:
            raise UnsupportedFeatureError(
                f"catalog {self.name}: S3 Tables has no namespaces in namespaces, such as "
                f"{'.'.join(namespace)}; expected one level"
            )
        name = "".join(namespace)
        self._check_name(name)
        return name

    def _check_name(self, name: str) -> None:
        if not re.fullmatch("[a-z0-9][a-z0-9_]{0,254}", name):
            raise InvalidOptionError(
                f"catalog {self.name}: {name!r} cannot be a name in S3 Tables: expected at most "
                "255 characters of a-z, 0-9 and _, the first of them no _"
            )

    def _named(self, identifier: Identifier) -> str:
        return ".".join((self.name, *identifier))


def s3tables_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> S3TablesCatalog:
    """The catalog of a table bucket.

    Args:
        properties: `warehouse`, the ARN of the table bucket; and those of `aws_settings`, of which
            the region is by default that of the ARN.

    Raises:
        InvalidOptionError: a property is unknown or malformed, or there is no warehouse.
    """
    check_names(name, "s3tables", properties, ())
    warehouse = properties.get("warehouse", "")
    match = re.fullmatch(r"arn:[^:/]+:s3tables:(?P<region>[^:/]+):[^:/]*:bucket/[^:/]+", warehouse)
    if match is None:
        raise InvalidOptionError(
            f"catalog {name}: its warehouse is {warehouse!r}, expected the ARN of a table bucket, "
            "such as arn:aws:s3tables:eu-west-1:111122223333:bucket/lake"
        )
    settings = aws_settings(name, "s3tables", properties)
    if settings.region is None:
        settings = replace(settings, region=match["region"])
    client = aws_client(settings, {"tableBucketARN": warehouse})
    return S3TablesCatalog(name, io, TableEntries(client))
