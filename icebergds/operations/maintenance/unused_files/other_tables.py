"""Finds signs of other tables among a table's files, so that their files are not taken for orphans.

A table is recognised by its metadata files. Tables whose data files are here, but whose metadata is
elsewhere, cannot be detected.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.commit.operations import TableState
from icebergds.errors import FormatError, MissingFileError, ValidationError
from icebergds.operations.maintenance.unused_files.file_identity import Aliases
from icebergds.operations.maintenance.unused_files.reachable_files import metadata_files
from icebergds.spec.json.metadata import parse_identity
from icebergds.spec.metadata import metadata_directory

METADATA_FILE = r"\.metadata\.json(\.gz)?$"
"""Matches the names of metadata files."""

# Catalogs give every new table a metadata file of this number.
_FIRST = "00000-"
_NEWEST = 5
_MOST_READ = 20


def nested_directories(state: TableState, found: pa.Table, aliases: Aliases) -> list[str]:
    """Root directories of other tables; paths as in keys, which end in a slash.

    Args:
        found: metadata files, with columns of `FILE_SCHEMA`.
    """
    own = {path for _, path in _own_directories(state, aliases)}
    keys = aliases.keys(_locations(found), state.io.without_map())
    directories = pc.unique(pc.replace_substring_regex(keys.paths, "[^/]*$", "")).to_pylist()
    return sorted({_root(path) for path in directories if path not in own})


def refuse_sharing(state: TableState, found: pa.Table, aliases: Aliases) -> None:
    """Raises an error if metadata files of another table are among those of this one.

    Only the first metadata file of each table and the newest ones are looked at, so a table may be
    overlooked.

    Raises:
        ValidationError: one of them has another UUID.
    """
    uuid = state.metadata.table_uuid
    if uuid is None:
        return
    for location in _suspects(state, found, aliases):
        try:
            data = state.io.without_map().read_bytes(location)
            other, _ = parse_identity(data, location, state.io.max_metadata_bytes)
        except (MissingFileError, FormatError):
            # A torn file of a commit that failed does not belong to any table.
            continue
        if other is not None and other != uuid:
            raise ValidationError(
                f"table {state.name} has the UUID {uuid}, but among its metadata files is "
                f"{location} of a table with the UUID {other}: if that table still exists, its "
                "files are here, too, and would be removed. If it was dropped, remove its files "
                'with options={"other-tables": "delete"}'
            )


def _suspects(state: TableState, found: pa.Table, aliases: Aliases) -> Iterator[str]:
    """Metadata files in this table's directories that it does not refer to."""
    locations = _locations(found)
    keys = aliases.keys(locations, state.io.without_map())
    known = aliases.keys(pa.array(metadata_files(state), pa.string()), state.io)
    own = pa.array([path for _, path in _own_directories(state, aliases)], pa.string())
    is_own = pc.is_in(pc.replace_substring_regex(keys.paths, "[^/]*$", ""), own)
    unknown = pc.and_(is_own, pc.invert(pc.is_in(keys.paths, known.paths)))
    rows = pa.table({"location": locations, "modified_ms": found["modified_ms"]}).filter(unknown)
    rows = rows.sort_by([("modified_ms", "descending")])
    names = pc.replace_substring_regex(rows["location"], "(?s)^.*/", "")
    first = rows["location"].filter(pc.starts_with(names, _FIRST)).to_pylist()
    newest = rows["location"][:_NEWEST].to_pylist()
    yield from dict.fromkeys([*newest, *first][:_MOST_READ])


def _own_directories(state: TableState, aliases: Aliases) -> set[tuple[object, str]]:
    metadata = state.metadata
    directories = {file.rpartition("/")[0] for file in metadata_files(state)}
    directories |= {metadata_directory(metadata.location), metadata.metadata_directory}
    return {aliases.directory(directory, state.io) for directory in directories}


def _root(directory: str) -> str:
    return directory.removesuffix("metadata/") if directory.endswith("/metadata/") else directory


def _locations(files: pa.Table) -> pa.StringArray:
    return files["location"].combine_chunks()
