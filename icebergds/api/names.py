"""Reads names of tables, views and namespaces given as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from icebergds.catalog.address import identifier_of
from icebergds.catalog.base import Identifier
from icebergds.errors import InvalidOptionError
from icebergds.operations.options.arguments import text_argument

Name: TypeAlias = str | Identifier
"""Names a table, view or namespace: `db.events`, or a tuple; a part with a dot is in backticks.

A table's name may begin with that of its catalog (`lake.db.events`), unless the catalog has a
namespace of that name.
"""


def identifier_argument(name: Name) -> Identifier:
    """The parts of a name. Raises InvalidOptionError if it is not one."""
    if isinstance(name, str):
        return identifier_of(name)
    if not isinstance(name, Sequence) or not all(isinstance(part, str) for part in name):
        raise InvalidOptionError(
            f"name {name!r} is of type {type(name).__name__}; expected a name such as "
            "'db.events' or ('db', 'events')"
        )
    for part in name:
        text_argument("a part of a name", part)
    return tuple(name)


def namespace_argument(name: Name) -> Identifier:
    """The parts of a namespace's name, none for an empty one. Raises InvalidOptionError."""
    return identifier_argument(name) if name else ()
