"""Typed access to the members of JSON objects, as `json.loads` gives them.

`where` names the object in errors. A member that is null counts as absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from icebergds.errors import InvalidMetadataError

T = TypeVar("T")
K = TypeVar("K", bound=StrEnum)

_KINDS: dict[type, str] = {
    int: "an integer",
    str: "a string",
    bool: "true or false",
    list: "an array",
    dict: "an object",
}


def typed(value: Any, kind: type[T], where: str) -> T:
    """The value itself if it is exactly of that JSON kind.

    Raises InvalidMetadataError otherwise.
    """
    # Not isinstance: true is no integer.
    if type(value) is kind:
        return value
    raise InvalidMetadataError(f"{where} is {_shown(value)}, expected {_KINDS[kind]}")


def required(obj: Mapping[str, Any], name: str, kind: type[T], where: str) -> T:
    """A member that must be there.

    Raises InvalidMetadataError where it is absent or of another kind.
    """
    value = obj.get(name)
    if type(value) is kind:
        return value
    if value is None:
        raise InvalidMetadataError(f"{where} lacks '{name}', expected {_KINDS[kind]}")
    return typed(value, kind, f"'{name}' of {where}")


def optional(obj: Mapping[str, Any], name: str, kind: type[T], where: str) -> T | None:
    """A member, or None where it is absent or null.

    Raises InvalidMetadataError where it is of another kind.
    """
    value = obj.get(name)
    if value is None or type(value) is kind:
        return value
    return typed(value, kind, f"'{name}' of {where}")


def integers(obj: Mapping[str, Any], name: str, where: str) -> tuple[int, ...]:
    """A member that is an array of integers, empty where absent."""
    values = optional(obj, name, list, where) or ()
    return tuple(typed(value, int, f"'{name}' of {where}") for value in values)


def strings(obj: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """A member that is an array of strings, empty where absent."""
    values = optional(obj, name, list, where) or ()
    return tuple(typed(value, str, f"'{name}' of {where}") for value in values)


def string_map(obj: Mapping[str, Any], name: str, where: str) -> dict[str, str]:
    """A member that maps strings to strings, empty where absent.

    Some writers leave numbers and booleans unquoted: they become their JSON text, and nulls go.
    """
    members: dict[str, Any] = optional(obj, name, dict, where) or {}
    if set(map(type, members.values())) <= {str}:
        return members
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in members.items()
        if value is not None
    }


def keyword(obj: Mapping[str, Any], name: str, kind: type[K], where: str) -> K:
    """A member that is one of a closed set of words, whatever its case.

    Raises InvalidMetadataError where it is absent or another word.
    """
    text = required(obj, name, str, where)
    try:
        return kind(text.lower())
    except ValueError:
        words = ", ".join(kind)
        raise InvalidMetadataError(
            f"'{name}' of {where} is {text!r}, expected one of {words}"
        ) from None


def unicode_text(text: str, where: str) -> str:
    """A text that has a form in UTF-8; JSON can also hold halves of characters.

    Raises InvalidMetadataError where it has none.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidMetadataError(f"{where}: {text!r} is no Unicode text: {error}") from error
    return text


def without_nulls(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an object that are not None."""
    return {name: value for name, value in obj.items() if value is not None}


def unknown_members(obj: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The members of an object that are not among the known ones."""
    if obj.keys() <= known:
        return {}
    return {name: value for name, value in obj.items() if name not in known}


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
