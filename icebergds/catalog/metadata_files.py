"""Finds the current metadata file of a table by its location.

A table's metadata directory holds `v<N>.metadata.json` (committed by creating that file, as in
Hadoop tables) or `<N>-<uuid>.metadata.json` (committed by a catalog); if compressed with gzip, with
`.gz` before or after `.metadata.json`. The directory is listed and the highest version wins:
`version-hint.text` may be stale, so it only decides between files of the same version.
"""

from __future__ import annotations

import logging
import re
import time

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidMetadataError, MissingFileError, NoSuchTableError
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.metadata import TableMetadata, metadata_directory

_LOG = logging.getLogger(__name__)

VERSION_HINT = "version-hint.text"


def load_from_location(io: FileIO, location: str, name: str | None = None) -> TableState:
    """Loads the table at a location, or the one that a metadata file describes.

    Args:
        location: a table's root directory, or the path of a `*.metadata.json` file.
        name: the table's name in messages; the location by default.

    Raises:
        NoSuchTableError: there is no metadata at the location.
        InvalidMetadataError: the metadata is damaged, or several files have the highest version.
        UnsupportedFeatureError: the table's format version is above 3.
    """
    name = name or location
    if is_metadata_file(location):
        return _load(io, location, name)
    missing = None
    while True:
        newest = find_newest_metadata(io, location.rstrip("/"), name)
        try:
            return _load(io, newest, name)
        except NoSuchTableError:
            # A commit after the listing may have deleted it; then there is a newer one.
            if newest == missing:
                raise
            missing = newest


def find_newest_metadata(io: FileIO, location: str, name: str) -> str:
    """The path of the newest metadata file of the table at `location`.

    Raises:
        NoSuchTableError: there is no metadata file.
        InvalidMetadataError: several files have the highest version.
    """
    directory = metadata_directory(location)
    versions = list_versions(io, location)
    if not versions:
        raise _no_such_table(io, name, directory)
    newest = versions[max(versions)]
    if len(newest) > 1:
        newest = _hinted(io, directory, newest) or newest
    if len(newest) > 1:
        raise InvalidMetadataError(
            f"table {name}: {len(newest)} metadata files in {directory} claim version "
            f"{max(versions)} ({', '.join(sorted(newest))}), and only the table's catalog knows "
            "which one is current; use the catalog, or load one of these files"
        )
    return f"{directory}/{newest[0]}"


def list_versions(io: FileIO, location: str) -> dict[int, list[str]]:
    """Names of a table's metadata files by version; empty if there is no table."""
    try:
        files = io.list(metadata_directory(location))
    except MissingFileError:
        return {}
    versions: dict[int, list[str]] = {}
    for file in files:
        # Cheap tests first: most files are manifests, most others plain versions.
        if ".metadata.json" not in file:
            continue
        number = file[1 : -len(_SUFFIX)]
        if number.isdigit() and number.isascii() and file == f"v{number}{_SUFFIX}":
            versions.setdefault(int(number), []).append(file)
        elif (match := _METADATA_FILE.match(file)) is not None and not _TEMPORARY.match(file):
            versions.setdefault(int(match["v"] or match["n"]), []).append(file)
    return versions


def own_version(file: str) -> int | None:
    """The version of a metadata file named `v<N>`; None for catalogs' files and other files."""
    match = _METADATA_FILE.match(file)
    return None if match is None or match["v"] is None else int(match["v"])


def is_metadata_file(location: str) -> bool:
    """Whether a location is that of a metadata file, according to its name."""
    return location.endswith((".metadata.json", ".metadata.json.gz"))


def log_load(name: str, metadata_location: str, metadata: TableMetadata, started: float) -> None:
    """Logs that a table was loaded; `started` is the `time.perf_counter` before it."""
    _LOG.debug(
        "table %s: loaded %s in %.0f ms: current snapshot %s of %s",
        name,
        metadata_location,
        1000 * (time.perf_counter() - started),
        metadata.current_snapshot_id,
        metadata.snapshots_known(),
    )


_SUFFIX = ".metadata.json"
_METADATA_FILE = re.compile(
    r"^(?:v(?P<v>\d+)|(?P<n>\d+)-[^/]+?)(?:\.gz\.metadata\.json|\.metadata\.json(?:\.gz)?)$",
    re.ASCII,
)
# Temporary names for commits by rename: files with these names were never committed.
_TEMPORARY = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.", re.IGNORECASE)


def _load(io: FileIO, metadata_location: str, name: str) -> TableState:
    started = time.perf_counter()
    try:
        data = io.read_bytes(metadata_location)
    except MissingFileError as error:
        raise NoSuchTableError(f"table {name}: {error}") from None
    metadata = parse_metadata(data, metadata_location, io.max_metadata_bytes)
    log_load(name, metadata_location, metadata, started)
    return TableState(name, metadata_location, metadata, io)


def _hinted(io: FileIO, directory: str, candidates: list[str]) -> list[str]:
    """The candidates that the version hint names."""
    try:
        hint = io.read_bytes(f"{directory}/{VERSION_HINT}").decode("utf-8").strip()
    except (MissingFileError, UnicodeDecodeError):
        return []
    names = {hint, f"v{hint}"}
    return [c for c in candidates if c in names or c.split(".", 1)[0] in names]


def _no_such_table(io: FileIO, name: str, directory: str) -> NoSuchTableError:
    place = io.resolve(directory)
    where = directory if place == directory else f"{directory} (looked for at {place})"
    hint = "; give the table's root directory, a metadata file, or a catalog and an identifier "
    hint += "(option('catalog', ...))"
    # The hint does not apply to a table that is named by a catalog.
    by_location = metadata_directory(name) == directory
    return NoSuchTableError(
        f"table {name}: no metadata file (v<N>.metadata.json or <N>-<uuid>.metadata.json) in "
        f"{where}{hint if by_location else ''}"
    )
