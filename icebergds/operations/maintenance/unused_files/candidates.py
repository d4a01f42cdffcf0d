"""Gathers the files that may be orphans: old, visible files below a directory, or in a list.

Files whose names or directories begin with `_` or `.` are hidden, as in Java: other tools leave
their markers and checksums beside data. Directories of partitions are not, nor are the temporary
files that this package writes under names of their own. Lock files (`.claim`) stay hidden: another
process may hold an old one.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import MissingFileError, StorageError
from icebergds.io.fileio import FileIO
from icebergds.io.recursive_listing import FILE_SCHEMA, ListedFiles
from icebergds.operations.maintenance.unused_files.file_identity import Aliases
from icebergds.operations.maintenance.unused_files.other_tables import METADATA_FILE
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import partition_path

_TEMPORARY = r"\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.(tmp|probe)"
_THREADS = 16


@dataclass(frozen=True, slots=True)
class Candidates:
    """Files that may be orphans.

    Attributes:
        files: columns of `FILE_SCHEMA`; old files, and those without a time. Locations are
            resolved if they were listed, else as they were given.
        metadata_files: all metadata files that were found, however young; resolved.
        examined: how many files were looked at.
    """

    files: pa.Table
    metadata_files: pa.Table
    examined: int


def list_candidates(
    io: FileIO, location: str, older_than_ms: int, metadata: TableMetadata
) -> Candidates:
    """Lists the files below a directory.

    Args:
        metadata: names the partitions.

    Raises:
        MissingFileError: the directory does not exist.
        StorageError: it cannot be listed.
    """
    hidden = HiddenPaths.of(metadata)
    start = len(io.resolve(location).rstrip("/"))
    old, described, examined = [], [], 0
    for listed in io.list_recursively(location):
        inside = pc.utf8_slice_codeunits(listed.files["location"], start)
        files = listed.files.filter(pc.invert(hidden.of_paths(inside)))
        examined += len(files)
        described.append(files.filter(is_metadata(files)))
        old.append(_older(files, older_than_ms - _skew_ms(listed)))
    return Candidates(_together(old), _together(described), examined)


def given_candidates(
    io: FileIO, file_list: pa.Table, location: str, older_than_ms: int, aliases: Aliases
) -> Candidates:
    """The files of a list that are below a directory; hidden ones, too, as in Java."""
    keys = aliases.keys(file_list["location"], io)
    prefix, path = aliases.directory(location, io)
    same = [number for number, known in enumerate(keys.distinct) if known == prefix]
    inside = pc.and_(
        pc.is_in(pa.array(keys.prefixes), pa.array(same, pa.int64())),
        pc.starts_with(keys.paths, path),
    )
    files = file_list.filter(inside)
    described = files.filter(is_metadata(files))
    resolved = [io.resolve(location) for location in described["location"].to_pylist()]
    described = described.set_column(0, FILE_SCHEMA.field(0), pa.array(resolved, pa.string()))
    return Candidates(_older(files, older_than_ms), described, len(files))


def dated(io: FileIO, files: pa.Table, older_than_ms: int) -> pa.Table:
    """Adds the times that the storage reports; leaves out young and missing files.

    Files whose time it does not report have none.
    """

    def modified_ms(location: str) -> int | None:
        try:
            return io.modified_ms(location)
        except MissingFileError:
            # Treated as young: a missing file is not an orphan.
            return older_than_ms
        except StorageError:
            return None

    with ThreadPoolExecutor(_THREADS) as pool:
        times = list(pool.map(modified_ms, files["location"].to_pylist()))
    found = files.set_column(1, FILE_SCHEMA.field(1), pa.array(times, pa.int64()))
    return _older(found, older_than_ms)


@dataclass(frozen=True, slots=True)
class HiddenPaths:
    """Finds the hidden paths below a directory.

    Attributes:
        shown: matches the names that begin like hidden ones but are not hidden.
    """

    shown: str

    @classmethod
    def of(cls, metadata: TableMetadata) -> HiddenPaths:
        names = set()
        for spec in metadata.partition_specs:
            names |= {part.name for part in spec.fields}
            nulls = (None,) * len(spec.fields)
            path = partition_path(spec, metadata.schema(), nulls, metadata.schema_history)
            names |= {directory.rpartition("=")[0] for directory in path.split("/")}
        partitions = [f"{re.escape(name)}=[^/]*" for name in sorted(names) if name[:1] in "_."]
        return cls("(^|/)(" + "|".join([*partitions, _TEMPORARY]) + ")(?:$|/)")

    def of_paths(self, paths: pa.StringArray) -> pa.BooleanArray:
        doubtful = pc.match_substring_regex(paths, "(^|/)[._]")
        if not pc.any(doubtful).as_py():
            return doubtful
        # Slashes are doubled, so that each of two adjacent names has its own.
        doubled = pc.replace_substring(paths, "/", "//")
        return pc.match_substring_regex(
            pc.replace_substring_regex(doubled, self.shown, "/shown/"), "(^|/)[._]"
        )


_Files = TypeVar("_Files", pa.RecordBatch, pa.Table)


def _older(files: _Files, than_ms: int) -> _Files:
    """Files that were modified before, and those without a time."""
    return files.filter(pc.fill_null(pc.less(files["modified_ms"], than_ms), True))


def is_metadata(files: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
    return pc.match_substring_regex(files["location"], METADATA_FILE)


def _skew_ms(listed: ListedFiles) -> int:
    """By how much this machine's clock is ahead of the storage's, which dates the files."""
    if listed.storage_time_ms is None:
        return 0
    return max(0, time.time_ns() // 1_000_000 - listed.storage_time_ms)


def _together(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches, FILE_SCHEMA)
