"""Whether a metadata file that was just created continues the table's history.

Creating `v<N+1>` proves that nobody else had that file at that moment. It may be that the table
was much further already, and had deleted its own version N+1; or that it was dropped.
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
    """A metadata file that was created.

    Attributes:
        location: the table's root directory.
        version: N of the file.
        file: its name.
        previous: name of the file of the version before; None for a new table.
        base: metadata of the version before.
        metadata: what the file holds.
    """

    location: str
    version: int
    file: str
    previous: str | None
    base: TableMetadata | None
    metadata: TableMetadata


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """Whether a version is part of its table (None: that cannot be told), and if not, why."""

    continues: bool | None
    reason: str = ""


def verify_commit(io: FileIO, new: NewVersion) -> CommitCheck:
    """Looks at the table after a version was created; raises what the storage raises."""
    for wait in _WAITS_S:
        time.sleep(wait)
        check = _verify(io, new, list_versions(io, new.location))
        if check.continues is not None:
            return check
    return CommitCheck(None, "newer versions do not tell what they came from")


# Old files, this one too, may be deleted a moment after newer versions are there.
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
        # Nobody deletes what is no part of a table: it was, and newer commits deleted it, or the
        # table was dropped.
        return CommitCheck(True)
    if len(same) > 1:
        return CommitCheck(False, f"it has other files of version {new.version}")
    newest = max(versions)
    if newest == new.version:
        dropped = new.previous and new.previous not in versions.get(new.version - 1, ())
        return CommitCheck(not dropped, "it was dropped" if dropped else "")
    # Logs have names only. But what a log names is not deleted before a newer version is there:
    # where the newest one names this file, nobody else's was in its place.
    if _logged_ms(_read(io, new, versions[newest][0]), new) is not None:
        return CommitCheck(True)
    # The newest one's log does not go that far back; the next one's does.
    successor = _read(io, new, next(iter(versions.get(new.version + 1, ())), None))
    logged_ms = _logged_ms(successor, new)
    if successor is None or logged_ms is None:
        return CommitCheck(None)
    if logged_ms != new.metadata.last_updated_ms:
        return CommitCheck(False, f"it was at version {newest} already")
    return CommitCheck(_has_changes(successor, new) or None)


def _read(io: FileIO, new: NewVersion, file: str | None) -> TableMetadata | None:
    """The metadata of another version; None where it is not there (any more)."""
    path = f"{metadata_directory(new.location)}/{file}"
    try:
        return None if file is None else parse_metadata(io.read_bytes(path), path)
    except MissingFileError:
        return None


def _logged_ms(metadata: TableMetadata | None, new: NewVersion) -> int | None:
    """When the version was made, by the log of a newer one; None where that has it not."""
    log = () if metadata is None else metadata.metadata_log
    times = {entry.metadata_file.rpartition("/")[2]: entry.timestamp_ms for entry in log}
    return times.get(new.file)


def _has_changes(successor: TableMetadata, new: NewVersion) -> bool:
    """Whether a newer version has what this one changed, so that nothing of it can be lost."""
    before = frozenset() if new.base is None else _parts(new.base)
    now, later = _parts(new.metadata), _parts(successor)
    added, removed = now - before, before - now
    return bool(added or removed) and added <= later and not removed & later


def _parts(metadata: TableMetadata) -> frozenset[tuple[str, str]]:
    """Members of the metadata's lists and maps, as text."""
    document = metadata_to_json(metadata)
    return frozenset(
        (name, json.dumps(part, sort_keys=True))
        for name in _CHANGED
        for part in (document[name].items() if name == "properties" else document.get(name, ()))
    )
