"""Azure's blobs with TLS, and a token server in place of Entra: clients have no account key."""

from __future__ import annotations

import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from azure_server import AzureServer, azure_server
from token_server import CLIENT, SECRET, TokenServer, token_server

_PASSWORD = "changeit"


@dataclass(frozen=True)
class EntraServer:
    """A server of blobs, and one of the tokens that it takes.

    Attributes:
        environment: of processes whose clients trust both, and ask this token server.
        java_options: of JVMs that trust both.
        authority: that certified both.
    """

    azure: AzureServer
    tokens: TokenServer
    environment: dict[str, str]
    java_options: str
    authority: trustme.CA

    @property
    def properties(self) -> dict[str, str]:
        """Iceberg's storage properties that lead to the server, with a client instead of a key."""
        found = {k: v for k, v in self.azure.properties.items() if k != "adls.account-key"}
        client = {"tenant-id": "a-tenant", "client-id": CLIENT, "client-secret": SECRET}
        return {**found, **{f"adls.{name}": value for name, value in client.items()}}

    @contextmanager
    def trusted(self) -> Iterator[None]:
        """Makes this process one whose clients trust both, in the block."""
        from aiohttp import connector

        # It is made when the module is imported, before there is an environment.
        self.authority.configure_trust(connector._SSL_CONTEXT_VERIFIED)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            yield


@contextmanager
def entra_server(directory: Path) -> Iterator[EntraServer]:
    """Starts the servers, and stops them in the end.

    Args:
        directory: for certificates.
    """
    authority = trustme.CA()
    trusted, served = directory / "trusted.pem", directory / "served.pem"
    authority.cert_pem.write_to_path(str(trusted))
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(served))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(tls)
    with token_server(tls) as tokens, azure_server(served) as azure:
        now = int(time.time())
        tokens.claims = {
            "aud": "https://storage.azure.com",
            "iss": "https://sts.windows.net/a-tenant/",
            "iat": now - 60,
            "nbf": now - 60,
            "exp": now + 86400,
        }
        environment = {
            "AZURE_AUTHORITY_HOST": f"https://127.0.0.1:{tokens.port}",
            "REQUESTS_CA_BUNDLE": str(trusted),
            "SSL_CERT_FILE": str(trusted),
        }
        yield EntraServer(azure, tokens, environment, _java_options(trusted), authority)


def _java_options(trusted: Path) -> str:
    store = trusted.with_suffix(".p12")
    command = ["keytool", "-importcert", "-noprompt", "-file", trusted, "-keystore", store]
    command += ["-storetype", "PKCS12", "-storepass", _PASSWORD]
    subprocess.run(command, check=True, capture_output=True)
    name = "-Djavax.net.ssl.trustStore"
    return f"{name}={store} {name}Password={_PASSWORD}"
