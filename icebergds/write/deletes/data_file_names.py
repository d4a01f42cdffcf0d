"""Finds data files by the names that scans give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from urllib.parse import unquote

from icebergds.errors import InvalidDataError
from icebergds.formats.file_tokens import file_token
from icebergds.io.fileio import FileIO

# A local file may be named `file:/t`, `file:///t` or `/t`.
_LOCAL = re.compile(r"^file:/+")


class DataFileNames:
    """Finds the paths of data files by path, by file token, or by Spark's `file_path`.

    Args:
        paths: the data files that this task changes, as in manifests.
        table: the table, for messages.
    """

    def __init__(self, io: FileIO, paths: Iterable[str], table: str) -> None:
        self._io = io
        self._paths = paths
        self._table = table

    def path_of(self, name: str) -> str:
        """The path of the file with a name.

        Raises:
            InvalidDataError: no file has the name, or several have it.
        """
        # File tokens contain no slash.
        found = set[str]() if "/" in name else self._by_token.get(name, set())
        found = found or self._by_location.get(name) or self._by_location.get(_decoded(name), set())
        if len(found) != 1:
            raise InvalidDataError(
                f"table {self._table}: rows of {name} are to be changed, but the name matches "
                + ("more than one" if found else "none")
                + " of the data files that came to this task with them"
            )
        return next(iter(found))

    # Built when first used: a task may have no rows of files to change.

    @cached_property
    def _by_token(self) -> Mapping[str, set[str]]:
        return _grouped((file_token(path), path) for path in self._paths)

    @cached_property
    def _by_location(self) -> Mapping[str, set[str]]:
        resolve = self._io.resolve
        return _grouped((name, path) for path in self._paths for name in (path, resolve(path)))


def _grouped(named: Iterable[tuple[str, str]]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, path in named:
        found.setdefault(name, set()).add(path)
    return found


def _decoded(name: str) -> str:
    """The location of a file from Spark's URI of it."""
    return unquote(_LOCAL.sub("/", name))
