"""Tells the most memory that a process has held."""

import re
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
