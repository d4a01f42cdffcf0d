"""Keeps recently parsed documents, so that the same bytes are parsed once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_Value = TypeVar("_Value")
_GZIP = b"\x1f\x8b"
_COMPRESSION = 20


class RecentDocuments(Generic[_Value]):
    """Values by the bytes that they were parsed from; the least recently used make room.

    Threads may share it. Values must not be changed.

    Args:
        most_bytes: how many bytes of documents are kept, decompressed; a larger one is not.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._values: OrderedDict[tuple[bytes, int | None], _Value] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, data: bytes, limit: int | None) -> _Value | None:
        """The value of a document that is kept.

        Args:
            limit: how large it may be, decompressed; it was parsed with the same limit.
        """
        with self._lock:
            value = self._values.get((data, limit))
            if value is not None:
                self._values.move_to_end((data, limit))
        return value

    def get(self, data: bytes, limit: int | None, parse: Callable[[], _Value]) -> _Value:
        """The value of a document, which is parsed if it is not kept."""
        value = self.find(data, limit)
        if value is None:
            value = parse()
            self.put(data, limit, value)
        return value

    def put(self, data: bytes, limit: int | None, value: _Value) -> None:
        """Keeps the value of a document: exactly what parsing it would give."""
        key = data, limit
        weight = _weight(data)
        if weight > self._most_bytes:
            return
        with self._lock:
            if key not in self._values:
                self._bytes += weight
            self._values[key] = value
            while self._bytes > self._most_bytes:
                (oldest, _), _ = self._values.popitem(last=False)
                self._bytes -= _weight(oldest)


def _weight(data: bytes) -> int:
    """About how large a document is when it is not compressed."""
    return len(data) * (_COMPRESSION if data.startswith(_GZIP) else 1)
