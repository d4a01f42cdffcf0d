"""Points to the metadata file of a table by its entry in Glue (`GluePointer`).

Glue refuses a commit if the entry has a newer version than that it is based on (`VersionId`).
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
        skip_archive: whether Glue does not keep the versions that commits replace.
    """

    client: AwsClient
    database: str
    table: str
    name: str
    skip_archive: bool

    def entry(self) -> Mapping[str, Any] | None:
        """The table as Glue has it, of any kind; None if there is none."""
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
