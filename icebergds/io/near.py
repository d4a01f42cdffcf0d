"""Tells storage that is near from storage with latency."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from icebergds.io.fileio import FileIO
from icebergds.io.locations import is_local
from icebergds.io.threads import WAITING_THREADS


def readers_of(io: FileIO, locations: Iterable[str | None]) -> int:
    """How many threads should read small files, of which all are where the first one is.

    One for files that are near: decoding takes longer than waiting, and threads that decode at once
    hold each other up.
    """
    first = islice((each for each in locations if each is not None), 1)
    return 1 if all(is_local(io.locate(location)) for location in first) else WAITING_THREADS
