"""A server of Azure's blobs of the tests' own: Azurite, which `.ci/servers.sh` fetches."""

from __future__ import annotations

import base64
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from server_process import free_ports, listens, running

if TYPE_CHECKING:
    from azure.storage.blob import BlobServiceClient

_SCRIPT = (
    Path(__file__).resolve().parents[1]
    / ".cache/azurite/node_modules/azurite/dist/src/blob/main.js"
)
ACCOUNT = "devaccount"
KEY = base64.b64encode(b"a key of an account of the tests" * 2).decode()


@dataclass(frozen=True)
class AzureServer:
    """A server on this machine, with one account, that demands its key or a signature.

    Attributes:
        scheme: `https` if it also takes the tokens of clients.
    """

    port: int
    scheme: str = "http"

    @property
    def endpoint(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/{ACCOUNT}"

    @property
    def properties(self) -> dict[str, str]:
        """Iceberg's storage properties that lead to the server, with the account's key."""
        return storage_properties(self.port, self.scheme)

    def client(self) -> BlobServiceClient:
        """Another client of the server."""
        from azure.storage.blob import BlobServiceClient

        return BlobServiceClient(self.endpoint, credential=KEY)

    def new_location(self) -> str:
        """A location in a container of its own."""
        container = uuid.uuid4().hex
        with self.client() as client:
            client.create_container(container)
        return f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net/lake"

    def signature(self, container: str, *, permission: str) -> str:
        """A shared access signature of a container, such as a catalog hands out."""
        from azure.storage.blob import generate_container_sas

        return generate_container_sas(
            ACCOUNT,
            container,
            KEY,
            permission=permission,
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )


def storage_properties(port: int, scheme: str = "http") -> dict[str, str]:
    return {
        "adls.account-name": ACCOUNT,
        "adls.account-key": KEY,
        "adls.blob-storage-scheme": scheme,
        "adls.blob-storage-authority": f"127.0.0.1:{port}",
    }


def what_is_missing() -> str | None:
    """What a server needs and is not there."""
    if shutil.which("node") is None:
        return "Node.js is not installed"
    return None if _SCRIPT.exists() else "Azurite is not there; run .ci/servers.sh"


@contextmanager
def azure_server(certificate: Path | None = None) -> Iterator[AzureServer]:
    """Starts a server, and stops it in the end.

    Args:
        certificate: the PEM file with its certificate and key; None for a server without TLS.
    """
    directory = Path(tempfile.mkdtemp(prefix="azurite-"))
    server = AzureServer(*free_ports(1), "http" if certificate is None else "https")
    command = [
        *("node", _SCRIPT, "--blobHost", "127.0.0.1", "--blobPort", server.port),
        *("--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"),
    ]
    if certificate is not None:
        command += ["--cert", certificate, "--key", certificate, "--oauth", "basic"]
    accounts = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    try:
        with running(command, directory, listens(server.port), environment=accounts):
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)
