"""Keeps the bytes of immutable files: while one statement runs, and the most recent ones longer."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from icebergds.io.storage_options import keeps_metadata

MAX_KEPT_BYTES = 256 * 1024 * 1024
MAX_RECENT_BYTES = 64 * 1024 * 1024
# One large file must not displace all others.
_MAX_RECENT_FILE = 8 * 1024 * 1024
# The name has a UUID, so no writer gives it to another manifest, list or version of a table.
_UNCHANGING = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}[^/]*\.(?:avro|metadata\.json(?:\.gz)?)$"
)


class KeptReads:
    """Files by location, up to a number of bytes in all. Threads may share it.

    Args:
        max_bytes: files that would exceed it are read again each time.
    """

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._left = max_bytes
        self._files: dict[str, bytes] = {}
        self._reading: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def has(self, path: str) -> bool:
        """Whether a file is kept."""
        return path in self._files

    def get(self, path: str, read: Callable[[], bytes]) -> bytes:
        """The bytes of a file, from here or by `read`; waits for another thread that reads it."""
        kept = self._files.get(path)
        if kept is not None:
            return kept
        with self._lock:
            reading = self._reading.setdefault(path, threading.Lock())
        with reading:
            kept = self._files.get(path)
            if kept is not None:
                return kept
            data = read()
            with self._lock:
                if len(data) <= self._left:
                    self._left -= len(data)
                    self._files[path] = data
            return data


@dataclass(frozen=True, slots=True)
class RecentReads:
    """Files of metadata that this process read or wrote lately, where storage has latency.

    Only files whose names say that they never change are kept, and only for whom has the same
    properties: who lacks them may not be allowed to read the files.
    """

    properties: frozenset[tuple[str, str]] = field(repr=False)

    def has(self, path: str) -> bool:
        """Whether a file is kept."""
        return _recent.find((self, path)) is not None

    def get(self, path: str, read: Callable[[], bytes]) -> bytes:
        """The bytes of a file, from here or by `read`."""
        data = _recent.find((self, path))
        if data is None:
            data = read()
            self.put(path, data)
        return data

    def put(self, path: str, data: bytes) -> None:
        """Keeps the bytes of a file, if it is one that never changes."""
        if len(data) <= _MAX_RECENT_FILE and _UNCHANGING.search(path):
            _recent.put((self, path), data)

    def drop(self, paths: Iterable[str]) -> None:
        """Keeps files no longer, as they are deleted."""
        for path in paths:
            _recent.drop((self, path))


def recent_reads(properties: Mapping[str, str]) -> RecentReads | None:
    """What is kept for a catalog's properties, or those of a storage; None if they forbid it.

    Raises:
        InvalidOptionError: `io.manifest.cache-enabled` is neither true nor false.
    """
    is_on = keeps_metadata(properties)
    return RecentReads(frozenset(properties.items())) if is_on else None


class _Recent:
    """The files of all properties; the least recently used make room."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        self._files: OrderedDict[tuple[RecentReads, str], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: tuple[RecentReads, str]) -> bytes | None:
        with self._lock:
            data = self._files.get(key)
            if data is not None:
                self._files.move_to_end(key)
        return data

    def put(self, key: tuple[RecentReads, str], data: bytes) -> None:
        with self._lock:
            self._left += len(self._files.pop(key, b"")) - len(data)
            self._files[key] = data
            while self._left < 0:
                _, oldest = self._files.popitem(last=False)
                self._left += len(oldest)

    def drop(self, key: tuple[RecentReads, str]) -> None:
        with self._lock:
            self._left += len(self._files.pop(key, b""))


_recent = _Recent(MAX_RECENT_BYTES)
