"""Defines what a catalog does with a pointer (`MetadataPointer`) and how that can end (`Swap`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from icebergds.errors import IcebergError

Metadata = TypeVar("Metadata")
"""What the files hold: `TableMetadata` or `ViewMetadata`."""
_Metadata_contra = TypeVar("_Metadata_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where the metadata of a table or view is, exactly as the catalog stores it.

    Attributes:
        token: what the catalog itself needs to change this very entry, such as its version.
    """

    metadata_location: str | None
    previous_metadata_location: str | None = None
    token: object = None


@dataclass(frozen=True, slots=True)
class Swap:
    """The outcome of an attempt to set a pointer.

    Attributes:
        applied: whether the catalog confirmed it.
        uncertain: whether it may have been applied all the same.
        pending: whether it may even be applied later, so that a pointer without it proves nothing.
        error: why it was not applied, if that is so; None if the pointer was or is elsewhere.
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
    """Nothing was changed, for certain: by `error`, or because the pointer is elsewhere."""
    return Swap(applied=False, error=error, cause=cause)


def uncertain(
    error: IcebergError, *, pending: bool, reason: str = "", cause: BaseException | None = None
) -> Swap:
    """The answer was lost or is an error that does not prove that nothing was changed.

    Args:
        error: raised if the change turns out not to be applied.
        pending: whether it may still be applied.
        reason: by default the message of `error`.
    """
    return Swap(False, True, pending, error, reason or str(error), cause)


class MetadataPointer(Protocol, Generic[_Metadata_contra]):
    """The entry of one table or view in a catalog."""

    def find(self) -> Pointer | None:
        """The entry as it is now; None if there is none.

        Raises:
            IcebergError: the catalog cannot be asked, or the entry is something else.
        """
        ...

    def insert(self, location: str, metadata: _Metadata_contra) -> Swap:
        """Adds the entry, if there is none with this name.

        Args:
            location: the metadata file.
            metadata: what it holds.

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
        """Deletes the entry; False if it was changed since it was found.

        Raises:
            CommitStateUnknownError: it is unknown whether it was deleted.
        """
        ...

    def move(self, target: Self, found: Pointer) -> bool:
        """Gives the entry the name of another, which nothing has; False if that is not so any more.

        Raises:
            AlreadyExistsError: there is something of that name.
            CommitStateUnknownError: it is unknown whether it was renamed.
        """
        ...


def is_moved(source: MetadataPointer[Metadata], target: MetadataPointer[Metadata]) -> bool:
    """Looks whether an entry was renamed, if the catalog's answer to that was lost."""
    return source.find() is None and target.find() is not None
