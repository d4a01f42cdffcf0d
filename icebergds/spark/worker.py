"""Avoids per-task overhead of PySpark and its JVM connection in Python workers."""

from __future__ import annotations

import gc
import os
import socket
import sys
from contextlib import suppress
from zipimport import zipimporter

_times_settled = 0


def settle_worker() -> None:
    """Reduces what PySpark does around each task, which can take longer than the task itself.

    PySpark collects garbage after each task; freezing what is imported so far makes that fast.
    Call it before a task reads its rows.
    """
    global _times_settled
    # The first task imports what it needs, after which PySpark has collected garbage.
    if _times_settled < 2:
        gc.freeze()
        _times_settled += 1
    spare_archives()
    acknowledge()


def spare_archives() -> None:
    """Drops cached importers of PySpark's zip archives; the next import re-creates them.

    Before each call, PySpark up to 4.1 makes every cached importer read the directory of its
    archive again, once for each package of PySpark, which takes a tenth of a second.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and _is_of_spark(finder):
            sys.path_importer_cache.pop(path, None)


def acknowledge() -> None:
    """Acknowledges data received on this process's TCP connections at once (Linux only).

    Spark sends a task in parts, and TCP may hold a small part back until the one before it is
    acknowledged (Nagle's algorithm). The kernel would delay it by 40 ms to send it with an answer,
    but a task does not answer before it has all parts.
    """
    # With a default timeout, a socket object makes the connection non-blocking for all.
    if sys.platform != "linux" or socket.getdefaulttimeout() is not None:
        return
    # Not every system lets a process list its open files.
    with suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            _acknowledge(int(name))


def _acknowledge(descriptor: int) -> None:
    # Not all are TCP sockets, or still open.
    with suppress(OSError):
        connection = socket.socket(fileno=descriptor)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        finally:
            connection.detach()


def _is_of_spark(finder: zipimporter) -> bool:
    return os.path.basename(finder.archive).startswith(("pyspark", "py4j", "spark-core"))
