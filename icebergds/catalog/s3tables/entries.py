"""Finds, creates, renames and deletes the tables of a table bucket.

S3 Tables refuses a commit if the table no longer has the version token that it is based on.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from icebergds.catalog.aws.client import AwsClient, Reply
from icebergds.catalog.base import Identifier
from icebergds.catalog.pointer.pointer import Pointer, Swap, is_moved, refused
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    NoSuchNamespaceError,
    NoSuchTableError,
)

__all__ = ["S3TablesPointer", "TableEntries"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table as S3 Tables stores it.

    Attributes:
        location: the directory that S3 Tables chose for it, which must contain its metadata.
        metadata_location: None until the first commit.
        version_token: changes with every commit.
    """

    location: str
    metadata_location: str | None
    version_token: str


@dataclass(frozen=True, slots=True)
class TableEntries:
    """The tables of a table bucket, whose ARN is part of every request of the client."""

    client: AwsClient

    def find(self, identifier: Identifier) -> TableEntry | None:
        reply = self.client.send("get_table_metadata_location", **_named(identifier))
        if reply.code == "NotFoundException":
            return None
        return TableEntry(
            reply.require("warehouseLocation").rstrip("/"),
            reply.body.get("metadataLocation") or None,
            reply.require("versionToken"),
        )

    def find_or_create(self, identifier: Identifier) -> TableEntry:
        """A table, without metadata if it is new. Raises NoSuchNamespaceError."""
        for _ in range(_ATTEMPTS):
            entry = self.find(identifier)
            if entry is not None:
                return entry
            created = self.client.send("create_table", format="ICEBERG", **_named(identifier))
            if created.code == "NotFoundException":
                namespace = ".".join((self.client.settings.catalog, *identifier[:-1]))
                raise NoSuchNamespaceError(f"namespace {namespace} does not exist")
            # Another process may have created it, or this one if the answer was lost.
            if created.code != "ConflictException" and not created.uncertain:
                created.check()
        created.check()
        raise AssertionError("a table that was created is found")

    def swap(self, identifier: Identifier, version_token: str, location: str) -> Reply:
        """Sets the metadata file of a table, if its version is unchanged."""
        return self.client.send(
            "update_table_metadata_location",
            versionToken=version_token,
            metadataLocation=location,
            **_named(identifier),
        )

    def rename(self, source: Identifier, version_token: str, target: Identifier) -> Reply:
        return self.client.send(
            "rename_table",
            newNamespaceName=target[0],
            newName=target[1],
            versionToken=version_token,
            **_named(source),
        )

    def delete(self, identifier: Identifier, version_token: str) -> Reply:
        """Deletes a table and its files, if its version is unchanged."""
        return self.client.send("delete_table", versionToken=version_token, **_named(identifier))

    def delete_unused(self, identifier: Identifier) -> None:
        """Deletes a table that has no metadata; failures are only logged."""
        try:
            entry = self.find(identifier)
            if entry is not None and entry.metadata_location is None:
                self.delete(identifier, entry.version_token).check()
        except Exception as error:
            _LOG.warning(
                "table %s: the entry without metadata was not deleted: %s", identifier, error
            )


# Several, in case others create and delete the table concurrently.
_ATTEMPTS = 3


def _named(identifier: Identifier) -> dict[str, str]:
    return {"namespace": identifier[0], "name": identifier[1]}


@dataclass(frozen=True, slots=True)
class S3TablesPointer:
    """The entry of a table; implements `MetadataPointer`.

    A table without metadata counts as missing.

    Attributes:
        name: the table's name in messages.
    """

    entries: TableEntries
    identifier: Identifier
    name: str

    def find(self) -> Pointer | None:
        entry = self.entries.find(self.identifier)
        if entry is None or entry.metadata_location is None:
            return None
        return Pointer(entry.metadata_location, token=entry.version_token)

    def insert(self, location: str, metadata: object) -> Swap:
        exists = AlreadyExistsError(f"table {self.name} already exists")
        dropped = NoSuchTableError(f"table {self.name} was dropped while it was created")
        # It was created without metadata when its location was requested.
        entry = self.entries.find(self.identifier)
        if entry is None or entry.metadata_location is not None:
            return refused(dropped if entry is None else exists)
        reply = self.entries.swap(self.identifier, entry.version_token, location)
        errors = {"ConflictException": exists, "NotFoundException": dropped}
        return reply.swap(errors.get(reply.code))

    def swap(self, base: Pointer, location: str, metadata: object) -> Swap:
        reply = self.entries.swap(self.identifier, str(base.token), location)
        if reply.code == "ConflictException":
            return reply.swap(
                CommitConflictError(f"table {self.name} was changed by another commit")
            )
        if reply.code == "NotFoundException":
            return reply.swap(NoSuchTableError(f"table {self.name} does not exist in its catalog"))
        return reply.swap()

    def delete(self, found: Pointer) -> bool:
        """Deletes the table with its files.

        Raises:
            CommitConflictError: S3 Tables refused it, because it was changed or is being changed.
        """
        reply = self.entries.delete(self.identifier, str(found.token))
        what = f"drop table {self.name}"
        if reply.confirmed(what, lambda: self.entries.find(self.identifier) is None):
            return True
        if reply.code not in ("ConflictException", "NotFoundException"):
            reply.check()
        raise CommitConflictError(
            f"table {self.name} was not dropped: S3 Tables refused it ({reply.error}); try again "
            "when nobody changes the table"
        )

    def move(self, target: S3TablesPointer, found: Pointer) -> bool:
        if self.entries.find(target.identifier) is not None:
            # It may have no metadata yet.
            raise AlreadyExistsError(f"table {self.name} cannot be renamed: {target.name} exists")
        reply = self.entries.rename(self.identifier, str(found.token), target.identifier)
        what = f"rename table {self.name} to {target.name}"
        if reply.confirmed(what, lambda: is_moved(self, target)):
            return True
        if reply.code != "ConflictException":
            reply.check()
        return False
