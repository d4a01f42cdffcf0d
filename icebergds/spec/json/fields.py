"""Reads typed members of JSON objects that `json.loads` returned.

`where` names the object in errors. A null member counts as absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from icebergds.errors import InvalidMetadataError
from icebergds.spec.read_only import ReadOnlyDict

_NOTHING: dict[str, Any] = ReadOnlyDict()
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
    """Returns the value if it is exactly of that JSON kind.

    Raises InvalidMetadataError otherwise.
    """
    # Not isinstance: true is not an integer.
    if type(value) is kind:
        return value
    raise InvalidMetadataError(f"{where} is {_shown(value)}, expected {_KINDS[kind]}")


def required(obj: Mapping[str, Any], name: str, kind: type[T], where: str) -> T:
    """A required member.

    Raises InvalidMetadataError if it is absent or of another kind.
    """
    value = obj.get(name)
    if type(value) is kind:
        return value
    if value is None:
        raise InvalidMetadataError(f"{where} lacks '{name}', expected {_KINDS[kind]}")
    return typed(value, kind, f"'{name}' of {where}")


def optional(obj: Mapping[str, Any], name: str, kind: type[T], where: str) -> T | None:
    """A member, or None if it is absent or null.

    Raises InvalidMetadataError if it is of another kind.
    """
    value = obj.get(name)
    if value is None or type(value) is kind:
        return value
    return typed(value, kind, f"'{name}' of {where}")


def integers(obj: Mapping[str, Any], name: str, where: str) -> tuple[int, ...]:
    """A member that is an array of integers, empty if absent."""
    values = optional(obj, name, list, where) or ()
    return tuple(typed(value, int, f"'{name}' of {where}") for value in values)


def strings(obj: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """A member that is an array of strings, empty if absent."""
    values = optional(obj, name, list, where) or ()
    return tuple(typed(value, str, f"'{name}' of {where}") for value in values)


def string_map(obj: Mapping[str, Any], name: str, where: str) -> Mapping[str, str]:
    """A member that maps strings to strings, empty if absent.

    Some writers leave numbers and booleans unquoted: they become their JSON text. Null values are
    dropped.
    """
    members: dict[str, Any] = optional(obj, name, dict, where) or {}
    if set(map(type, members.values())) <= {str}:
        return ReadOnlyDict(members)
    return ReadOnlyDict(
        {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in members.items()
            if value is not None
        }
    )


def keyword(obj: Mapping[str, Any], name: str, kind: type[K], where: str) -> K:
    """A member that is one of a closed set of words, in any case.

    Raises InvalidMetadataError if it is absent or another word.
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
    """Returns the text if it can be encoded as UTF-8; JSON strings may hold lone surrogates.

    Raises InvalidMetadataError otherwise.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidMetadataError(
                f"{where}: {text!r} is not valid Unicode: {error}"
            ) from error
    return text


def without_nulls(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an object that are not None."""
    return {name: value for name, value in obj.items() if value is not None}


def unknown_members(obj: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The members of an object that are not known."""
    if obj.keys() <= known:
        return _NOTHING
    return ReadOnlyDict({name: value for name, value in obj.items() if name not in known})


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
