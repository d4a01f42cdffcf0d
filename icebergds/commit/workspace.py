"""The files that one commit writes, over all of its attempts."""

from __future__ import annotations

import itertools
import logging
import secrets
import uuid
from collections.abc import Callable, Collection, Hashable
from typing import Any, TypeVar, cast

from icebergds.io.fileio import FileIO
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import METADATA_PATH

_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)


class Workspace:
    """What a commit has written and found out, kept from one attempt to the next.

    Attributes:
        snapshot_id: of the snapshot that is committed, whichever attempt succeeds; positive, and
            not among those of `metadata`.
        commit_uuid: stands in the names of the commit's files.
    """

    def __init__(self, io: FileIO, metadata: TableMetadata) -> None:
        self.snapshot_id = _new_snapshot_id(metadata)
        self.commit_uuid = str(uuid.uuid4())
        self._io = io
        self._manifest_numbers = itertools.count()
        self._list_numbers = itertools.count(1)
        self._known: dict[Hashable, Any] = {}
        self._written: list[str] = []
        self._files_of_lists: dict[str, frozenset[str]] = {}

    def once(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What `make` returned when the key was first asked for."""
        if key not in self._known:
            self._known[key] = make()
        return cast(_T, self._known[key])

    def write_manifest(self, metadata: TableMetadata, data: bytes) -> str:
        """Writes a manifest under a new name and returns its location."""
        name = f"{self.commit_uuid}-m{next(self._manifest_numbers)}.avro"
        return self._write(f"{metadata_directory(metadata)}/{name}", data)

    def write_manifest_list(
        self, metadata: TableMetadata, data: bytes, manifests: Collection[str]
    ) -> str:
        """Writes an attempt's list of `manifests` and returns its location."""
        name = f"snap-{self.snapshot_id}-{next(self._list_numbers)}-{self.commit_uuid}.avro"
        location = self._write(f"{metadata_directory(metadata)}/{name}", data)
        self._files_of_lists[location] = frozenset((location, *manifests))
        return location

    def delete_unused(self, manifest_list: str | None) -> None:
        """Deletes what is not of the attempt that was committed, whose list this is.

        Never raises: the commit has succeeded, and what stays behind harms nobody.
        """
        kept = self._files_of_lists.get(manifest_list or "")
        if kept is not None:
            self._delete([location for location in self._written if location not in kept])

    def delete_all(self) -> None:
        """Deletes everything, since nothing was committed. Never raises."""
        self._delete(self._written)

    def _write(self, location: str, data: bytes) -> str:
        # Noted first: a write that fails may have left something.
        self._written.append(location)
        self._io.write(location, data)
        return location

    def _delete(self, locations: list[str]) -> None:
        if not locations:
            return
        try:
            self._io.delete_all(locations)
        except Exception as error:
            _LOG.warning("%d files of a commit were left behind: %s", len(locations), error)


def metadata_directory(metadata: TableMetadata) -> str:
    """Where a table's manifests and manifest lists go."""
    own = metadata.properties.get(METADATA_PATH)
    return (own or f"{metadata.location.rstrip('/')}/metadata").rstrip("/")


def _new_snapshot_id(metadata: TableMetadata) -> int:
    while True:
        snapshot_id = secrets.randbits(63)
        if snapshot_id and snapshot_id not in metadata.snapshots_by_id:
            return snapshot_id
