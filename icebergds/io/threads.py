"""Threads of this process that wait for storage with latency."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

WAITING_THREADS = 32


def waiting_threads() -> ThreadPoolExecutor:
    """The threads of this process; a fork of another one has none of its threads."""
    global _threads
    if _threads is None or _threads[0] != os.getpid():
        _threads = os.getpid(), ThreadPoolExecutor(WAITING_THREADS, "icebergds-storage")
    return _threads[1]


_threads: tuple[int, ThreadPoolExecutor] | None = None
