"""Points to the metadata file of a table in S3 Tables (`S3TablesPointer`).

S3 Tables refuses a commit if the table has another version token than that it is based on.
"""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.catalog.base import Identifier
from icebergds.catalog.pointer.pointer import Pointer, Swap, is_moved, refused
from icebergds.catalog.s3tables.entries import TableEntries
from icebergds.errors import AlreadyExistsError, CommitConflictError, NoSuchTableError

__all__ = ["S3TablesPointer"]


@dataclass(frozen=True, slots=True)
class S3TablesPointer:
    """The entry of a table; implements `MetadataPointer`.

    A table that has no metadata yet counts as missing.

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
        # It was created without metadata when its location was asked for.
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
