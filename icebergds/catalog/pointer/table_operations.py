"""Loads and commits tables of catalogs with pointers (`PointerTableOperations`)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from icebergds.catalog.metadata_files import log_load
from icebergds.catalog.metadata_writing import delete_unlogged, next_metadata, write_next_metadata
from icebergds.catalog.pointer.entry import EntryOperations
from icebergds.catalog.pointer.pointer import ChecksMetadata, Pointer, Swap
from icebergds.commit.operations import TableState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    FormatError,
    IcebergError,
    InvalidMetadataError,
    MissingFileError,
    NoSuchTableError,
    NotFoundError,
)
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.updates.requirements import TableRequirement, check_requirements
from icebergds.spec.updates.table_updates import TableUpdate


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A commit whose metadata file has been written, but whose pointer has not been set yet.

    Attributes:
        base: the state that it replaces.
        pointer: the table's entry with that state.
        location: the new metadata file.
        metadata: its content.
    """

    base: TableState
    pointer: Pointer
    location: str
    metadata: TableMetadata


@dataclass(frozen=True, slots=True)
class PointerTableOperations(EntryOperations[TableMetadata]):
    """Implements `TableOperations` for catalogs that store the location of the metadata file."""

    kind: ClassVar[str] = "table"
    missing: ClassVar[type[NotFoundError]] = NoSuchTableError

    def refresh(self) -> TableState:
        """Implements `TableOperations.refresh`.

        Raises:
            MissingFileError: the table's metadata file does not exist.
            InvalidMetadataError: it is damaged, or the catalog has none for the table.
        """
        return self._state_at(self.existing())

    def last_state(self, found: Pointer) -> TableState | None:
        """The state of a table to drop; None if its metadata is missing or damaged."""
        try:
            return self._state_at(found)
        except (FormatError, MissingFileError):
            return None

    def _state_at(self, found: Pointer) -> TableState:
        while (location := found.metadata_location) is not None:
            try:
                started = time.perf_counter()
                data = self.io.read_bytes(location)
                metadata = parse_metadata(data, location, self.io.max_metadata_bytes)
                if isinstance(self.pointer, ChecksMetadata):
                    self.pointer.check_metadata(found, data, metadata)
                log_load(self.name, location, metadata, started)
                return TableState(self.name, location, metadata, self.io)
            except MissingFileError as error:
                # Newer commits may already have deleted it.
                found = self.existing()
                if found.metadata_location == location:
                    raise MissingFileError(f"table {self.name}: {error}") from error
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
            self.discard(prepared, error)
            raise
        return self.finish(prepared)

    def prepare(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> PreparedCommit | None:
        """Writes the metadata file of a commit; None if the base already has the updates.

        Raises:
            CommitConflictError: the table is not in the state `base`.
            IcebergError: the updates do not fit the table, or the file was not written.
        """
        pointer = self.existing()
        if pointer.metadata_location != base.metadata_location:
            raise self._conflict(base.metadata_location)
        check_requirements(requirements, base.metadata, self.name)
        metadata = next_metadata(base.metadata, base.metadata_location, updates)
        if metadata is base.metadata:
            return None
        location = write_next_metadata(self.io, metadata, base.metadata_location, self.name)
        return PreparedCommit(base, pointer, location, metadata)

    def was_applied(self, prepared: PreparedCommit, swap: Swap) -> bool:
        """Whether a commit was applied; asks the catalog if its answer does not say.

        Raises:
            CommitStateUnknownError: it is unknown.
        """
        return self._was_set(swap, prepared.base.metadata_location, prepared.location)

    def discard(self, prepared: PreparedCommit, error: IcebergError) -> None:
        """Deletes the metadata file of a failed commit, if it was certainly not applied."""
        self._discard(prepared.location, error)

    def finish(self, prepared: PreparedCommit) -> TableState:
        """The table after a commit; deletes the metadata files that it no longer keeps."""
        base, metadata = prepared.base, prepared.metadata
        delete_unlogged(base.io, base.metadata, metadata, self.name)
        return TableState(self.name, prepared.location, metadata, self.io)

    def create(self, updates: Sequence[TableUpdate]) -> TableState:
        """Creates the table by applying updates; the namespace is not checked.

        Raises:
            AlreadyExistsError: a table or view with this name exists.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        self._require_free()
        metadata = next_metadata(None, None, updates)
        new = write_next_metadata(self.io, metadata, None, self.name)
        try:
            self._insert(new, metadata)
        except IcebergError as error:
            self._discard(new, error)
            raise
        return TableState(self.name, new, metadata, self.io)

    def register(self, metadata_location: str) -> TableState:
        """Adds the table that a metadata file describes.

        Raises:
            AlreadyExistsError: a table or view with this name exists.
            CommitStateUnknownError: it is unknown whether the table was registered.
        """
        # Otherwise an entry with this file could be mistaken for that of a retried request.
        self._require_free()
        metadata = self._read(metadata_location)
        self._insert(metadata_location, metadata)
        return TableState(self.name, metadata_location, metadata, self.io)

    def register_over(self, metadata_location: str) -> TableState:
        """Sets the entry to the table that a metadata file describes, or adds it.

        Raises:
            AlreadyExistsError: a view, or a table of another format, has this name.
            InvalidMetadataError: the entry has no metadata file, so that it cannot be compared.
            CommitConflictError: others changed the entry each time; it was not set.
            CommitStateUnknownError: it is unknown whether it was set.
        """
        metadata = self._read(metadata_location)
        registered = TableState(self.name, metadata_location, metadata, self.io)
        for _ in range(_ATTEMPTS):
            found = self._found()
            if found is None:
                try:
                    self._insert(metadata_location, metadata)
                except AlreadyExistsError:
                    if self._found() is None:
                        raise
                    continue
                return registered
            base = self.kept_location(found)
            if base == metadata_location:
                return registered
            swap = self.pointer.swap(found, metadata_location, metadata)
            if self._is_registered(swap, base, metadata_location):
                return registered
            if swap.error is not None and not isinstance(swap.error, CommitConflictError):
                raise swap.error from swap.cause
        raise CommitConflictError(
            f"table {self.name} was not registered: other commits changed it {_ATTEMPTS} times "
            "meanwhile; try again"
        )

    def kept_location(self, found: Pointer) -> str:
        """The metadata file of an entry. Raises InvalidMetadataError if it has none."""
        if found.metadata_location is None:
            raise InvalidMetadataError(
                f"table {self.name}: the catalog has no metadata file for it; drop it with "
                "drop_table"
            )
        return found.metadata_location

    def _is_registered(self, swap: Swap, base: str, new: str) -> bool:
        """Whether the entry was set to an existing metadata file; asks the catalog if need be.

        That file may be older than the base, so it proves nothing that it is in the log of the
        current one: it must come after the base there, or the base is not there.

        Raises:
            CommitStateUnknownError: it is unknown.
        """
        if swap.applied or not swap.uncertain:
            return swap.applied
        try:
            pointer = self.pointer.find()
            current = None if pointer is None else pointer.metadata_location
            files = [] if current is None or current == base else self._log(current)
        except Exception as error:
            raise self._unknown(new, error) from swap.cause
        files = [*files, *([] if current is None else [current])]
        if base in files:
            later = files[len(files) - files[::-1].index(base) :]
            if new in later:
                return True
            if not swap.pending:
                return False
        elif new in files:
            return True
        raise self._unknown(new, swap.reason) from swap.cause

    def _found(self) -> Pointer | None:
        """The entry, if there is one. Raises AlreadyExistsError if it is of another format."""
        try:
            return self.pointer.find()
        except NoSuchTableError as error:
            raise AlreadyExistsError(f"{error}; it has the name of the table to register") from None

    def _log(self, metadata_location: str) -> list[str]:
        return [entry.metadata_file for entry in self._read(metadata_location).metadata_log]

    def _logged(self, metadata_location: str) -> set[str]:
        return set(self._log(metadata_location))

    def _failure(self, swap: Swap, base: TableState) -> IcebergError:
        """The reason why a commit was certainly not applied."""
        if swap.error is not None and not swap.pending:
            return swap.error
        try:
            self.existing()
        except IcebergError as error:
            return error
        return self._conflict(base.metadata_location)

    def _read(self, metadata_location: str) -> TableMetadata:
        data = self.io.read_bytes(metadata_location)
        return parse_metadata(data, metadata_location, self.io.max_metadata_bytes)


# Attempts to register a table that others commit to.
_ATTEMPTS = 20
