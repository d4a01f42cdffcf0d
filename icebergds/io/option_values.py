"""Parses the values of storage properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from icebergds.errors import InvalidOptionError


def first(properties: Mapping[str, str], *names: str) -> str:
    """The first of several properties that has a value; empty if none has."""
    return next((properties[name] for name in names if properties.get(name)), "")


def is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"


def number(name: str, text: str, convert: Callable[[str], float]) -> float:
    """A property as a number.

    Raises:
        InvalidOptionError: it is not one.
    """
    try:
        return convert(text)
    except ValueError:
        raise InvalidOptionError(f"property {name!r} = {text!r}: expected a number") from None
