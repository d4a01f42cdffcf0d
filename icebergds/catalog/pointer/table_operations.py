"""Loads and commits tables of catalogs with pointers (`PointerTableOperations`)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from icebergds.catalog.metadata_files import log_load
from icebergds.catalog.metadata_writing import (
    delete_quietly,
    delete_unlogged,
    write_next_metadata,
)
from icebergds.catalog.next_metadata import next_metadata
from icebergds.catalog.pointer.pointer import MetadataPointer, Pointer, Swap
from icebergds.catalog.pointer.settling import was_applied
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    IcebergError,
    InvalidMetadataError,
    MissingFileError,
    NoSuchTableError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.updates.requirements import TableRequirement, check_requirements
from icebergds.spec.updates.table_updates import TableUpdate


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A commit whose metadata file is written, and to which the pointer is not set yet.

    Attributes:
        base: the state that it replaces.
        pointer: the table's entry with that state.
        location: the new metadata file.
        metadata: what it holds.
    """

    base: TableState
    pointer: Pointer
    location: str
    metadata: TableMetadata


@dataclass(frozen=True, slots=True)
class PointerTableOperations:
    """`TableOperations` of a table whose catalog stores where its metadata file is.

    Attributes:
        name: the table's name in messages.
    """

    pointer: MetadataPointer[TableMetadata]
    io: FileIO
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
        raise InvalidMetadataError(f"table {self.name}: the catalog has no metadata file for it")

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        """Implements `TableOperations.commit`."""
        prepared = self.prepare(base, requirements, updates)
        if prepared is None:
            return base
        try:
            swap = self.pointer.swap(prepared.pointer, prepared.location, prepared.metadata)
            if not self.was_applied(prepared, swap):
                raise self._failure(swap, base) from swap.cause
        except IcebergError as error:
            if not error.outcome_unknown:
                self.discard(prepared)
            raise
        return self.finish(prepared)

    def prepare(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> PreparedCommit | None:
        """Writes the metadata file of a commit; None if the base has the updates already.

        Raises:
            CommitConflictError: the table is not in the state `base`.
            IcebergError: the updates do not fit the table, or the file was not written.
        """
        pointer = self._existing()
        if pointer.metadata_location != base.metadata_location:
            raise self._conflict(base)
        check_requirements(requirements, base.metadata, self.name)
        metadata = next_metadata(base.metadata, base.metadata_location, updates)
        if metadata is base.metadata:
            return None
        location = write_next_metadata(self.io, metadata, base.metadata_location, self.name)
        return PreparedCommit(base, pointer, location, metadata)

    def was_applied(self, prepared: PreparedCommit, swap: Swap) -> bool:
        """Whether a commit was applied, asking the catalog where its answer does not say.

        Raises:
            CommitStateUnknownError: it is unknown.
        """
        return self._was_applied(swap, prepared.base.metadata_location, prepared.location)

    def discard(self, prepared: PreparedCommit) -> None:
        """Deletes the metadata file of a commit that was not applied."""
        delete_quietly(self.io, prepared.location, f"table {self.name}")

    def finish(self, prepared: PreparedCommit) -> TableState:
        """The table after a commit; metadata files that it keeps no longer are deleted."""
        base, metadata = prepared.base, prepared.metadata
        delete_unlogged(base.io, base.metadata, metadata, self.name)
        return TableState(self.name, prepared.location, metadata, self.io)

    def create(self, updates: Sequence[TableUpdate]) -> TableState:
        """Creates the table by applying updates; the namespace is not checked.

        Raises:
            AlreadyExistsError: a table or view with this name exists.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        if self.pointer.find() is not None:
            raise self._exists()
        metadata = next_metadata(None, None, updates)
        new = write_next_metadata(self.io, metadata, None, self.name)
        try:
            self._insert(new, metadata)
        except IcebergError as error:
            if not error.outcome_unknown:
                delete_quietly(self.io, new, f"table {self.name}")
            raise
        return TableState(self.name, new, metadata, self.io)

    def register(self, metadata_location: str) -> TableState:
        """Adds the table that a metadata file describes.

        Raises:
            AlreadyExistsError: a table or view with this name exists.
            CommitStateUnknownError: it is unknown whether the table was registered.
        """
        metadata = self._read(metadata_location)
        self._insert(metadata_location, metadata)
        return TableState(self.name, metadata_location, metadata, self.io)

    def _insert(self, new: str, metadata: TableMetadata) -> None:
        swap = self.pointer.insert(new, metadata)
        if not self._was_applied(swap, None, new):
            raise swap.error or self._exists() from swap.cause

    def _was_applied(self, swap: Swap, base: str | None, new: str) -> bool:
        return was_applied(swap, f"table {self.name}", base, new, self.pointer.find, self._logged)

    def _logged(self, metadata_location: str) -> set[str]:
        return {entry.metadata_file for entry in self._read(metadata_location).metadata_log}

    def _failure(self, swap: Swap, base: TableState) -> IcebergError:
        """The reason why a commit was certainly not applied."""
        if swap.error is not None and not swap.pending:
            return swap.error
        try:
            self._existing()
        except IcebergError as error:
            return error
        return self._conflict(base)

    def _existing(self) -> Pointer:
        pointer = self.pointer.find()
        if pointer is None:
            raise NoSuchTableError(f"table {self.name} does not exist in its catalog")
        return pointer

    def _read(self, metadata_location: str) -> TableMetadata:
        data = self.io.read_bytes(metadata_location)
        return parse_metadata(data, metadata_location, self.io.max_metadata_bytes)

    def _exists(self) -> AlreadyExistsError:
        return AlreadyExistsError(f"table {self.name} already exists")

    def _conflict(self, base: TableState) -> CommitConflictError:
        return CommitConflictError(
            f"table {self.name} was changed by another commit: it is no longer at "
            f"{base.metadata_location}, on which this commit is based"
        )
