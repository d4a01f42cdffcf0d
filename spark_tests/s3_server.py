"""An S3 server of the tests' own: Adobe S3Mock, which `.ci/servers.sh` fetches."""

from __future__ import annotations

import shutil
import tempfile
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from server_process import QUICK_JVM, free_ports, running

_JAR = Path(__file__).resolve().parents[1] / ".cache/java/s3mock-5.2.0-exec.jar"


@dataclass(frozen=True)
class S3Server:
    """A server on this machine that lets everybody in.

    It looks whether an object is there and then writes it, so it honours conditions only where it
    serves one request at a time: it does so on one port and not on the other.

    Attributes:
        atomic_port: creates an object only if it is absent.
        racing_port: of several requests at once to create an object, lets several through.
    """

    atomic_port: int
    racing_port: int

    @property
    def properties(self) -> dict[str, str]:
        """Iceberg's storage properties that lead to the server."""
        return storage_properties(self.atomic_port)

    @property
    def racing_properties(self) -> dict[str, str]:
        """Those that lead to the port on which conditions do not hold."""
        return storage_properties(self.racing_port)

    def new_location(self) -> str:
        """A location in a bucket of its own: listing a full one takes the server long."""
        bucket = uuid.uuid4().hex
        request = urllib.request.Request(self._url(bucket), method="PUT")
        urllib.request.urlopen(request, timeout=30).close()
        return f"s3://{bucket}/lake"

    def _url(self, bucket: str) -> str:
        return f"http://127.0.0.1:{self.atomic_port}/{bucket}"


def storage_properties(port: int) -> dict[str, str]:
    return {
        "s3.endpoint": f"http://127.0.0.1:{port}",
        "s3.access-key-id": "tester",
        "s3.secret-access-key": "secret",
        "s3.region": "us-east-1",
        "s3.path-style-access": "true",
    }


def what_is_missing() -> str | None:
    """What a server needs and is not there."""
    if shutil.which("java") is None:
        return "a JDK (17 or later) is not installed"
    return None if _JAR.exists() else f"{_JAR.name} is not there; run .ci/servers.sh"


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Starts a server, and stops it in the end."""
    directory = Path(tempfile.mkdtemp(prefix="s3-"))
    server = S3Server(*free_ports(2))
    settings = {
        "server.address": "127.0.0.1",
        "server.port": server.atomic_port,
        "server.ssl.enabled": "false",
        "server.tomcat.threads.max": 1,
        "server.tomcat.threads.min-spare": 1,
        "http.port": server.racing_port,
        "com.adobe.testing.s3mock.store.root": directory,
    }
    arguments = [f"--{name}={value}" for name, value in settings.items()]
    command = ["java", *QUICK_JVM, "-Xmx256m", "-jar", _JAR, *arguments]
    try:
        with running(command, directory, server.new_location):
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)
