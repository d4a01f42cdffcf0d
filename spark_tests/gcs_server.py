"""A server of Google Cloud Storage of the tests' own, which `.ci/servers.sh` builds."""

from __future__ import annotations

import json
import tempfile
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from server_process import free_ports, listens, running

_PROGRAM = Path(__file__).resolve().parents[1] / ".cache/go/fake-gcs-server"


@dataclass(frozen=True)
class GcsServer:
    """A server on this machine that lets everybody in."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def properties(self) -> dict[str, str]:
        """Iceberg's storage properties that lead to the server."""
        return {"gcs.service.host": self.endpoint, "gcs.no-auth": "true"}

    def new_location(self) -> str:
        """A location in a bucket of its own."""
        bucket = uuid.uuid4().hex
        body = json.dumps({"name": bucket}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.endpoint}/storage/v1/b", body, headers)
        urllib.request.urlopen(request, timeout=30).close()
        return f"gs://{bucket}/lake"


def what_is_missing() -> str | None:
    """What a server needs and is not there."""
    return None if _PROGRAM.exists() else f"{_PROGRAM.name} is not there; run .ci/servers.sh"


@contextmanager
def gcs_server() -> Iterator[GcsServer]:
    """Starts a server, and stops it in the end."""
    server = GcsServer(*free_ports(1))
    command = [
        *(_PROGRAM, "-backend", "memory", "-scheme", "http"),
        *("-host", "127.0.0.1", "-port", server.port),
        *("-public-host", f"127.0.0.1:{server.port}", "-external-url", server.endpoint),
    ]
    with (
        tempfile.TemporaryDirectory(prefix="gcs-") as directory,
        running(command, Path(directory), listens(server.port)),
    ):
        yield server
