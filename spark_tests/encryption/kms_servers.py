"""Servers of the tests' own that speak what Google's and Azure's key services speak.

They wrap with AES-GCM under a key of each name; Azure's under one of each version of a name.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trustme

from icebergds.encryption.ciphers import WrongKey, open_sealed, seal

TOKEN = "a-very-secret-token"


@dataclass
class KmsServer:
    """A server, and the paths that it was asked for.

    Attributes:
        versions: of Azure's keys; the last one is used for a key without a version.
    """

    port: int = 0
    asked: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=lambda: ["v1"])

    def gcp(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """As of projects.locations.keyRings.cryptoKeys."""
        name, _, verb = path.removeprefix("/v1/").rpartition(":")
        if not name.endswith("/cryptoKeys/table"):
            return 404, {"error": {"code": 404, "status": "NOT_FOUND", "message": f"no {name}"}}
        if verb == "encrypt":
            wrapped = seal(_key(name), base64.b64decode(body["plaintext"]))
            return 200, {"name": name, "ciphertext": base64.b64encode(wrapped).decode()}
        try:
            key = open_sealed(_key(name), base64.b64decode(body["ciphertext"]))
        except WrongKey:
            error = {"code": 400, "status": "INVALID_ARGUMENT", "message": "Decryption failed"}
            return 400, {"error": error}
        return 200, {"plaintext": base64.b64encode(key).decode()}

    def azure(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """As of keys of a vault."""
        _, _, name, *version, verb = path.split("/")
        used = version[0] if version and version[0] else self.versions[-1]
        key_id = f"https://127.0.0.1:{self.port}/keys/{name}/{used}"
        if name != "table":
            return 404, {"error": {"code": "KeyNotFound", "message": f"no key {name}"}}
        value = _from_url(body["value"])
        if verb.lower() == "wrapkey":
            return 200, {"kid": key_id, "value": _to_url(seal(_key(key_id), value))}
        try:
            return 200, {"kid": key_id, "value": _to_url(open_sealed(_key(key_id), value))}
        except WrongKey:
            return 400, {"error": {"code": "BadParameter", "message": "bad parameter"}}


@contextmanager
def gcp_server() -> Iterator[KmsServer]:
    """Starts a server like Google's, and stops it in the end."""
    server = KmsServer()
    with _running(server, server.gcp, {}, None):
        yield server


@contextmanager
def azure_server(directory: Path) -> Iterator[tuple[KmsServer, str]]:
    """Starts a server like Azure's, and stops it in the end; also the file of who certified it."""
    authority = trustme.CA()
    trusted = directory / "trusted.pem"
    authority.cert_pem.write_to_path(str(trusted))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    server = KmsServer()
    # Clients want the resource of their tokens to be a domain that the vault is in.
    challenge = {
        "WWW-Authenticate": 'Bearer authorization="https://login.windows.net/a-tenant", '
        'resource="https://0.0.1:{port}"'
    }
    with _running(server, server.azure, challenge, tls):
        yield server, str(trusted)


def _key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _to_url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _from_url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


_Answer = Callable[[str, dict[str, Any]], tuple[int, dict[str, Any]]]


@contextmanager
def _running(
    served: KmsServer, answer: _Answer, challenge: dict[str, str], tls: ssl.SSLContext | None
) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            # Azure's client asks for the key, to use its public part; it may not have that.
            self._send(403, {"error": {"code": "Forbidden", "message": "no permission to get"}}, {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                headers = {k: v.format(port=served.port) for k, v in challenge.items()}
                self._send(401, {"error": {"code": 401, "message": "no token"}}, headers)
                return
            path = urlsplit(self.path).path
            served.asked.append(path)
            self._send(*answer(path, json.loads(body)), {})

        def _send(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.port = server.server_address[1]
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
