"""Parses the values of storage properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from icebergds.errors import InvalidOptionError


def first(properties: Mapping[str, str], *names: str) -> str:
    """The first of several properties that has a value; empty if none has."""
    return next((properties[name] for name in names if properties.get(name)), "")


def is_true(properties: Mapping[str, str], name: str) -> bool:
    """Whether a property is true; one that is not set is not.

    Raises:
        InvalidOptionError: it is neither true nor false.
    """
    text = properties.get(name, "")
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise InvalidOptionError(f"property {name!r} = {text!r}: expected true or false")
    return value


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False, "": False}


def number(name: str, text: str, convert: Callable[[str], float]) -> float:
    """A property as a number.

    Raises:
        InvalidOptionError: it is not one.
    """
    try:
        return convert(text)
    except ValueError:
        raise InvalidOptionError(f"property {name!r} = {text!r}: expected a number") from None
