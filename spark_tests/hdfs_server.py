"""An HDFS cluster of the tests' own, of one process, which `.ci/servers.sh` fetches."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
    server = HdfsServer(*_free_ports())
    jvm = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{_JARS}/*"]
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}
    log = directory / "log"
    try:
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [
                    *("java", *jvm, str(_SOURCE)),
                    *(str(server.rpc_port), str(server.http_port), str(directory / "data")),
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=directory,
            )
        try:
            for _ in range(1200):
                assert process.poll() is None, log.read_text()
                if b"READY" in log.read_bytes():
                    break
                time.sleep(0.1)
            else:
                raise AssertionError(f"HDFS did not start: {log.read_text()}")
            yield server
        finally:
            process.kill()
            process.wait(30)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for opened in (one, other):
            opened.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1]), int(other.getsockname()[1])
