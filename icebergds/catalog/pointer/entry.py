"""Implements the common parts of table and view entries (`EntryOperations`).

The names of metadata files are unique, so a pointer never returns to an earlier one. So it can be
determined after an error whether an attempt to set it was applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic

from icebergds.catalog.metadata_writing import delete_quietly
from icebergds.catalog.pointer.pointer import Metadata, MetadataPointer, Pointer, Swap
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    IcebergError,
    NoSuchTableError,
    NotFoundError,
)
from icebergds.io.fileio import FileIO


@dataclass(frozen=True, slots=True)
class EntryOperations(Generic[Metadata]):
    """The operations of a catalog on one entry.

    Attributes:
        name: the table's or view's name in messages.
        kind: `table` or `view`.
        missing: the class of the error if the entry does not exist.
    """

    pointer: MetadataPointer[Metadata]
    io: FileIO
    name: str
    kind: ClassVar[str]
    missing: ClassVar[type[NotFoundError]]

    def existing(self) -> Pointer:
        """The entry; raises the error `missing` if there is none."""
        pointer = self.pointer.find()
        if pointer is None:
            raise self.missing(f"{self._what} does not exist in its catalog")
        return pointer

    def rename(self, new: EntryOperations[Metadata]) -> None:
        """Renames the entry; raises what `Catalog.rename` does."""
        found = self.existing()
        exists = AlreadyExistsError(f"{self._what} cannot be renamed: {new.name} exists")
        if new._is_taken():
            raise exists
        if not self.pointer.move(new.pointer, found):
            if new._is_taken():
                raise exists
            self.existing()
            raise CommitConflictError(
                f"{self._what} was changed by another commit and not renamed; try again"
            )

    @property
    def _what(self) -> str:
        return f"{self.kind} {self.name}"

    def _is_taken(self) -> bool:
        try:
            return self.pointer.find() is not None
        except NoSuchTableError:
            # It has another format.
            return True

    def _require_free(self) -> None:
        try:
            taken = self.pointer.find() is not None
        except NoSuchTableError as error:
            raise AlreadyExistsError(f"{error}; it has the name of the new {self.kind}") from None
        if taken:
            raise self._exists()

    def _insert(self, new: str, metadata: Metadata) -> None:
        swap = self.pointer.insert(new, metadata)
        if not self._was_set(swap, None, new):
            raise swap.error or self._exists() from swap.cause

    def _was_set(self, swap: Swap, base: str | None, new: str) -> bool:
        """Whether a pointer was set; asks the catalog if its answer does not say.

        Args:
            base: the metadata file to replace; None for a new entry.
            new: the metadata file to replace it with.

        Raises:
            CommitStateUnknownError: it is unknown.
        """
        if swap.applied or not swap.uncertain:
            return swap.applied
        try:
            pointer = self.pointer.find()
            if pointer is not None:
                current = pointer.metadata_location
                if new in (current, pointer.previous_metadata_location):
                    return True
                earlier = set() if current is None else self._logged(current)
                if new in earlier:
                    return True
                # The log must go back to the base: what precedes the log is unknown.
                if base is not None and current != base and base in earlier:
                    return False
        except Exception as error:
            raise self._unknown(new, error) from swap.cause
        if not swap.pending:
            return False
        raise self._unknown(new, swap.reason) from swap.cause

    def _logged(self, metadata_location: str) -> set[str]:
        """The earlier metadata files that a metadata file lists."""
        return set()

    def _discard(self, new: str, error: IcebergError) -> None:
        """Deletes a metadata file after an error, if it was certainly not committed."""
        if not error.outcome_unknown:
            delete_quietly(self.io, new, self._what)

    def _exists(self) -> AlreadyExistsError:
        return AlreadyExistsError(f"{self._what} already exists")

    def _conflict(self, base_location: str) -> CommitConflictError:
        return CommitConflictError(
            f"{self._what} was changed by another commit: it is no longer at {base_location}, on "
            "which this commit is based"
        )

    def _unknown(self, new: str, why: object) -> CommitStateUnknownError:
        return CommitStateUnknownError(
            f"{self._what}: it is unknown whether {new} was committed ({why}); check whether it is "
            "in the metadata log before trying again"
        )
