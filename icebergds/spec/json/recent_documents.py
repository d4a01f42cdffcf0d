"""Keeps parsed documents, and texts that stand in one version of a table after another."""

from __future__ import annotations

import json
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")
_GZIP = b"\x1f\x8b"
_COMPRESSION = 20


class RecentDocuments(Generic[_Value]):
    """Values by the bytes that they were parsed from; the least recently used make room.

    Threads may share it. Values must not be changed.

    Args:
        most_bytes: how many bytes of documents are kept, decompressed; a larger one is not.
        weigh: about how many bytes a document takes when it is decompressed.
    """

    def __init__(self, most_bytes: int, weigh: Callable[[bytes], int] | None = None) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._weigh = weigh or _weight
        self._values: OrderedDict[tuple[bytes, Hashable], _Value] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, data: bytes, how: Hashable) -> _Value | None:
        """The value of a document that is kept.

        Args:
            how: what else parsing depends on, such as how large it may be, decompressed.
        """
        with self._lock:
            value = self._values.get((data, how))
            if value is not None:
                self._values.move_to_end((data, how))
        return value

    def get(self, data: bytes, how: Hashable, parse: Callable[[], _Value]) -> _Value:
        """The value of a document, which is parsed if it is not kept."""
        value = self.find(data, how)
        if value is None:
            value = parse()
            self.put(data, how, value)
        return value

    def put(self, data: bytes, how: Hashable, value: _Value) -> None:
        """Keeps the value of a document: exactly what parsing it would give."""
        key = data, how
        weight = self._weigh(data)
        if weight > self._most_bytes:
            return
        with self._lock:
            if key not in self._values:
                self._bytes += weight
            self._values[key] = value
            while self._bytes > self._most_bytes:
                (oldest, _), _ = self._values.popitem(last=False)
                self._bytes -= self._weigh(oldest)


def _weight(data: bytes) -> int:
    """About how large a document is when it is not compressed."""
    return len(data) * (_COMPRESSION if data.startswith(_GZIP) else 1)


T = TypeVar("T")


def json_text(value: Any) -> str:
    """A value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class KeptTexts(Generic[T]):
    """JSON texts of objects that never change, for as long as these live.

    Objects are told apart by their identities: to compare schemas takes as long as to write them.

    Args:
        to_json: the JSON value of an object.
    """

    def __init__(self, to_json: Callable[[T], Any]) -> None:
        self._to_json = to_json
        self._found: dict[int, tuple[weakref.ref[T], str]] = {}

    def of(self, item: T) -> str:
        """The text of an object."""
        key = id(item)
        found = self._found.get(key)
        if found is not None and found[0]() is item:
            return found[1]
        text = json_text(self._to_json(item))
        self._found[key] = weakref.ref(item, lambda _: self._found.pop(key, None)), text
        return text
