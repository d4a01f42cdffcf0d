"""Loads and commits views of catalogs with pointers (`PointerViewOperations`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from icebergds.catalog.metadata_writing import next_metadata_location, write_metadata_file
from icebergds.catalog.pointer.entry import EntryOperations
from icebergds.catalog.views import ViewState
from icebergds.errors import IcebergError, InvalidMetadataError, NoSuchViewError, NotFoundError
from icebergds.spec.table_properties import METADATA_COMPRESSION, METADATA_PATH, Property
from icebergds.spec.values.dates import now_ms
from icebergds.spec.views.json import parse_view_metadata, serialise_view_metadata
from icebergds.spec.views.metadata import ViewMetadata
from icebergds.spec.views.updates import ViewUpdate, apply_view_updates


@dataclass(frozen=True, slots=True)
class PointerViewOperations(EntryOperations[ViewMetadata]):
    """Loads, creates and commits a view whose catalog stores its metadata file's location."""

    kind: ClassVar[str] = "view"
    missing: ClassVar[type[NotFoundError]] = NoSuchViewError

    def refresh(self) -> ViewState:
        """The current state of the view.

        Raises:
            NoSuchViewError: it does not exist (any more).
            MissingFileError: its metadata file does not exist.
            InvalidMetadataError: that is damaged, or the catalog has none for the view.
        """
        location = self.existing().metadata_location
        if location is None:
            raise InvalidMetadataError(f"view {self.name}: the catalog has no metadata file for it")
        return ViewState(self.name, location, self._read(location))

    def register(self, metadata_location: str) -> ViewState:
        """Implements `RegisteringViews.register_view`; the namespace is not checked."""
        # Otherwise an entry with this file could be mistaken for that of a retried request.
        self._require_free()
        metadata = self._read(metadata_location)
        self._insert(metadata_location, metadata)
        return ViewState(self.name, metadata_location, metadata)

    def create(self, updates: Sequence[ViewUpdate]) -> ViewState:
        """Implements `ViewCatalog.create_view`; the namespace is not checked."""
        self._require_free()
        metadata = apply_view_updates(None, updates, now_ms=now_ms())
        new = self._write(metadata, None)
        try:
            self._insert(new, metadata)
        except IcebergError as error:
            self._discard(new, error)
            raise
        return ViewState(self.name, new, metadata)

    def commit(self, base: ViewState, updates: Sequence[ViewUpdate]) -> ViewState:
        """Implements `ViewCatalog.commit_view`."""
        pointer = self.existing()
        if pointer.metadata_location != base.metadata_location:
            raise self._conflict(base.metadata_location)
        metadata = apply_view_updates(base.metadata, updates, now_ms=now_ms())
        if metadata is base.metadata:
            return base
        before = base.metadata_location
        new = self._write(metadata, before)
        try:
            swap = self.pointer.swap(pointer, new, metadata)
            if not self._was_set(swap, before, new):
                raise swap.error or self._conflict(before) from swap.cause
        except IcebergError as error:
            self._discard(new, error)
            raise
        return ViewState(self.name, new, metadata)

    def _read(self, location: str) -> ViewMetadata:
        data = self.io.read_bytes(location)
        return parse_view_metadata(data, location, self.io.max_metadata_bytes)

    def _write(self, metadata: ViewMetadata, base_location: str | None) -> str:
        # Like Java, which compresses the metadata of views by default.
        compression = Property(METADATA_COMPRESSION.name, METADATA_COMPRESSION.kind, "gzip")
        compress = compression.of(metadata.properties) == "gzip"
        path = METADATA_PATH.of(metadata.properties)
        directory = path.rstrip("/") if path else f"{metadata.location}/metadata"
        location = next_metadata_location(directory, base_location, compress)
        data = serialise_view_metadata(metadata, compress)
        write_metadata_file(self.io, location, data, f"view {self.name}")
        return location
