"""Cleans up after failed writes: checks whether they were committed, and deletes their files."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from icebergds.catalog.address import TableAddress
from icebergds.errors import MissingFileError, NoSuchTableError, StorageError
from icebergds.io.fileio import FileIO
from icebergds.io.locations import undeleted_level
from icebergds.spec.manifest import DataFile

WRITE_ID = "icebergds.write-id"
"""The snapshot summary entry with the id of the write, which its file names contain too."""

_SECONDS_TO_LIST = 60.0
_FILE_ENDINGS = (".parquet", ".orc", ".avro", ".puffin", ".crc")
_LOG = logging.getLogger(__name__)


def is_committed(address: TableAddress, write_id: str) -> bool:
    """Whether the table has a snapshot committed by this write."""
    try:
        state = address.load()
    except NoSuchTableError:
        return False
    return any(s.summary.get(WRITE_ID) == write_id for s in state.metadata.snapshots)


def delete_files(io: FileIO, files: Iterable[DataFile], error: BaseException | None = None) -> None:
    """Deletes files of a write that was not committed. Never raises: some may be left behind.

    Args:
        error: why the write failed; a storage error also mentions the files.
    """
    # Several deletion vectors may be in one file.
    locations = list(dict.fromkeys(file.file_path for file in files))
    outcome = f"the new files of the write were deleted ({len(locations)})"
    try:
        io.delete_all(locations)
    except Exception as failure:
        outcome = (
            f"of the new files of the write ({len(locations)}) some were left behind: {failure}"
        )
        level, count = undeleted_level(locations[0]), len(locations)
        _LOG.log(level, "%d files of a failed write were left behind: %s", count, failure)
    if isinstance(error, StorageError) and locations:
        error.add_outcome(outcome)


def delete_files_of_write(io: FileIO, data_location: str, write_id: str) -> int:
    """Deletes files of a write whose tasks did not report them. Never raises.

    Finds them by name below the data directory; if listing takes too long, some are left behind.

    Returns:
        How many were found.
    """
    deadline = time.monotonic() + _SECONDS_TO_LIST
    waiting, found = [data_location], list[str]()
    try:
        while waiting and time.monotonic() < deadline:
            directory = waiting.pop()
            for name in _names_in(io, directory):
                if write_id in name:
                    found.append(f"{directory}/{name}")
                elif "=" in name or not name.endswith(_FILE_ENDINGS):
                    waiting.append(f"{directory}/{name}")
        io.delete_all(found)
    except Exception as error:
        _LOG.warning("files of the failed write %s were left behind: %s", write_id, error)
        return len(found)
    if waiting:
        _LOG.warning(
            "files of the failed write %s may be left behind below %s", write_id, data_location
        )
    return len(found)


def _names_in(io: FileIO, directory: str) -> list[str]:
    try:
        return io.list(directory)
    except MissingFileError:
        return []
