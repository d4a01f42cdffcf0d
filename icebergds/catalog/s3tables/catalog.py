"""Implements the S3 Tables catalog: tables at locations that S3 Tables chooses."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from icebergds.catalog.aws.client import AwsClient, aws_client
from icebergds.catalog.base import Identifier
from icebergds.catalog.pointer.catalog import PointerCatalog
from icebergds.catalog.pointer.pointer import Pointer
from icebergds.catalog.s3tables.entries import S3TablesPointer, TableEntries
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    IcebergError,
    InvalidOptionError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.io.aws_settings import aws_settings, check_names
from icebergds.io.fileio import FileIO
from icebergds.spec.updates.table_updates import SetLocation, TableUpdate

__all__ = ["S3TablesCatalog", "s3tables_catalog"]

# Attempts to drop a table that others commit to.
_DROPS = 10


@dataclass(frozen=True, slots=True)
class S3TablesCatalog(PointerCatalog):
    """A catalog of the tables in a table bucket, which S3 Tables stores and maintains.

    Dropping a table deletes its files: there is `purge`, but no `drop`.
    """

    entries: TableEntries
    flat: ClassVar[str] = "S3 Tables"

    def new_table_location(self, identifier: Identifier) -> str:
        """The location that S3 Tables chooses for a table, by creating it there without metadata.

        Raises:
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: S3 Tables does not allow the name.
        """
        self._check(identifier)
        self._require(identifier[:-1])
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
        """Raises UnsupportedFeatureError: metadata must be in the location that S3 Tables chose."""
        raise UnsupportedFeatureError(
            f"catalog {self.name}: S3 Tables cannot register {metadata_location} as a table: it "
            "has only tables at locations that it chose; create a table and write its rows to it"
        )

    def register_over(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Raises UnsupportedFeatureError, as `register` does."""
        return self.register(identifier, metadata_location)

    def unregister(self, identifier: Identifier) -> str:
        """Raises UnsupportedFeatureError: S3 Tables deletes files with their table."""
        raise self._keeps_none(identifier, "unregistered")

    def drop(self, identifier: Identifier) -> TableState | None:
        """Raises UnsupportedFeatureError: S3 Tables deletes files with their table."""
        raise self._keeps_none(identifier, "dropped")

    def purge(self, identifier: Identifier) -> TableState | None:
        """Implements `PurgingCatalog.purge`.

        Raises:
            NoSuchTableError: there is no such table.
            CommitConflictError: S3 Tables refused each attempt; the table was not dropped.
            CommitStateUnknownError: it is unknown whether the table was dropped.
        """
        operations = self.operations(identifier)
        for attempt in range(_DROPS):
            time.sleep(min(0.1 * attempt, 1.0))
            entry = self.entries.find(identifier)
            if entry is None:
                break
            found = Pointer(entry.metadata_location, token=entry.version_token)
            state = operations.last_state(found)
            try:
                operations.pointer.delete(found)
                return state
            except CommitConflictError:
                # There was a concurrent commit, or S3 Tables itself is changing the table.
                if attempt == _DROPS - 1:
                    raise
        raise NoSuchTableError(f"table {operations.name} does not exist in its catalog")

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables, sorted. Raises NoSuchNamespaceError."""
        self._require(namespace)
        pages = self._client.pages("list_tables", namespace=self._level(namespace))
        tables = (table["name"] for page in pages for table in page.require("tables"))
        return sorted((*namespace, name) for name in tables)

    # Namespaces, without properties.

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces, sorted; they are not nested. Raises NoSuchNamespaceError."""
        if parent:
            self._require(parent)
            return []
        pages = self._client.pages("list_namespaces")
        return sorted(
            (found["namespace"][0],) for page in pages for found in page.require("namespaces")
        )

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Creates a namespace.

        Raises:
            AlreadyExistsError: it exists.
            UnsupportedFeatureError: it has several levels, or properties.
            InvalidOptionError: S3 Tables does not allow the name.
        """
        name = self._level(namespace)
        self._refuse_properties(properties)
        reply = self._client.send("create_namespace", namespace=[name])
        what = f"create namespace {self._named(namespace)}"
        if not reply.confirmed(what, lambda: self._has(name)):
            if reply.code == "ConflictException":
                raise AlreadyExistsError(f"namespace {self._named(namespace)} already exists")
            reply.check()

    def drop_namespace(self, namespace: Identifier) -> None:
        """Drops an empty namespace. Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        name = self._level(namespace)
        if tables := self.list_tables(namespace):
            raise NamespaceNotEmptyError(
                f"namespace {self._named(namespace)} is not empty: it contains the table "
                f"{tables[0][-1]}"
            )
        reply = self._client.send("delete_namespace", namespace=name)
        what = f"drop namespace {self._named(namespace)}"
        if not reply.confirmed(what, lambda: not self._has(name)):
            if reply.code == "ConflictException":
                raise NamespaceNotEmptyError(f"namespace {self._named(namespace)} is not empty")
            if reply.code == "NotFoundException":
                raise self._no_namespace(namespace)
            reply.check()

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """Empty, as namespaces have no properties. Raises NoSuchNamespaceError."""
        self._require(namespace)
        return {}

    def _update_namespace(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        self._require(namespace)
        self._refuse_properties(updates)

    def _refuse_properties(self, names: Mapping[str, str]) -> None:
        if names:
            raise UnsupportedFeatureError(
                f"catalog {self.name}: namespaces of S3 Tables have no properties, such as "
                f"{', '.join(sorted(names))}"
            )

    # Implementation of `PointerCatalog`.

    def _keeps_none(self, identifier: Identifier, done: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"table {self._named(identifier)} was not {done}: S3 Tables cannot drop a table and "
            "keep its files; purge_table or DROP TABLE ... PURGE drops it with its files"
        )

    def _pointer(self, identifier: Identifier) -> S3TablesPointer:
        return S3TablesPointer(self.entries, identifier, self._named(identifier))

    def _require(self, namespace: Identifier) -> None:
        if not self._has(self._level(namespace)):
            raise self._no_namespace(namespace)

    def _some_tables(self, namespace: Identifier) -> list[str] | None:
        # Hints do not need all names if there are many, and must not fail.
        reply = self._client.send("list_tables", namespace=self._level(namespace))
        if reply.code == "NotFoundException":
            return None
        return [table["name"] for table in reply.body.get("tables", ())]

    def _some_namespaces(self) -> list[Identifier]:
        some = self._client.send("list_namespaces").body.get("namespaces", ())
        return [(found["namespace"][0],) for found in some]

    def _check(self, identifier: Identifier) -> None:
        if len(identifier) < 2:
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} is not an identifier: expected a "
                "namespace and a name, such as db.events; to load a location, leave the catalog out"
            )
        self._level(identifier[:-1])
        self._check_name(identifier[-1])

    def _level(self, namespace: Identifier) -> str:
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

    def _has(self, name: str) -> bool:
        reply = self._client.send("get_namespace", namespace=name)
        if reply.code == "NotFoundException":
            return False
        reply.check()
        return True

    @property
    def _client(self) -> AwsClient:
        return self.entries.client


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
    return S3TablesCatalog(name, None, io, TableEntries(client))
