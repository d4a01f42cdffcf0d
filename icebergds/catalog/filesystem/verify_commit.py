"""Verifies that a newly created metadata file continues the table's history.

Creating `v<N+1>` only proves that the file did not exist at that moment. The table may already have
been many versions ahead, with its own version N+1 deleted, or it may have been dropped.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from icebergds.catalog.metadata_files import list_versions
from icebergds.errors import MissingFileError
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import metadata_to_json, parse_metadata
from icebergds.spec.metadata import TableMetadata, metadata_directory


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A new version of a table and its metadata file.

    Attributes:
        location: the table's root directory.
        version: the version number.
        file: the name of the metadata file.
        previous: the name of the previous version's file; None for a new table.
        base: the metadata of the previous version.
        metadata: the metadata of this version.
    """

    location: str
    version: int
    file: str
    previous: str | None
    base: TableMetadata | None
    metadata: TableMetadata


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """Whether a version continues its table (None: unknown), and if not, why."""

    continues: bool | None
    reason: str = ""


def verify_commit(io: FileIO, new: NewVersion) -> CommitCheck:
    """Verifies a version after its file was created; raises the storage's errors."""
    for wait in _WAITS_S:
        time.sleep(wait)
        check = _verify(io, new, list_versions(io, new.location))
        if check.continues is not None:
            return check
    return CommitCheck(None, "newer versions do not show which version they are based on")


# Old files, including this one, may be deleted right after newer versions are created.
_WAITS_S = (0.0, 0.05, 0.2, 1.0)
_CHANGED = (
    "snapshots",
    "schemas",
    "partition-specs",
    "sort-orders",
    "properties",
    "statistics",
    "partition-statistics",
)


def _verify(io: FileIO, new: NewVersion, versions: dict[int, list[str]]) -> CommitCheck:
    same = versions.get(new.version, ())
    if new.file not in same:
        # Only versions of a table are deleted: this was one, and was deleted by newer commits or
        # with the table.
        return CommitCheck(True)
    if len(same) > 1:
        return CommitCheck(False, f"it has other files of version {new.version}")
    newest = max(versions)
    if newest == new.version:
        dropped = new.previous and new.previous not in versions.get(new.version - 1, ())
        return CommitCheck(not dropped, "it was dropped" if dropped else "")
    # A log contains only file names. But a file in the newest version's log is not deleted before a
    # newer version exists, so no other file has had this name.
    if _logged_ms(_read(io, new, versions[newest][0]), new) is not None:
        return CommitCheck(True)
    # The newest version's log does not go back far enough; the next version's log does.
    successor = _read(io, new, next(iter(versions.get(new.version + 1, ())), None))
    logged_ms = _logged_ms(successor, new)
    if successor is None or logged_ms is None:
        return CommitCheck(None)
    if logged_ms != new.metadata.last_updated_ms:
        return CommitCheck(False, f"it was already at version {newest}")
    return CommitCheck(_has_changes(successor, new) or None)


def _read(io: FileIO, new: NewVersion, file: str | None) -> TableMetadata | None:
    """The metadata of another version; None if it does not exist (any more)."""
    if file is None:
        return None
    path = f"{metadata_directory(new.location)}/{file}"
    try:
        return parse_metadata(io.read_bytes(path), path, io.max_metadata_bytes)
    except MissingFileError:
        return None


def _logged_ms(metadata: TableMetadata | None, new: NewVersion) -> int | None:
    """The time of this version in the log of a newer one; None if it is not in the log."""
    log = () if metadata is None else metadata.metadata_log
    times = {entry.metadata_file.rpartition("/")[2]: entry.timestamp_ms for entry in log}
    return times.get(new.file)


def _has_changes(successor: TableMetadata, new: NewVersion) -> bool:
    """Whether a newer version contains all changes of this one, so that none is lost."""
    before = frozenset() if new.base is None else _parts(new.base)
    now, later = _parts(new.metadata), _parts(successor)
    added, removed = now - before, before - now
    return bool(added or removed) and added <= later and not removed & later


def _parts(metadata: TableMetadata) -> frozenset[tuple[str, str]]:
    """The members of the metadata's lists and maps, as text."""
    document = metadata_to_json(metadata)
    return frozenset(
        (name, json.dumps(part, sort_keys=True))
        for name in _CHANGED
        for part in (document[name].items() if name == "properties" else document.get(name, ()))
    )
