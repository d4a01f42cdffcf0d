"""Tells the most memory that processes have held; on Linux."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def peak_megabytes(process: int | str = "self") -> float:
    """Resident memory, in megabytes, since a process started its program; 0 if it has ended.

    `resource.getrusage` would count what the parent process held when it started this one.
    """
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def python_processes() -> Iterator[int]:
    """This process and those that it started, directly or not, that run Python."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            _, _, fields = stat.read_text().rpartition(")")
            parents[int(stat.parent.name)] = int(fields.split()[1])
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    for pid in below:
        with suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().startswith("python"):
                yield pid
