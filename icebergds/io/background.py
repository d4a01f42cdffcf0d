"""Starts to read and to write whole files while the caller does something else.

Local files are not worth a thread: they are read when they are waited for, and written at once.
"""

from __future__ import annotations

from collections.abc import Callable

from icebergds.io.fileio import FileIO
from icebergds.io.locations import is_local
from icebergds.io.threads import waiting_threads


def start_reading(io: FileIO, location: str) -> Callable[[], bytes]:
    """Starts `io.read_bytes`; returns what waits for it, and raises its errors."""
    if is_local(io.locate(location)):
        return lambda: io.read_bytes(location)
    return waiting_threads().submit(io.read_bytes, location).result


def start_writing(io: FileIO, location: str, data: bytes) -> Callable[[], None]:
    """Starts `io.write`; returns what waits for it, and raises its errors.

    Raises:
        StorageError: the file is local and could not be written.
    """
    if is_local(io.locate(location)):
        io.write(location, data)
        return lambda: None
    return waiting_threads().submit(io.write, location, data).result
