"""What the processes of a program open of tables' metadata, step by step.

Python raises an audit event for each file that it opens and each connection to SQLite, in every
process alike: the program's own, and those in which Spark plans, reads, writes and commits. So
reads are counted without a word of the package knowing it, as long as tables are on local disk.
A program says with `step` what it is doing; what it starts in the background belongs to the step
in which it is done.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

LOG = "ICEBERGDS_READ_LOG"
"""The environment variable that names the log; without it nothing is noted."""


@dataclass
class Reads:
    """How often what was read in a step, by path.

    Attributes:
        metadata: metadata files.
        hints: version hints of file system tables.
        manifest_lists, manifests: by the names that writers give to them.
        connections: to databases of catalogs.
    """

    metadata: Counter[str] = field(default_factory=Counter)
    hints: Counter[str] = field(default_factory=Counter)
    manifest_lists: Counter[str] = field(default_factory=Counter)
    manifests: Counter[str] = field(default_factory=Counter)
    connections: Counter[str] = field(default_factory=Counter)

    def totals(self) -> dict[str, int]:
        """How many reads of each kind; kinds without any are left out."""
        return {
            name: found.total()
            for name, found in vars(self).items()
            if isinstance(found, Counter) and found
        }


@contextmanager
def step(name: str) -> Iterator[None]:
    """What is read in the block belongs to a step of this name."""
    _note({"step": name})
    try:
        yield
    finally:
        _note({"step": None})


def install() -> None:
    """Notes, from now on, what this process and its children open."""
    path = os.environ.get(LOG)
    if path is None:
        return
    global _log
    # Opened once: noting something is not to be noted. Appends of a line are not torn apart.
    _log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    sys.addaudithook(_audit)


def reads_by_step(lines: Iterable[str]) -> dict[str, Reads]:
    """The reads of each step of a log; a step of a name that comes again is the same one."""
    steps: dict[str, Reads] = {}
    current: Reads | None = None
    for line in lines:
        entry = json.loads(line)
        if "step" in entry:
            name = entry["step"]
            current = None if name is None else steps.setdefault(name, Reads())
        elif current is not None:
            getattr(current, entry["kind"])[entry["path"]] += 1
    return steps


_log: int | None = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, str | os.PathLike) and not flags & (os.O_WRONLY | os.O_RDWR):
            kind = _kind(os.fspath(path))
            if kind is not None:
                _note({"kind": kind, "path": os.fspath(path), "process": os.getpid()})
    elif event == "sqlite3.connect":
        _note({"kind": "connections", "path": str(arguments[0]), "process": os.getpid()})


def _kind(path: Any) -> str | None:
    if not isinstance(path, str):
        return None
    name = os.path.basename(path)
    if name.endswith((".metadata.json", ".metadata.json.gz", ".gz.metadata.json")):
        return "metadata"
    if name == "version-hint.text":
        return "hints"
    if name.endswith(".avro") and os.path.basename(os.path.dirname(path)) == "metadata":
        return "manifest_lists" if name.startswith("snap-") else "manifests"
    return None


def _note(entry: dict[str, Any]) -> None:
    if _log is not None:
        os.write(_log, f"{json.dumps(entry)}\n".encode())
