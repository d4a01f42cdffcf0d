"""REST catalogs of the tests' own: Java Iceberg's server, which `.ci/servers.sh` fetches."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_ROOT = Path(__file__).resolve().parents[1]
_JARS = _ROOT / ".cache/java/iceberg-rest-1.11.0"
_LAUNCHER = _ROOT / ".ci/rest_server/RestServer.java"


@dataclass(frozen=True)
class RestServer:
    """A server on this machine that lets everybody in.

    Attributes:
        port: of all catalogs.
        directory: of their databases and warehouses.
    """

    port: int
    directory: Path
    process: subprocess.Popen[str]
    _lock: threading.Lock

    def new_catalog(self, **properties: str) -> str:
        """The path of a new, empty catalog.

        Args:
            properties: of Java's catalog, which lie behind the server; dots as two underscores.
        """
        name = uuid.uuid4().hex
        given = {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{self.directory}/{name}.db",
            "jdbc.schema-version": "V1",
            # A table needs its namespace.
            "jdbc.strict-mode": "true",
            "clients": "1",
            "warehouse": str(self.directory / name),
            **{key.replace("__", "."): value for key, value in properties.items()},
        }
        with self._lock:
            line = "\t".join((f"/{name}", *(f"{key}={value}" for key, value in given.items())))
            assert self.process.stdin is not None
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            assert _line(self.process) == f"/{name}"
        return f"/{name}"

    def uri(self, catalog: str, port: int | None = None) -> str:
        """The address of a catalog; by way of another port where one is given."""
        return f"http://127.0.0.1:{port or self.port}{catalog}"

    def warehouse(self, catalog: str) -> Path:
        """The directory of a catalog's tables."""
        return self.directory / catalog.removeprefix("/")


def what_is_missing() -> str | None:
    """What a server needs and is not there."""
    if shutil.which("java") is None:
        return "a JDK (17 or later) is not installed"
    return None if _JARS.is_dir() else "its jars are not there; run .ci/servers.sh"


@contextmanager
def rest_server() -> Iterator[RestServer]:
    """Starts a server, and stops it in the end."""
    directory = Path(tempfile.mkdtemp(prefix="rest-"))
    jvm = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"]
    # Parts of it know AWS, and would look for its region.
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}
    environment |= {"AWS_REGION": "us-east-1"}
    try:
        with open(directory / "log", "w") as log:
            process = subprocess.Popen(
                ["java", *jvm, "-cp", f"{_JARS}/*", str(_LAUNCHER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
        try:
            first = _line(process)
            assert first.isdecimal(), (directory / "log").read_text()
            yield RestServer(int(first), directory, process, threading.Lock())
        finally:
            process.kill()
            process.wait(30)
            for stream in (process.stdin, process.stdout):
                _close(stream)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _close(stream: IO[str] | None) -> None:
    if stream is not None:
        stream.close()
