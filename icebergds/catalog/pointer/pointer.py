"""Defines a catalog's operations on a pointer (`MetadataPointer`) and their outcome (`Swap`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar, runtime_checkable

from icebergds.errors import IcebergError
from icebergds.spec.metadata import TableMetadata

Metadata = TypeVar("Metadata")
"""The content of the files: `TableMetadata` or `ViewMetadata`."""
_Metadata_contra = TypeVar("_Metadata_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Pointer:
    """The location of a table's or view's metadata, exactly as the catalog stores it.

    Attributes:
        token: what the catalog needs to change exactly this entry, such as its version.
    """

    metadata_location: str | None
    previous_metadata_location: str | None = None
    token: object = None


@dataclass(frozen=True, slots=True)
class Swap:
    """The outcome of an attempt to set a pointer.

    Attributes:
        applied: whether the catalog confirmed it.
        uncertain: whether it may have been applied anyway.
        pending: whether it may even be applied later, so that an unchanged pointer proves nothing.
        error: why it was not applied, if so; None if the pointer was or is different.
        reason: why that is not known, without secrets.
        cause: the error of the catalog's client, if it may be shown.
    """

    applied: bool
    uncertain: bool = False
    pending: bool = False
    error: IcebergError | None = None
    reason: str = ""
    cause: BaseException | None = None


def applied() -> Swap:
    """The catalog confirmed the change."""
    return Swap(applied=True)


def refused(error: IcebergError | None = None, cause: BaseException | None = None) -> Swap:
    """Certainly nothing was changed: because of `error`, or because the pointer is different."""
    return Swap(applied=False, error=error, cause=cause)


def uncertain(
    error: IcebergError, *, pending: bool, reason: str = "", cause: BaseException | None = None
) -> Swap:
    """The answer was lost, or is an error that does not prove that nothing was changed.

    Args:
        error: raised if the change turns out not to be applied.
        pending: whether it may still be applied.
        reason: by default the message of `error`.
    """
    return Swap(False, True, pending, error, reason or str(error), cause)


class MetadataPointer(Protocol, Generic[_Metadata_contra]):
    """The entry of one table or view in a catalog."""

    def find(self) -> Pointer | None:
        """The current entry; None if there is none.

        Raises:
            IcebergError: the catalog cannot be asked, or the entry is something else.
        """
        ...

    def insert(self, location: str, metadata: _Metadata_contra) -> Swap:
        """Adds the entry, if the name is free.

        Args:
            location: the metadata file.
            metadata: its content.

        Returns:
            The outcome; refused with AlreadyExistsError if there is an entry.

        Raises:
            IcebergError: nothing was sent to the catalog.
        """
        ...

    def swap(self, base: Pointer, location: str, metadata: _Metadata_contra) -> Swap:
        """Sets the metadata file, if the entry still has that of `base` (compare-and-swap).

        Raises:
            IcebergError: nothing was sent to the catalog.
        """
        ...

    def delete(self, found: Pointer) -> bool:
        """Deletes the entry; False if it has changed since it was found.

        Raises:
            CommitStateUnknownError: it is unknown whether it was deleted.
        """
        ...

    def move(self, target: Self, found: Pointer) -> bool:
        """Renames the entry to a free name; False if either has changed since they were looked up.

        Raises:
            AlreadyExistsError: the name is taken.
            CommitStateUnknownError: it is unknown whether it was renamed.
        """
        ...


@runtime_checkable
class ChecksMetadata(Protocol):
    """A pointer whose entry says more of its metadata file than where it is."""

    def check_metadata(self, found: Pointer, data: bytes, metadata: TableMetadata) -> None:
        """Checks that a file is what was committed.

        Args:
            found: the entry with the location of the file.
            data: the file.
            metadata: what is in it.

        Raises:
            InvalidMetadataError: it is not.
        """
        ...


def is_moved(source: MetadataPointer[Metadata], target: MetadataPointer[Metadata]) -> bool:
    """Checks whether an entry was renamed, after the catalog's answer was lost."""
    return source.find() is None and target.find() is not None
