"""Checks arguments of the Python API and turns them into options, which are text."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

from icebergds.errors import InvalidOptionError


def path_argument(name: str, value: Any) -> str:
    """A path or an identifier as text.

    This and the functions below raise InvalidOptionError for a value of another type.
    """
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        raise _wrong(name, value, "a path or an identifier as a string")
    return path


def text_argument(name: str, value: Any) -> str | None:
    """A string, or None."""
    if value is not None and not isinstance(value, str):
        raise _wrong(name, value, "a string")
    return None if value is None else _encodable(value, f"{name} = {value!r}")


def integer_argument(name: str, value: Any) -> int | None:
    """An integer, also one of numpy's, or None."""
    if value is None:
        return None
    if isinstance(value, bool):
        raise _wrong(name, value, "a whole number")
    try:
        return operator.index(value)
    except TypeError:
        raise _wrong(name, value, "a whole number") from None


def flag_argument(name: str, value: Any) -> bool:
    """True or False, and no other value that Python treats as one of them."""
    if not isinstance(value, bool):
        raise InvalidOptionError(f"{name} = {value!r}: expected True or False")
    return value


def positive_argument(name: str, value: Any) -> int | None:
    """An integer of at least 1, or None."""
    number = integer_argument(name, value)
    if number is not None and number < 1:
        raise InvalidOptionError(f"{name} = {number}: expected a whole number of at least 1")
    return number


def natural_argument(name: str, value: Any) -> int | None:
    """An integer of at least 0, or None."""
    number = integer_argument(name, value)
    if number is not None and number < 0:
        raise InvalidOptionError(f"{name} = {number}: expected an integer of at least 0")
    return number


def given_once(name: str, value: Any, alias: str, other: Any) -> Any:
    """The value given under a name or its alias.

    Raises:
        InvalidOptionError: it is given under both.
    """
    if value is not None and other is not None:
        raise InvalidOptionError(f"{name} and {alias} mean the same; give one of them")
    return other if value is None else value


def integers_argument(name: str, value: Any) -> tuple[int, ...]:
    """An integer or several, each once; none for None."""
    items = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    found = (integer_argument(name, item) for item in items)
    return tuple(dict.fromkeys(number for number in found if number is not None))


def names_argument(name: str, value: Any) -> str | list[str] | None:
    """A string, a list of strings, or None."""
    if value is None or isinstance(value, str):
        return value
    names = list(value) if isinstance(value, Iterable) else [value]
    if not isinstance(value, Iterable) or not all(isinstance(item, str) for item in names):
        raise _wrong(
            name, value, "names as a list of strings, or as one string separated by commas"
        )
    return names


def set_argument(name: str, value: Any) -> set[str]:
    """Names as a set, a list or the like, but not as one string; empty for None."""
    if value is None:
        return set()
    names = None if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    if names is None or not all(isinstance(item, str) for item in names):
        raise _wrong(name, value, "a set of names, such as {'owner'}")
    return {_encodable(item, f"{name}: {item!r}") for item in names}


def location_argument(name: str, value: Any) -> str:
    """A location as text."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str) or not path:
        raise _wrong(name, value, "a location as a string")
    return _encodable(path, f"{name} = {path!r}")


def mapping_argument(name: str, value: Any) -> dict[str, str]:
    """A mapping of strings to strings; empty for None.

    Numbers and booleans become strings as Spark writes them: `true`, not `True`.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _of_wrong_type(name, value, "a mapping of names to values, such as a dict")
    return {key: _as_text(f"{name}[{key!r}]", item) for key, item in value.items()}


def named_options(arguments: Mapping[str, Any], options: Any) -> dict[str, str]:
    """Merges the arguments of a method with its `options`, into the options of a read.

    Args:
        arguments: values by option name; None if not given.
        options: the `options` argument of the method.

    Raises:
        InvalidOptionError: an option is given both ways.
    """
    given = {name: str(value) for name, value in arguments.items() if value is not None}
    further = {name.lower(): value for name, value in mapping_argument("options", options).items()}
    if both := sorted(given.keys() & further.keys()):
        raise InvalidOptionError(
            f"{', '.join(both)}: given both as an argument and in options; give it once"
        )
    return {**further, **given}


def write_arguments(options: Any, snapshot_properties: Any, **named: Any) -> dict[str, str]:
    """Merges the arguments of a method with its `options`, into the options of a write.

    Args:
        options: the `options` argument of the method.
        snapshot_properties: entries for the snapshot summary.
        named: values by option name; None if not given.

    Raises:
        InvalidOptionError: an option is given both ways.
    """
    further = {k.lower(): value for k, value in mapping_argument("options", options).items()}
    checked = {name: text_argument(name.replace("-", "_"), v) for name, v in named.items()}
    given = {name: value for name, value in checked.items() if value is not None}
    if both := sorted(given.keys() & further.keys()):
        raise InvalidOptionError(
            f"{', '.join(both)}: given both as an argument and in options; give it once"
        )
    properties = mapping_argument("snapshot_properties", snapshot_properties)
    summary = {f"snapshot-property.{k}": v for k, v in properties.items()}
    return {**further, **given, **summary}


def _as_text(name: str, value: Any) -> str:
    # Errors do not show the value, which may be a password.
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise _of_wrong_type(name, value, "a string, a number or a boolean")
    return _encodable(str(value), name)


def _encodable(text: str, shown: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidOptionError(f"{shown} is not valid Unicode: {error}") from error
    return text


def _wrong(name: str, value: Any, expected: str) -> InvalidOptionError:
    return _of_wrong_type(f"{name} = {value!r}", value, expected)


def _of_wrong_type(shown: str, value: Any, expected: str) -> InvalidOptionError:
    return InvalidOptionError(f"{shown} is of type {type(value).__name__}, expected {expected}")
