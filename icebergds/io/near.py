"""Tells storage that is near from storage with latency, where files are read and written ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from icebergds.io.fileio import FileIO
from icebergds.io.locations import is_local
from icebergds.io.threads import WAITING_THREADS, waiting_threads


def readers_of(io: FileIO, locations: Iterable[str | None]) -> int:
    """How many threads should read small files, of which all are where the first one is.

    One for files that are near: decoding takes longer than waiting, and threads that decode at once
    hold each other up.
    """
    first = islice((each for each in locations if each is not None), 1)
    return 1 if all(is_local(io.locate(location)) for location in first) else WAITING_THREADS


def start_reading(io: FileIO, location: str) -> Callable[[], bytes]:
    """Starts `io.read_bytes`; returns what waits for it, and raises its errors.

    Local files are not worth a thread: they are read when they are waited for.
    """
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
