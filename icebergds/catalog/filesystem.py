"""Tables found by their location, and the catalog that is a directory of them.

A table's metadata directory holds `v<N>.metadata.json` (tables committed by rename, as Hadoop
tables are) or `<N>-<uuid>.metadata.json` (tables committed by a catalog), either gzip-compressed
with `.gz` before or after `.metadata.json`. The directory is listed and the highest version wins:
`version-hint.text` may be stale, so it only decides between files of one version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from icebergds.catalog.base import TableState
from icebergds.errors import (
    InvalidMetadataError,
    InvalidOptionError,
    MissingFileError,
    NoSuchTableError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.metadata_json import parse_metadata

_PROPERTIES = ("type", "warehouse")
_METADATA_FILE = re.compile(
    r"^(?:v(?P<v>\d+)|(?P<n>\d+)-[^/]+?)(?:\.gz\.metadata\.json|\.metadata\.json(?:\.gz)?)$",
    re.ASCII,
)
# Commits by rename write under such a name first: what is left of them was never committed.
_TEMPORARY = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FileSystemCatalog:
    """Tables as directories under a warehouse: `db.events` is `<warehouse>/db/events`."""

    name: str
    warehouse: str
    io: FileIO

    def load(self, identifier: tuple[str, ...]) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: no table directory under the warehouse; names the nearest.
            InvalidOptionError: the identifier has an empty part or one with a slash.
        """
        if not all(identifier) or any("/" in part for part in identifier):
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} is no identifier, which is names "
                "joined by dots, such as db.events; to load a location, leave the catalog out"
            )
        directory = "/".join((self.warehouse.rstrip("/"), *identifier[:-1]))
        location = f"{directory}/{identifier[-1]}"
        try:
            return load_from_location(self.io, location, name=".".join((self.name, *identifier)))
        except NoSuchTableError as error:
            near = get_close_matches(identifier[-1], self._names_in(directory), n=1)
            hint = f"; did you mean {'.'.join((*identifier[:-1], *near))}?" if near else ""
            raise NoSuchTableError(f"{error}{hint}") from None

    def _names_in(self, directory: str) -> list[str]:
        try:
            return self.io.list(directory)
        except MissingFileError:
            return []


def file_system_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> FileSystemCatalog:
    """The catalog of a `warehouse` directory.

    Raises:
        InvalidOptionError: no warehouse is given.
    """
    for key in properties:
        if "." not in key and key not in _PROPERTIES:
            near = get_close_matches(key, _PROPERTIES, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidOptionError(
                f"catalog {name}: a file system catalog has no property {key!r}{hint} It has "
                f"{', '.join(_PROPERTIES)}, and properties of the storage such as s3.endpoint"
            )
    warehouse = properties.get("warehouse")
    if not warehouse:
        raise InvalidOptionError(
            f"catalog {name} is a file system catalog and needs a warehouse: set "
            "option('catalog.warehouse', '<directory of the warehouse>')"
        )
    return FileSystemCatalog(name, warehouse, io)


def load_from_location(io: FileIO, location: str, name: str | None = None) -> TableState:
    """The table at a location, or the one that a metadata file describes.

    Args:
        location: a table's root directory, or the path of a `*.metadata.json` file.
        name: how messages name the table; the location by default.

    Raises:
        NoSuchTableError: there is no metadata at the location.
        InvalidMetadataError: the metadata is damaged, or which of several files is newest is open.
        UnsupportedFeatureError: the table's format version is above 3.
    """
    name = name or location
    if _is_metadata_file(location):
        metadata_location = location
    else:
        metadata_location = find_newest_metadata(io, location.rstrip("/"), name)
    try:
        data = io.read_bytes(metadata_location)
    except MissingFileError as error:
        raise NoSuchTableError(f"table {name}: {error}") from None
    return TableState(name, metadata_location, parse_metadata(data, metadata_location), io)


def find_newest_metadata(io: FileIO, location: str, name: str) -> str:
    """The path of the newest metadata file of the table at `location`.

    Raises:
        NoSuchTableError: no metadata file is there.
        InvalidMetadataError: several files claim the highest version.
    """
    directory = f"{location}/metadata"
    try:
        files = io.list(directory)
    except MissingFileError:
        raise _no_such_table(io, name, directory) from None
    versions: dict[int, list[str]] = {}
    for file in files:
        if (match := _METADATA_FILE.match(file)) is not None and not _TEMPORARY.match(file):
            versions.setdefault(int(match["v"] or match["n"]), []).append(file)
    if not versions:
        raise _no_such_table(io, name, directory)
    newest = versions[max(versions)]
    if len(newest) > 1:
        newest = _hinted(io, directory, newest) or newest
    if len(newest) > 1:
        raise InvalidMetadataError(
            f"table {name}: {len(newest)} metadata files of {directory} claim version "
            f"{max(versions)} ({', '.join(sorted(newest))}) and only the catalog that committed "
            "knows which one is the table; load the metadata file itself, or use the catalog"
        )
    return f"{directory}/{newest[0]}"


def _is_metadata_file(location: str) -> bool:
    return location.endswith((".metadata.json", ".metadata.json.gz"))


def _hinted(io: FileIO, directory: str, candidates: list[str]) -> list[str]:
    """The candidates whose name the version hint spells out."""
    try:
        hint = io.read_bytes(f"{directory}/version-hint.text").decode("utf-8").strip()
    except (MissingFileError, UnicodeDecodeError):
        return []
    names = {hint, f"v{hint}"}
    return [c for c in candidates if c in names or c.split(".", 1)[0] in names]


def _no_such_table(io: FileIO, name: str, directory: str) -> NoSuchTableError:
    place = io.resolve(directory)
    where = directory if place == directory else f"{directory} (looked for at {place})"
    return NoSuchTableError(
        f"table {name}: no metadata file (v<N>.metadata.json or <N>-<uuid>.metadata.json) in "
        f"{where}; give the table's root directory, a metadata file, or a catalog and an "
        "identifier (option('catalog', ...))"
    )
