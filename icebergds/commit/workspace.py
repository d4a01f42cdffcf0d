"""Writes the files of one commit, and reuses results across its attempts."""

from __future__ import annotations

import itertools
import logging
import secrets
import uuid
from collections import deque
from collections.abc import Callable, Collection, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from icebergds.encryption.gcm_stream import encrypt_bytes
from icebergds.encryption.key_metadata import KeyMetadata, new_key_metadata
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO
from icebergds.io.locations import undeleted_level
from icebergds.io.near import start_writing
from icebergds.spec.metadata import TableMetadata

_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)
# The most files to write in parallel, as their bytes are in memory.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A manifest or manifest list of a commit.

    Attributes:
        length: as stored, in bytes.
        key: None if the file is not encrypted.
    """

    location: str
    length: int
    key: KeyMetadata | None

    @property
    def key_metadata(self) -> bytes | None:
        """What lists the file has this of its key."""
        return None if self.key is None else self.key.serialized()


class Workspace:
    """The files and cached results of a commit, shared by its attempts.

    In storage with latency, files are written in the background, in parallel; `settle` waits.

    Args:
        key_length: of the keys that files are encrypted with, in bytes; None writes plain files.

    Attributes:
        snapshot_id: id of the new snapshot, the same for all attempts; positive, and not used in
            `metadata`.
        commit_uuid: part of the names of the commit's files.
    """

    def __init__(self, io: FileIO, metadata: TableMetadata, key_length: int | None = None) -> None:
        self.key_length = key_length
        self.snapshot_id = _new_snapshot_id(metadata)
        self.commit_uuid = str(uuid.uuid4())
        self._io = io
        self._manifest_numbers = itertools.count()
        self._list_numbers = itertools.count(1)
        self._cache: dict[Hashable, Any] = {}
        self._written: list[str] = []
        self._writing: deque[tuple[str, str, Callable[[], None]]] = deque()
        self._files_of_lists: dict[str, frozenset[str]] = {}
        self._is_over = False

    def once(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Calls `make` for a new key; returns the cached result for a known one."""
        if key not in self._cache:
            self._cache[key] = make()
        return cast(_T, self._cache[key])

    def write_manifest(self, metadata: TableMetadata, data: bytes) -> WrittenFile:
        """Starts to write a manifest under a new name."""
        name = f"{self.commit_uuid}-m{next(self._manifest_numbers)}.avro"
        return self._write(f"{metadata.metadata_directory}/{name}", data, "manifest")

    def write_manifest_list(
        self, metadata: TableMetadata, data: bytes, manifests: Collection[str]
    ) -> WrittenFile:
        """Starts to write the manifest list of an attempt."""
        name = f"snap-{self.snapshot_id}-{next(self._list_numbers)}-{self.commit_uuid}.avro"
        written = self._write(f"{metadata.metadata_directory}/{name}", data, "manifest list")
        self._files_of_lists[written.location] = frozenset((written.location, *manifests))
        return written

    def settle(self) -> None:
        """Waits until all files are written, before they are read or referred to.

        Raises:
            StorageError: one could not be written.
        """
        while self._writing:
            self._settle_oldest()

    def delete_unused(self, manifest_list: str | None) -> None:
        """Deletes the files of all attempts but the committed one, given its manifest list.

        Never raises: the commit has succeeded, and leftover files do no harm.
        """
        kept = self._files_of_lists.get(manifest_list or "")
        if kept is not None:
            self._delete([location for location in self._written if location not in kept])

    def delete_all(self) -> None:
        """Deletes all written files, because nothing was committed. Never raises."""
        self._is_over = True
        while self._writing:
            # What is still being written would appear after it was deleted.
            with suppress(Exception):
                self._settle_oldest()
        self._delete(self._written)

    def _write(self, location: str, data: bytes, kind: str) -> WrittenFile:
        key = None
        if self.key_length is not None:
            key = new_key_metadata(self.key_length)
            data = encrypt_bytes(data, key)
            key = key.of_length(len(data))
        # Recorded first: a write that fails may leave a partial file.
        self._written.append(location)
        with storage_failures(f"writing the {kind}", location):
            self._writing.append((kind, location, start_writing(self._io, location, data)))
        if self._is_over:
            # By a thread that Ctrl-C did not wait for.
            self._delete([location])
        while len(self._writing) > _AT_ONCE:
            self._settle_oldest()
        return WrittenFile(location, len(data), key)

    def _settle_oldest(self) -> None:
        kind, location, wait = self._writing.popleft()
        with storage_failures(f"writing the {kind}", location):
            wait()

    def _delete(self, locations: list[str]) -> None:
        if not locations:
            return
        try:
            self._io.delete_all(locations)
        except Exception as error:
            level, count = undeleted_level(locations[0]), len(locations)
            _LOG.log(level, "up to %d files of a commit were not deleted: %s", count, error)


def _new_snapshot_id(metadata: TableMetadata) -> int:
    while True:
        snapshot_id = secrets.randbits(63)
        if snapshot_id and snapshot_id not in metadata.snapshots_by_id:
            return snapshot_id
