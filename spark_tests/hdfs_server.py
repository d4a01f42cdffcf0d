"""An HDFS cluster of the tests' own, of one process, which `.ci/servers.sh` fetches."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from server_process import QUICK_JVM, free_ports, running

_ROOT = Path(__file__).resolve().parents[1]
_JARS = _ROOT / ".cache/java/hdfs-3.4.2"
_SOURCE = _ROOT / ".ci/hdfs_server/HdfsServer.java"


@dataclass(frozen=True)
class HdfsServer:
    """A cluster on this machine that trusts everybody.

    Attributes:
        rpc_port: of the name node, for Hadoop's own clients.
        http_port: of the name node, for WebHDFS.
    """

    rpc_port: int
    http_port: int

    @property
    def properties(self) -> dict[str, str]:
        """Iceberg's storage properties."""
        return {"hdfs.user": "tester"}

    def new_location(self) -> str:
        """A location in a directory of its own."""
        return f"webhdfs://127.0.0.1:{self.http_port}/{uuid.uuid4().hex}/lake"


def what_is_missing() -> str | None:
    """What a cluster needs and is not there."""
    if shutil.which("java") is None:
        return "a JDK (17 or later) is not installed"
    return None if _JARS.exists() else "its jars are not there; run .ci/servers.sh"


@contextmanager
def hdfs_server() -> Iterator[HdfsServer]:
    """Starts a cluster, and stops it in the end."""
    directory = Path(tempfile.mkdtemp(prefix="hdfs-"))
    server = HdfsServer(*free_ports(2))
    command = [
        *("java", *QUICK_JVM, "-Xmx512m", "-cp", f"{_JARS}/*", _SOURCE),
        *(server.rpc_port, server.http_port, directory / "data"),
    ]

    def says_that_it_is_ready() -> None:
        if b"READY" not in (directory / "log").read_bytes():
            raise ConnectionError

    try:
        with running(command, directory, says_that_it_is_ready):
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)
