"""Stores a table's metadata file in its entry in Glue (`GluePointer`).

Glue refuses a commit if the entry no longer has the version that it is based on (`VersionId`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icebergds.catalog.aws.client import AwsClient
from icebergds.catalog.glue.table_input import (
    METADATA_LOCATION,
    PREVIOUS_METADATA_LOCATION,
    is_iceberg,
    table_input,
)
from icebergds.catalog.pointer.pointer import Pointer, Swap, refused
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedFeatureError,
)
from icebergds.spec.metadata import TableMetadata

__all__ = ["GluePointer"]


@dataclass(frozen=True, slots=True)
class GluePointer:
    """The entry of a table; implements `MetadataPointer`.

    Attributes:
        name: the table's name in messages.
        skip_archive: whether Glue discards the versions that commits replace.
    """

    client: AwsClient
    database: str
    table: str
    name: str
    skip_archive: bool

    def entry(self) -> Mapping[str, Any] | None:
        """The table of any kind, as Glue stores it; None if there is none."""
        reply = self.client.send("get_table", DatabaseName=self.database, Name=self.table)
        if reply.code == "EntityNotFoundException":
            return None
        found: Mapping[str, Any] = reply.require("Table")
        return found

    def find(self) -> Pointer | None:
        """Implements `MetadataPointer.find`.

        Raises:
            NoSuchTableError: it is a table of another kind.
        """
        entry = self.entry()
        if entry is None:
            return None
        if not is_iceberg(entry):
            raise NoSuchTableError(
                f"table {self.name} is not an Iceberg table: its parameter table_type in Glue is "
                f"not ICEBERG, but {entry.get('Parameters', {}).get('table_type')!r}; read it with "
                "Spark's own formats, or import it with a table of another name"
            )
        parameters = entry["Parameters"]
        return Pointer(
            parameters.get(METADATA_LOCATION), parameters.get(PREVIOUS_METADATA_LOCATION), entry
        )

    def insert(self, location: str, metadata: TableMetadata) -> Swap:
        given = table_input(self.table, location, metadata)
        reply = self.client.send("create_table", DatabaseName=self.database, TableInput=given)
        if reply.code == "AlreadyExistsException":
            return reply.swap(AlreadyExistsError(f"table {self.name} already exists in Glue"))
        if reply.code == "EntityNotFoundException":
            return reply.swap(
                NoSuchNamespaceError(f"namespace of table {self.name} does not exist")
            )
        return reply.swap()

    def swap(self, base: Pointer, location: str, metadata: TableMetadata) -> Swap:
        entry = base.token
        assert isinstance(entry, Mapping), "the pointer is one that was found"
        version = entry.get("VersionId")
        if version is None:
            return refused(
                UnsupportedFeatureError(
                    f"table {self.name} cannot be changed: the server gives no VersionId of it, by "
                    "which concurrent commits are detected"
                )
            )
        reply = self.client.send(
            "update_table",
            DatabaseName=self.database,
            TableInput=table_input(self.table, location, metadata, entry),
            SkipArchive=self.skip_archive,
            VersionId=version,
        )
        if reply.code == "ConcurrentModificationException":
            return reply.swap(
                CommitConflictError(f"table {self.name} was changed in Glue by somebody else")
            )
        if reply.code == "EntityNotFoundException":
            return reply.swap(NoSuchTableError(f"table {self.name} does not exist in Glue"))
        return reply.swap()

    def delete(self, found: Pointer) -> bool:
        """Deletes the entry unconditionally, because Glue has no condition for it."""
        reply = self.client.send("delete_table", DatabaseName=self.database, Name=self.table)
        if reply.confirmed(f"drop table {self.name}", lambda: self.entry() is None):
            return True
        if reply.code == "EntityNotFoundException":
            raise NoSuchTableError(f"table {self.name} does not exist in its catalog")
        reply.check()
        return False

    def move(self, target: GluePointer, found: Pointer) -> bool:
        """Creates the new entry and deletes the old one, because Glue cannot do both atomically.

        Nobody should commit to the table in the meantime. If the old entry is certainly not
        deleted, the new one is deleted again.

        Raises:
            NoSuchTableError: the table was dropped or renamed in the meantime.
            NoSuchNamespaceError: the namespace of the target does not exist.
            AlreadyExistsError: the target exists.
            CommitConflictError: the table was changed in the meantime.
            CommitStateUnknownError: both entries may exist.
        """
        entry = found.token
        assert isinstance(entry, Mapping), "the pointer is one that was found"
        _create(self, target, entry)
        try:
            _check_unchanged(self, entry)
        except Exception:
            _undo(self, target)
            raise
        reply = self.client.send("delete_table", DatabaseName=self.database, Name=self.table)
        # If the old entry exists but may still be deleted, the new one must stay.
        if reply.confirmed(_what(self, target), lambda: self.entry() is None):
            return True
        _undo(self, target)
        if reply.code == "EntityNotFoundException":
            raise NoSuchTableError(f"table {self.name} was dropped or renamed meanwhile")
        reply.check()
        return False


# Parts of a Glue table that a new entry keeps.
_KEPT = ("Description", "Owner", "TableType", "Parameters", "StorageDescriptor")


def _create(source: GluePointer, target: GluePointer, entry: Mapping[str, Any]) -> None:
    given = {key: entry[key] for key in _KEPT if key in entry} | {"Name": target.table}
    reply = target.client.send("create_table", DatabaseName=target.database, TableInput=given)

    def is_created() -> bool:
        found = target.entry() or {}
        return bool(found.get("Parameters") == entry["Parameters"])

    if not reply.confirmed(_what(source, target), is_created):
        if reply.code == "AlreadyExistsException":
            raise AlreadyExistsError(f"table {source.name} cannot be renamed: {target.name} exists")
        if reply.code == "EntityNotFoundException":
            raise NoSuchNamespaceError(f"namespace of table {target.name} does not exist")
        reply.check()


def _check_unchanged(source: GluePointer, entry: Mapping[str, Any]) -> None:
    now = source.entry()
    if now is None:
        raise NoSuchTableError(f"table {source.name} was dropped or renamed meanwhile")
    if now.get("VersionId") != entry.get("VersionId"):
        raise CommitConflictError(
            f"table {source.name} was changed by another commit and not renamed; try again"
        )


def _undo(source: GluePointer, target: GluePointer) -> None:
    """Deletes the new entry."""
    reply = target.client.send("delete_table", DatabaseName=target.database, Name=target.table)
    is_gone = reply.confirmed(_what(source, target), lambda: target.entry() is None)
    if not is_gone and reply.code != "EntityNotFoundException":
        raise CommitStateUnknownError(
            f"table {source.name} was not renamed but is also {target.name}, which could not be "
            f"deleted again: drop one before you write to the other ({reply.error})"
        ) from reply.cause


def _what(source: GluePointer, target: GluePointer) -> str:
    return (
        f"rename table {source.name} to {target.name} (there may be both now: drop one before you "
        "write to the other)"
    )
