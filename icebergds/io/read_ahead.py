"""Opens or reads the next files while the current one is used, where storage has latency."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Generic, TypeVar

from icebergds.io.threads import WAITING_THREADS, waiting_threads

_T = TypeVar("_T")

_MOST_PASSED = 4


class ReadAhead(Generic[_T]):
    """Files that are opened in the background, in the order in which they will be taken.

    Args:
        files: what identifies each file, and what opens it.
        most: how many are open at a time before they are taken.
    """

    def __init__(
        self, files: Iterable[tuple[object, Callable[[], _T]]], most: int = WAITING_THREADS
    ) -> None:
        self._most = most
        self._coming = deque(files)
        self._opening: deque[tuple[object, Future[_T]]] = deque()
        self._lock = threading.Lock()
        self._fill()

    def take(self, identity: object) -> _T | None:
        """An opened file, or None if it was not to be opened.

        Of the files before it, only the last ones are kept, for threads that take files out of
        their order. Errors are those of what opens it.
        """
        with self._lock:
            if all(identity != each for each, _ in self._opening):
                return None
            at = next(at for at, (each, _) in enumerate(self._opening) if each == identity)
            taken = self._opening[at][1]
            del self._opening[at]
            for _ in range(at - _MOST_PASSED):
                self._opening.popleft()[1].cancel()
            self._fill()
        return taken.result()

    def _fill(self) -> None:
        while self._coming and len(self._opening) < self._most:
            identity, opened = self._coming.popleft()
            self._opening.append((identity, waiting_threads().submit(opened)))
