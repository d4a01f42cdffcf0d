"""Keeps the JSON texts of objects that stand in one version of a table's metadata after another."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

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
