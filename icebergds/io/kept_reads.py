"""Keeps the bytes of immutable files for as long as one statement runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

MAX_KEPT_BYTES = 256 * 1024 * 1024


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
