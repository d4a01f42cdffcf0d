"""Writes that fail: whether they landed after all, and the files that they leave."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from icebergds.catalog.address import TableAddress
from icebergds.errors import NoSuchTableError
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile

WRITE_ID = "icebergds.write-id"
"""The entry of a snapshot's summary that names the write; it stands in the files' names too."""

_LOG = logging.getLogger(__name__)


def is_committed(address: TableAddress, write_id: str) -> bool:
    """Whether the table has a snapshot of a write."""
    try:
        state = address.load()
    except NoSuchTableError:
        return False
    return any(s.summary.get(WRITE_ID) == write_id for s in state.metadata.snapshots)


def delete_files(io: FileIO, files: Iterable[DataFile]) -> None:
    """Deletes files of a write that was not committed. Never raises: some may be left behind."""
    # Vectors share files.
    locations = list(dict.fromkeys(file.file_path for file in files))
    try:
        io.delete_all(locations)
    except Exception as error:
        _LOG.warning("%d files of a failed write were left behind: %s", len(locations), error)
