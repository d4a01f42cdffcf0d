"""Keeps the planned files of a stream's snapshots for later calls in the same process."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from icebergds.scan.plan.files import PlannedFile

_MAX_FILES = 100_000

SnapshotPart: TypeAlias = tuple[int, bool]
"""A snapshot id, and whether all files of the snapshot are read, or only its changes."""


class StreamFiles:
    """Planned files by snapshot, so that a snapshot read in several batches is planned once.

    Snapshots never change, so the files are never stale. All are planned with one schema and one
    filter.

    Args:
        max_files: snapshots that would exceed it are planned each time.
    """

    def __init__(self, max_files: int = _MAX_FILES) -> None:
        self._left = max_files
        self._files: dict[SnapshotPart, list[PlannedFile]] = {}

    def get(self, part: SnapshotPart, plan: Callable[[], list[PlannedFile]]) -> list[PlannedFile]:
        """The files of a snapshot, kept here or planned by `plan`."""
        found = self._files.get(part)
        if found is None:
            found = plan()
            if len(found) <= self._left:
                self._left -= len(found)
                self._files[part] = found
        return found

    def keep_only(self, parts: Collection[SnapshotPart]) -> None:
        """Forgets all other snapshots."""
        for part in self._files.keys() - set(parts):
            self._left += len(self._files.pop(part))
