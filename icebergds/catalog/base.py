"""What a catalog is: a way from an identifier to the current metadata of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from icebergds.io.fileio import FileIO
from icebergds.spec.metadata import TableMetadata


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


class Catalog(Protocol):
    """Finds tables by identifier."""

    @property
    def name(self) -> str: ...

    def load(self, identifier: tuple[str, ...]) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: the catalog has no table under this identifier.
        """
        ...
