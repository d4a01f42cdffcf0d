"""Loads and commits views of catalogs with pointers (`PointerViewOperations`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icebergds.catalog.metadata_writing import (
    delete_quietly,
    next_metadata_location,
    write_metadata_file,
)
from icebergds.catalog.pointer.pointer import MetadataPointer, Pointer
from icebergds.catalog.pointer.settling import was_applied
from icebergds.catalog.views import ViewState
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    IcebergError,
    InvalidMetadataError,
    NoSuchViewError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.table_properties import METADATA_COMPRESSION, METADATA_PATH, Property
from icebergds.spec.values.dates import now_ms
from icebergds.spec.views.json import parse_view_metadata, serialise_view_metadata
from icebergds.spec.views.metadata import ViewMetadata
from icebergds.spec.views.updates import ViewUpdate, apply_view_updates


@dataclass(frozen=True, slots=True)
class PointerViewOperations:
    """Loads, creates and commits a view whose catalog stores where its metadata file is.

    Attributes:
        name: the view's name in messages.
    """

    pointer: MetadataPointer[ViewMetadata]
    io: FileIO
    name: str

    def refresh(self) -> ViewState:
        """The view as it is now.

        Raises:
            NoSuchViewError: it does not exist (any more).
            MissingFileError: its metadata file does not exist.
            InvalidMetadataError: that is damaged, or the catalog has none for the view.
        """
        location = self._existing().metadata_location
        if location is None:
            raise InvalidMetadataError(f"view {self.name}: the catalog has no metadata file for it")
        data = self.io.read_bytes(location)
        metadata = parse_view_metadata(data, location, self.io.max_metadata_bytes)
        return ViewState(self.name, location, metadata)

    def create(self, updates: Sequence[ViewUpdate]) -> ViewState:
        """Implements `ViewCatalog.create_view`; the namespace is not checked."""
        if self.pointer.find() is not None:
            raise self._exists()
        metadata = apply_view_updates(None, updates, now_ms=now_ms())
        new = self._write(metadata, None)
        try:
            swap = self.pointer.insert(new, metadata)
            if not was_applied(swap, f"view {self.name}", None, new, self.pointer.find, _no_log):
                raise swap.error or self._exists() from swap.cause
        except IcebergError as error:
            self._discard(new, error)
            raise
        return ViewState(self.name, new, metadata)

    def commit(self, base: ViewState, updates: Sequence[ViewUpdate]) -> ViewState:
        """Implements `ViewCatalog.commit_view`."""
        pointer = self._existing()
        if pointer.metadata_location != base.metadata_location:
            raise self._conflict(base)
        metadata = apply_view_updates(base.metadata, updates, now_ms=now_ms())
        if metadata is base.metadata:
            return base
        before = base.metadata_location
        new = self._write(metadata, before)
        try:
            swap = self.pointer.swap(pointer, new, metadata)
            if not was_applied(swap, f"view {self.name}", before, new, self.pointer.find, _no_log):
                raise swap.error or self._conflict(base) from swap.cause
        except IcebergError as error:
            self._discard(new, error)
            raise
        return ViewState(self.name, new, metadata)

    def _write(self, metadata: ViewMetadata, base_location: str | None) -> str:
        # As Java, which compresses the metadata of views unless they say otherwise.
        compression = Property(METADATA_COMPRESSION.name, METADATA_COMPRESSION.kind, "gzip")
        compress = compression.of(metadata.properties) == "gzip"
        path = METADATA_PATH.of(metadata.properties)
        directory = path.rstrip("/") if path else f"{metadata.location}/metadata"
        location = next_metadata_location(directory, base_location, compress)
        data = serialise_view_metadata(metadata, compress)
        write_metadata_file(self.io, location, data, f"view {self.name}")
        return location

    def _discard(self, new: str, error: IcebergError) -> None:
        if not error.outcome_unknown:
            delete_quietly(self.io, new, f"view {self.name}")

    def _existing(self) -> Pointer:
        pointer = self.pointer.find()
        if pointer is None:
            raise NoSuchViewError(f"view {self.name} does not exist in its catalog")
        return pointer

    def _exists(self) -> AlreadyExistsError:
        return AlreadyExistsError(f"view {self.name} already exists")

    def _conflict(self, base: ViewState) -> CommitConflictError:
        return CommitConflictError(
            f"view {self.name} was changed by another commit: it is no longer at "
            f"{base.metadata_location}, on which this commit is based"
        )


def _no_log(_: str) -> set[str]:
    """The metadata of a view lists no earlier files."""
    return set()
