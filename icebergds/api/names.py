"""Reads names of tables, views and namespaces given as arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from icebergds.catalog.address import identifier_of
from icebergds.catalog.base import Identifier
from icebergds.catalog.metadata_files import is_metadata_file
from icebergds.errors import IcebergError, InvalidOptionError, NoSuchNamespaceError
from icebergds.io.fileio import FileIO
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


@contextmanager
def without_catalog(catalog: str, namespace: Identifier) -> Iterator[None]:
    """Says of a namespace that does not exist in the block that it was named with its catalog."""
    try:
        yield
    except NoSuchNamespaceError as error:
        if len(namespace) < 2 or namespace[0] != catalog:
            raise
        raise NoSuchNamespaceError(
            f"{error}; namespaces are named without their catalog: {'.'.join(namespace[1:])!r}"
        ) from None


def check_metadata_file(io: FileIO, location: str) -> None:
    """Raises InvalidOptionError if the location of a metadata file is that of a directory."""
    try:
        is_directory = not is_metadata_file(location) and io.is_directory(location)
    except IcebergError:
        is_directory = False
    if is_directory:
        raise InvalidOptionError(
            f"metadata_location = {location!r} is a directory; expected a metadata file in it, "
            "such as <directory>/metadata/<version>.metadata.json; load_table('<directory>')"
            ".metadata_location is the newest"
        )
