"""Holds mappings that cannot be changed, because values that are shared have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class ReadOnlyDict(dict[_Key, _Value]):
    """A dictionary that cannot be changed."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this is part of a table's metadata and cannot be changed; copy it first")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[_Key, _Value]]]:
        return type(self), (dict(self),)


def set_read_only(owner: object, name: str) -> None:
    """Makes a mapping of a new immutable object one that cannot be changed."""
    members: Mapping[object, object] = getattr(owner, name)
    if not isinstance(members, ReadOnlyDict):
        object.__setattr__(owner, name, ReadOnlyDict(members))
