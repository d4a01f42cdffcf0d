"""A table that can be committed to, whatever catalog it is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from icebergds.io.fileio import FileIO
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.updates.requirements import TableRequirement
from icebergds.spec.updates.table_updates import TableUpdate


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as a catalog found it at one moment.

    Attributes:
        name: how messages name the table.
        metadata_location: the metadata file, as the catalog names it.
    """

    name: str
    metadata_location: str
    metadata: TableMetadata
    io: FileIO


class TableOperations(Protocol):
    """Loads one table afresh, and swaps its metadata."""

    @property
    def name(self) -> str:
        """How messages name the table."""
        ...

    def refresh(self) -> TableState:
        """The table as it is now.

        Raises:
            NoSuchTableError: there is no such table (any more).
        """
        ...

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        """Applies updates to `base`, if the table is still in that state, in one atomic swap.

        Every outcome is one of three: it returns (committed), it raises CommitConflictError or
        another error (not committed: what was written for it may be deleted), or it raises
        CommitStateUnknownError.

        Args:
            base: what `refresh` gave; the updates were made for it.

        Returns:
            The table after the commit.

        Raises:
            CommitConflictError: another commit came first; refresh and try again.
            CommitStateUnknownError: whether it landed is not known; nothing may be deleted.
        """
        ...
