"""Data files found by the names that scans give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from urllib.parse import unquote

from icebergds.errors import InvalidDataError
from icebergds.formats.file_tokens import file_token
from icebergds.io.fileio import FileIO

# Local files are `file:/t`, `file:///t` or `/t`, by who names them.
_LOCAL = re.compile(r"^file:/+")


class DataFileNames:
    """Finds the paths of data files: by themselves, by tokens, or by Spark's `file_path`.

    Args:
        paths: of all files that may be named, as manifests have them.
        table: the table, for messages.
    """

    def __init__(self, io: FileIO, paths: Iterable[str], table: str) -> None:
        self._io = io
        self._paths = paths
        self._table = table

    def path_of(self, name: str) -> str:
        """The path of the file that is named.

        Raises:
            InvalidDataError: none of the files is, or more than one.
        """
        # Tokens have no slash.
        found = set[str]() if "/" in name else self._by_token.get(name, set())
        found = found or self._by_place.get(name) or self._by_place.get(_stored_at(name), set())
        if len(found) != 1:
            raise InvalidDataError(
                f"table {self._table}: rows are to be changed of {name}, which is "
                + ("more than one" if found else "none")
                + " of the data files that were read for this change"
            )
        return next(iter(found))

    # Tables have many files, and tasks often name none of them: both are made when first needed.

    @cached_property
    def _by_token(self) -> Mapping[str, set[str]]:
        return _grouped((file_token(path), path) for path in self._paths)

    @cached_property
    def _by_place(self) -> Mapping[str, set[str]]:
        resolve = self._io.resolve
        return _grouped((name, path) for path in self._paths for name in (path, resolve(path)))


def _grouped(named: Iterable[tuple[str, str]]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, path in named:
        found.setdefault(name, set()).add(path)
    return found


def _stored_at(name: str) -> str:
    """Where a file is that Spark names by a URI."""
    return unquote(_LOCAL.sub("/", name))
