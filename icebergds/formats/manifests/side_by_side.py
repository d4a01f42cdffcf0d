"""How manifests are read: storage is waited for side by side, and they are decoded in turn.

Decoding takes many short steps in Python, Arrow and numpy. Threads that decode at once wait for one
another at each step, and need up to twice the time of a single one; only large manifests have steps
that are long enough for several cores.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from icebergds.io.fileio import FileIO
from icebergds.io.locations import is_local
from icebergds.io.threads import WAITING_THREADS
from icebergds.spec.manifest import ManifestFile

MANIFEST_READERS = 8
"""Threads that read files of metadata, where what they wait for is not known."""

# For small manifests: object stores have high latency.
_REMOTE_READERS = 24
_SMALL_BYTES = 256 * 2**10
# From here on, two cores decode faster than one.
_LARGE_BYTES = 2**20
_MOST_DECODERS = 4
_BYTES_AHEAD = 16 * 2**20


def reading_ahead(io: FileIO, manifests: Sequence[ManifestFile]) -> FileIO:
    """The storage to read manifests from in this order: remote ones are fetched ahead."""
    most = _BYTES_AHEAD // max(_largest(manifests), 1)
    paths = [manifest.manifest_path for manifest in manifests]
    return io.reading_ahead(paths, max(1, min(most, WAITING_THREADS)))


def manifest_decoders(manifests: Sequence[ManifestFile], most_bytes: int | None = None) -> int:
    """How many threads decode manifests that are near, or fetched ahead; at least one.

    Args:
        most_bytes: so many bytes of manifests at a time at most. Decoding takes 10 to 20 times as
            much memory.
    """
    largest = _largest(manifests)
    return _bounded(_cores() if largest >= _LARGE_BYTES else 1, largest, most_bytes)


def manifest_readers(
    io: FileIO, manifests: Sequence[ManifestFile], most_bytes: int | None = None
) -> int:
    """How many threads read manifests, each its own, and decode them; at least one.

    Args:
        most_bytes: as for `manifest_decoders`.
    """
    if not manifests or is_local(io.locate(manifests[0].manifest_path)):
        return manifest_decoders(manifests, most_bytes)
    largest = _largest(manifests)
    readers = MANIFEST_READERS if largest > _SMALL_BYTES else _REMOTE_READERS
    return _bounded(readers, largest, most_bytes)


def decoding(size: int) -> AbstractContextManager[object]:
    """Waits for this thread's turn to decode; the turn ends with the block, which reads nothing.

    Args:
        size: of what is decoded, in bytes as stored.
    """
    return _turns.large if size >= _LARGE_BYTES else _turns.small


@contextmanager
def uncollected() -> Iterator[None]:
    """Keeps Python from looking for unreachable cycles until the block ends.

    Objects of files have no cycles, and while many are made, it takes as long as making them.
    Threads may overlap.
    """
    with _collection.lock:
        if not _collection.blocks:
            _collection.is_on = gc.isenabled()
            gc.disable()
        _collection.blocks += 1
    try:
        yield
    finally:
        with _collection.lock:
            _collection.blocks -= 1
            if not _collection.blocks and _collection.is_on:
                gc.enable()


class _Collection:
    """What `uncollected` changes: whether it is on without it, and how many blocks run."""

    def __init__(self, is_on: bool) -> None:
        self.lock, self.is_on, self.blocks = threading.Lock(), is_on, 0


class _Turns:
    def __init__(self) -> None:
        self.small = threading.Lock()
        self.large = threading.Semaphore(_cores())


def _largest(manifests: Sequence[ManifestFile]) -> int:
    return max((manifest.manifest_length for manifest in manifests), default=0)


def _bounded(threads: int, largest: int, most_bytes: int | None) -> int:
    return threads if most_bytes is None else max(1, min(threads, most_bytes // max(largest, 1)))


def _cores() -> int:
    return max(1, min(_MOST_DECODERS, os.cpu_count() or 1))


def _renew() -> None:
    """A fork has none of the threads whose turn it was, and which kept garbage."""
    global _turns, _collection
    _turns = _Turns()
    if _collection.blocks and _collection.is_on:
        gc.enable()
    _collection = _Collection(True)


_turns = _Turns()
_collection = _Collection(True)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
