"""Opens the next files of a task while the current one is read, where storage has latency."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Generic, TypeVar

from icebergds.io.threads import WAITING_THREADS, waiting_threads

_T = TypeVar("_T")


class ReadAhead(Generic[_T]):
    """Files that are opened in the background, in the order in which they will be taken.

    Args:
        files: what identifies each file, and what opens it.
    """

    def __init__(self, files: Iterable[tuple[object, Callable[[], _T]]]) -> None:
        self._coming = deque(files)
        self._opening: deque[tuple[object, Future[_T]]] = deque()
        self._lock = threading.Lock()
        self._fill()

    def take(self, identity: object) -> _T | None:
        """An opened file, or None if it was not to be opened; files before it are dropped.

        Errors are those of what opens it.
        """
        with self._lock:
            if all(identity != each for each, _ in self._opening):
                return None
            while (taken := self._opening.popleft())[0] != identity:
                taken[1].cancel()
            self._fill()
        return taken[1].result()

    def _fill(self) -> None:
        while self._coming and len(self._opening) < WAITING_THREADS:
            identity, opened = self._coming.popleft()
            self._opening.append((identity, waiting_threads().submit(opened)))
