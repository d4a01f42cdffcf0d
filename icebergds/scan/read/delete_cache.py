"""Caches deletes for the tasks of a worker process, with a limit in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

_V = TypeVar("_V")

DEFAULT_MAX_BYTES = 512 * 1024 * 1024


class DeleteCache:
    """An LRU cache of immutable values, limited by their memory. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._loading: dict[Hashable, Future[Any]] = {}
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """Memory that the cached values use, in bytes."""
        return self._nbytes

    def __contains__(self, key: Hashable) -> bool:
        """Whether a value is cached now."""
        with self._lock:
            return key in self._kept

    def get_or_load(
        self,
        key: Hashable,
        loader: Callable[[], _V],
        size_of: Callable[[_V], int],
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> _V:
        """Returns the value of a key; loads it if it is not cached.

        Threads that request the same key at the same time share one load and its outcome. An error
        of `loader` is raised and not cached.

        Args:
            key: includes everything that the value depends on.
            loader: loads the value; may request other keys.
            size_of: memory that a value uses, in bytes.
            max_bytes: limit for all cached values from this call on. A larger value is returned
                without being cached, and evicts nothing.
        """
        while True:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    found: _V = self._kept[key][0]
                    return found
                future = self._loading.get(key)
                is_ours = future is None
                if future is None:
                    future = self._loading[key] = Future()
            if is_ours:
                return self._load(key, loader, size_of, max_bytes, future)
            try:
                shared: _V = future.result()
                return shared
            except CancelledError:
                # The loading thread was interrupted: try again.
                continue

    def clear(self) -> None:
        """Evicts all values."""
        with self._lock:
            self._kept.clear()
            self._nbytes = 0

    def _load(
        self,
        key: Hashable,
        loader: Callable[[], _V],
        size_of: Callable[[_V], int],
        max_bytes: int,
        future: Future[Any],
    ) -> _V:
        try:
            value = loader()
            size = size_of(value)
        except BaseException as error:
            with self._lock:
                del self._loading[key]
            if isinstance(error, Exception):
                future.set_exception(error)
            else:
                future.cancel()
            raise
        with self._lock:
            del self._loading[key]
            self._keep(key, value, size, max_bytes)
        future.set_result(value)
        return value

    def _keep(self, key: Hashable, value: Any, size: int, max_bytes: int) -> None:
        if size <= max_bytes:
            self._kept[key] = (value, size)
            self._nbytes += size
        while self._nbytes > max_bytes:
            _, (_, freed) = self._kept.popitem(last=False)
            self._nbytes -= freed


DELETES = DeleteCache()
"""The cache of this process."""
