"""Commits to tables of an SQL catalog by a compare-and-swap of the row's metadata file.

The names of metadata files are unique, so a row never returns to an earlier one. This makes it
possible to find out, after an error, whether a commit was applied.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from icebergds.catalog.base import Identifier
from icebergds.catalog.metadata_files import log_load
from icebergds.catalog.metadata_writing import (
    delete_quietly,
    delete_unlogged,
    write_next_metadata,
)
from icebergds.catalog.next_metadata import next_metadata
from icebergds.catalog.sql.database import Write
from icebergds.catalog.sql.tables import TableRow, TableRows
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    IcebergError,
    InvalidMetadataError,
    MissingFileError,
    NoSuchTableError,
    StorageError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.updates.requirements import TableRequirement, check_requirements
from icebergds.spec.updates.table_updates import TableUpdate


@dataclass(frozen=True, slots=True)
class SqlTableOperations:
    """`TableOperations` of a table in an SQL catalog.

    Attributes:
        name: the table's name in messages.
    """

    rows: TableRows
    io: FileIO
    identifier: Identifier
    name: str

    def refresh(self) -> TableState:
        """Implements `TableOperations.refresh`.

        Raises:
            MissingFileError: the table's metadata file does not exist.
            InvalidMetadataError: it is damaged, or the catalog has none for the table.
        """
        location = self._existing().metadata_location
        while location is not None:
            try:
                started = time.perf_counter()
                metadata = self._read(location)
                log_load(self.name, location, metadata, started)
                return TableState(self.name, location, metadata, self.io)
            except MissingFileError as error:
                # Newer commits may already have deleted it.
                newer = self._existing().metadata_location
                if newer == location:
                    raise MissingFileError(f"table {self.name}: {error}") from error
                location = newer
        raise InvalidMetadataError(
            f"table {self.name}: the catalog's database has no metadata location for it"
        )

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        """Implements `TableOperations.commit`."""
        if self._existing().metadata_location != base.metadata_location:
            raise self._conflict(base)
        check_requirements(requirements, base.metadata, self.name)
        metadata = next_metadata(base.metadata, base.metadata_location, updates)
        if metadata is base.metadata:
            return base
        new = write_next_metadata(self.io, metadata, base.metadata_location, self.name)
        try:
            write = self.rows.swap(self.identifier, base.metadata_location, new)
        except StorageError:
            # The database was not reached.
            delete_quietly(self.io, new, self.name)
            raise
        if write.rows != 1 and not self._was_applied(write, base.metadata_location, new):
            delete_quietly(self.io, new, self.name)
            raise self._failure(write, base)
        delete_unlogged(base.io, base.metadata, metadata, self.name)
        return TableState(self.name, new, metadata, self.io)

    def create(self, updates: Sequence[TableUpdate]) -> TableState:
        """Creates the table by applying updates; the namespace is not checked.

        Raises:
            AlreadyExistsError: a table or view with this name exists.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        if self.rows.find(self.identifier) is not None:
            raise self._exists()
        metadata = next_metadata(None, None, updates)
        new = write_next_metadata(self.io, metadata, None, self.name)
        try:
            self._insert(new)
        except IcebergError as error:
            if not error.outcome_unknown:
                delete_quietly(self.io, new, self.name)
            raise
        return TableState(self.name, new, metadata, self.io)

    def register(self, metadata_location: str) -> TableState:
        """Adds the table that a metadata file describes.

        Raises:
            AlreadyExistsError: a table or view with this name exists.
            CommitStateUnknownError: it is unknown whether the table was registered.
        """
        metadata = self._read(metadata_location)
        self._insert(metadata_location)
        return TableState(self.name, metadata_location, metadata, self.io)

    def _insert(self, new: str) -> None:
        write = self.rows.insert(self.identifier, new)
        if write.is_duplicate:
            raise self._exists()
        if write.error is not None and not self._was_applied(write, None, new):
            self.rows.database.require(write, f"create table {self.name}")

    def _was_applied(self, write: Write, base: str | None, new: str) -> bool:
        """Whether a swap was applied although it seems to have failed.

        Args:
            base: the metadata file that was to be replaced.
            new: the metadata file that was to replace it.

        Raises:
            CommitStateUnknownError: it is unknown.
        """
        if not write.sent or (write.error is None and write.rows == 0):
            return False
        database = self.rows.database
        try:
            row = self.rows.find(self.identifier)
            if row is not None and self._was_current(row, new):
                return True
            if write.ended or (row is not None and self._was_replaced(row, base)):
                return False
        except Exception as error:
            raise self._unknown(new, error) from database.cause(write.error)
        reason = database.reason(write.error)
        raise self._unknown(new, reason) from database.cause(write.error)

    def _was_current(self, row: TableRow, location: str) -> bool:
        """Whether a metadata file is or was the table's current one."""
        if location in (row.metadata_location, row.previous_metadata_location):
            return True
        return location in self._logged(row)

    def _was_replaced(self, row: TableRow, base: str | None) -> bool:
        """Whether another commit replaced `base`, so that this one can no longer be applied.

        The log must reach back to it: what came before the log is unknown.
        """
        return base is not None and row.metadata_location != base and base in self._logged(row)

    def _logged(self, row: TableRow) -> set[str]:
        if row.metadata_location is None:
            return set()
        log = self._read(row.metadata_location).metadata_log
        return {entry.metadata_file for entry in log}

    def _failure(self, write: Write, base: TableState) -> IcebergError:
        """The reason why a commit was certainly not applied."""
        if write.error is None or not write.ended:
            try:
                self._existing()
            except IcebergError as error:
                return error
            return self._conflict(base)
        database = self.rows.database
        if write.is_transient:
            return CommitConflictError(
                f"table {self.name} was not changed, because the catalog's database is too busy or "
                f"other commits were running: {database.reason(write.error)}"
            )
        return database.failure(f"refused to change table {self.name}", write.error)

    def _existing(self) -> TableRow:
        row = self.rows.find(self.identifier)
        if row is None:
            raise NoSuchTableError(f"table {self.name} does not exist in its catalog")
        return row

    def _read(self, metadata_location: str) -> TableMetadata:
        data = self.io.read_bytes(metadata_location)
        return parse_metadata(data, metadata_location, self.io.max_metadata_bytes)

    def _conflict(self, base: TableState) -> CommitConflictError:
        return CommitConflictError(
            f"table {self.name} was changed by another commit: it is no longer at "
            f"{base.metadata_location}, on which this commit is based"
        )

    def _exists(self) -> AlreadyExistsError:
        return AlreadyExistsError(f"table {self.name} already exists, or a view with that name")

    def _unknown(self, new: str, why: object) -> CommitStateUnknownError:
        return CommitStateUnknownError(
            f"table {self.name}: it is unknown whether {new} was committed ({why}); check whether "
            "it is in the table's metadata log before trying again"
        )
