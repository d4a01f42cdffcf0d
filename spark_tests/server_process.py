"""Processes of servers that tests start: ready when they answer, ended with the block."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of JVMs that live for a few minutes: optimising their code does not pay."""
QUICK_SPARK = " ".join(
    (
        *QUICK_JVM,
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:-BytecodeVerificationRemote",
        "-Dspark.icebergpy.local-rows=0",
    )
)
"""The same for Spark, whose many classes are not verified either.

Tables of tests are small, and most tests are of what jobs read, so drivers read no rows.
"""


@contextmanager
def running(
    command: Sequence[object],
    directory: Path,
    answers: Callable[[], object],
    *,
    environment: Mapping[str, str] | None = None,
    seconds: int = 120,
) -> Iterator[None]:
    """A process, from when it answers to the end of the block, where it is killed.

    Args:
        directory: in which it runs, and in which the file `log` gets what it says.
        answers: asks it something; raises OSError as long as it does not answer.
        environment: variables beside those of this process.
        seconds: how long to wait for an answer: many times what it takes, for the machine may be
            busy.
    """
    log = directory / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=directory,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Not for servers: it is how the JVMs of Spark are made quick.
            env={**{k: v for k, v in os.environ.items() if k != _JVM}, **(environment or {})},
        )
    try:
        _wait(process, log, answers, seconds)
        yield
    finally:
        process.kill()
        process.wait(30)


def listens(port: int) -> Callable[[], object]:
    """Whether a server accepts connections, for `running`."""
    return lambda: socket.create_connection(("127.0.0.1", port), 1).close()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    servers = [socket.socket() for _ in range(count)]
    try:
        for server in servers:
            server.bind(("127.0.0.1", 0))
        return [int(server.getsockname()[1]) for server in servers]
    finally:
        for server in servers:
            server.close()


@contextmanager
def connect_port() -> Iterator[None]:
    """PySpark knows one port for a server of Spark Connect: other test runs wait for it."""
    with Path(tempfile.gettempdir(), "icebergds-spark-connect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_JVM = "JAVA_TOOL_OPTIONS"


def _wait(
    process: subprocess.Popen[bytes], log: Path, answers: Callable[[], object], seconds: int
) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            answers()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"{process.args} did not start: {log.read_text()}")
