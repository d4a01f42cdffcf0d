"""Holds a table that this process has loaded, with the operations that commit to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icebergds.catalog.address import TableAddress
from icebergds.catalog.filesystem.commits import check_changeable
from icebergds.commit.operations import KeepsLastSeen, TableOperations, TableState
from icebergds.io.fileio import FileIO
from icebergds.io.kept_reads import MAX_KEPT_BYTES
from icebergds.spec.metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as one statement sees it: loaded once, and the base of its commits.

    Attributes:
        address: the table's address, for other processes.
        operations: loads and commits in this process, with one catalog object.
        state: the base of the first attempt to commit.
        seen: the table as the caller last saw it, for writes of rows that may have been computed
            from it; None if that is `state`.
    """

    address: TableAddress
    operations: TableOperations
    state: TableState
    seen: TableMetadata | None = None

    @property
    def name(self) -> str:
        """The table's name in messages."""
        return self.state.name

    @property
    def metadata(self) -> TableMetadata:
        return self.state.metadata

    @property
    def io(self) -> FileIO:
        return self.state.io

    def keeping_reads(self, max_bytes: int = MAX_KEPT_BYTES) -> LoadedTable:
        """The table with storage that caches the manifests it reads, up to `max_bytes`."""
        return self.at(replace(self.state, io=self.io.keeping_reads(max_bytes)))

    def at(self, state: TableState) -> LoadedTable:
        """The table in another state."""
        return replace(self, state=state)


def load_for_write(address: TableAddress, operations: TableOperations | None = None) -> LoadedTable:
    """Loads a table through its commit operations, so that a read-only one is rejected here.

    Args:
        operations: of the table at the address; created from the address by default.

    Raises:
        NoSuchTableError: the table does not exist.
        InvalidOptionError: the address is a metadata file, which never changes; or the table was
            copied or moved, and its old location is not mapped to the new one.
    """
    operations = operations or address.operations()
    return _loaded(address, operations, operations.refresh())


def last_seen_for_write(address: TableAddress) -> LoadedTable | None:
    """The table as this process last saw it, without asking its catalog.

    It may be outdated; a commit to it detects that.

    Returns:
        None if the process has not seen it, or the catalog does not keep what was seen.

    Errors are those of `load_for_write`.
    """
    operations = address.operations()
    state = operations.last_seen() if isinstance(operations, KeepsLastSeen) else None
    return None if state is None else _loaded(address, operations, state)


def _loaded(address: TableAddress, operations: TableOperations, state: TableState) -> LoadedTable:
    check_changeable(operations, state)
    return LoadedTable(address, operations, state)
