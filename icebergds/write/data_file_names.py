"""Data files found by the names that scans give them."""

from __future__ import annotations

import re
from collections.abc import Iterable
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
        self._table = table
        self._paths: dict[str, set[str]] = {}
        for path in paths:
            for name in (path, file_token(path), io.resolve(path)):
                self._paths.setdefault(name, set()).add(path)

    def path_of(self, name: str) -> str:
        """The path of the file that is named.

        Raises:
            InvalidDataError: none of the files is, or more than one.
        """
        found = self._paths.get(name) or self._paths.get(_stored_at(name), set())
        if len(found) != 1:
            raise InvalidDataError(
                f"table {self._table}: rows are to be changed of {name}, which is "
                + ("more than one" if found else "none")
                + " of the data files that were read for this change"
            )
        return next(iter(found))


def _stored_at(name: str) -> str:
    """Where a file is that Spark names by a URI."""
    return unquote(_LOCAL.sub("/", name))
