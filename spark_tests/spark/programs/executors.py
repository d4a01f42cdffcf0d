"""Kills executors of the cluster, and Python workers, from inside of a task."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

_EXECUTOR = b"CoarseGrainedExecutorBackend"


def kill_executor() -> None:
    """Kills the JVM that this process works for."""
    os.kill(_executor(), signal.SIGKILL)
    time.sleep(5)


def kill_workers() -> None:
    """Kills the other Python workers of this executor: that of the writer is among them."""
    executor = _executor()
    for entry in Path("/proc").iterdir():
        pid = int(entry.name) if entry.name.isdigit() else os.getpid()
        if pid != os.getpid() and _parent(_parent(pid)) == executor:
            os.kill(pid, signal.SIGKILL)
    time.sleep(5)


def _executor() -> int:
    """The process that started the daemon which started this one.

    A worker that outlived its executor has another process above it, which is not to be killed.
    """
    pid = _parent(os.getppid())
    if _EXECUTOR not in Path(f"/proc/{pid}/cmdline").read_bytes():
        raise RuntimeError(f"process {pid} is no executor")
    return pid


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return 0
