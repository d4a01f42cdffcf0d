"""A MinIO server of the tests' own, which `.ci/servers.sh` builds."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from s3_server import storage_properties
from server_process import free_ports, listens, running

_PROGRAM = Path(__file__).resolve().parents[1] / ".cache/go/minio"
_KEYS = "tester", "secret-of-tester"


@dataclass(frozen=True)
class MinioServer:
    """A server on this machine with one user, whose signatures it checks."""

    port: int

    @property
    def properties(self) -> dict[str, str]:
        """Iceberg's storage properties that lead to the server."""
        key, secret = _KEYS
        keys = {"s3.access-key-id": key, "s3.secret-access-key": secret}
        return {**storage_properties(self.port), **keys}

    def new_location(self) -> str:
        """A location in a bucket of its own."""
        bucket = uuid.uuid4().hex
        self._client().create_bucket(Bucket=bucket)
        return f"s3://{bucket}/lake"

    def _client(self) -> Any:
        from botocore.session import Session

        key, secret = _KEYS
        return Session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
        )


def what_is_missing() -> str | None:
    """What a server needs and is not there."""
    return None if _PROGRAM.exists() else f"{_PROGRAM.name} is not there; run .ci/servers.sh"


@contextmanager
def minio_server() -> Iterator[MinioServer]:
    """Starts a server, and stops it in the end."""
    directory = Path(tempfile.mkdtemp(prefix="minio-"))
    server = MinioServer(*free_ports(1))
    command = [_PROGRAM, "server", "--address", f"127.0.0.1:{server.port}", directory / "data"]
    key, secret = _KEYS
    environment = {
        "MINIO_ROOT_USER": key,
        "MINIO_ROOT_PASSWORD": secret,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }
    try:
        with running(command, directory, listens(server.port), environment=environment):
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)
