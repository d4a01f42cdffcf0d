"""Arguments of the Python API, checked before they become options, which are text."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

from icebergds.errors import InvalidOptionError


def path_argument(name: str, value: Any) -> str:
    """A path or an identifier as text; InvalidOptionError otherwise, here and below."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        raise _wrong(name, value, "a path or an identifier as text")
    return path


def text_argument(name: str, value: Any) -> str | None:
    """A text, or None."""
    if value is not None and not isinstance(value, str):
        raise _wrong(name, value, "text")
    return None if value is None else _encodable(name, value)


def integer_argument(name: str, value: Any) -> int | None:
    """A whole number, also one of numpy's, or None."""
    if value is None:
        return None
    try:
        return operator.index(value)
    except TypeError:
        raise _wrong(name, value, "a whole number") from None


def names_argument(name: str, value: Any) -> str | list[str] | None:
    """A text, or a list of texts, or None."""
    if value is None or isinstance(value, str):
        return value
    names = list(value) if isinstance(value, Iterable) else [value]
    if not isinstance(value, Iterable) or not all(isinstance(item, str) for item in names):
        raise _wrong(name, value, "names as texts, in a list or joined by commas")
    return names


def mapping_argument(name: str, value: Any) -> dict[str, str]:
    """A mapping of texts to texts, empty for None.

    Numbers and booleans become the texts that Spark makes of them: `true`, not `True`.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _wrong(name, value, "a mapping of names to values, such as a dict")
    return {key: _as_text(f"{name}[{key!r}]", item) for key, item in value.items()}


def named_options(arguments: Mapping[str, Any], options: Any) -> dict[str, str]:
    """Options of a read, from arguments of a method that have names of options and further ones.

    Args:
        arguments: by the options' names; None for those not given.

    Raises:
        InvalidOptionError: something is given as both.
    """
    given = {name: str(value) for name, value in arguments.items() if value is not None}
    further = {name.lower(): value for name, value in mapping_argument("options", options).items()}
    if both := sorted(given.keys() & further.keys()):
        raise InvalidOptionError(
            f"{', '.join(both)}: given as an argument and as an option; give one"
        )
    return {**further, **given}


def write_arguments(options: Any, snapshot_properties: Any, **named: Any) -> dict[str, str]:
    """The options of a write, from the arguments of a method and further options.

    Args:
        named: arguments that are options too, by the options' names; None for those not given.

    Raises:
        InvalidOptionError: something is given as both.
    """
    further = {k.lower(): value for k, value in mapping_argument("options", options).items()}
    checked = {name: text_argument(name.replace("-", "_"), v) for name, v in named.items()}
    given = {name: value for name, value in checked.items() if value is not None}
    if both := sorted(given.keys() & further.keys()):
        raise InvalidOptionError(
            f"{', '.join(both)}: given as an argument and as an option; give one"
        )
    properties = mapping_argument("snapshot_properties", snapshot_properties)
    summary = {f"snapshot-property.{k}": v for k, v in properties.items()}
    return {**further, **given, **summary}


def _as_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise _wrong(name, value, "text")
    return _encodable(name, str(value))


def _encodable(name: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidOptionError(f"{name} = {text!r} is no text of Unicode: {error}") from error
    return text


def _wrong(name: str, value: Any, expected: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"{name} = {value!r} is of type {type(value).__name__}, expected {expected}"
    )
