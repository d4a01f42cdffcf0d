"""A token server of the tests' own, which speaks OAuth2 (RFC 6749, RFC 8693)."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

CLIENT, SECRET = "client", "s3cret:with%20colon"


@dataclass
class TokenServer:
    """Issues tokens that last for a while.

    Attributes:
        lifetime_s: of new tokens; None: they do not tell.
        broken: answers of status 503 to come.
        requests: the forms that were sent, with the header `Authorization`.
        valid: tokens, and until when they are valid.
        issued, refused: how many tokens were.
        claims: what the tokens say beside.
    """

    port: int = 0
    lifetime_s: float | None = 3600
    broken: int = 0
    requests: list[dict[str, str]] = field(default_factory=list)
    valid: dict[str, float] = field(default_factory=dict)
    issued: int = 0
    refused: int = 0
    claims: dict[str, Any] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}/token"

    def accepts(self, header: str) -> bool:
        """Whether a header `Authorization` has a valid token."""
        kind, _, token = header.partition(" ")
        return kind == "Bearer" and self.valid.get(token, 0) > time.time()

    def new_token(self) -> str:
        """A new token, a JSON web token without a signature."""
        expires = time.time() + (self.lifetime_s or 3600)
        self.issued += 1
        claims = {"exp": expires, "jti": self.issued, **self.claims}
        if self.lifetime_s is None:
            del claims["exp"]
        text = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
        token = f"e30.{text}.signature-{self.issued}"
        self.valid[token] = expires
        return token

    def answer(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.requests.append(form)
        if self.broken > 0:
            self.broken -= 1
            return 503, {"error": "temporarily_unavailable"}
        if not self._is_known(form):
            self.refused += 1
            # As bad servers do, it says what it got.
            told = f"unknown client with secret {form.get('client_secret')}"
            return 401, {"error": "invalid_client", "error_description": told}
        answer: dict[str, Any] = {"access_token": self.new_token(), "token_type": "bearer"}
        if self.lifetime_s is not None:
            answer["expires_in"] = self.lifetime_s
        return 200, answer

    def _is_known(self, form: dict[str, str]) -> bool:
        if form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            # As service accounts of Google do.
            return "assertion" in form
        if form["grant_type"] != "client_credentials":
            return form["subject_token"] == "identity" or form["subject_token"] in self.valid
        login = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if form.get("authorization") == f"Basic {login}":
            return True
        return (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)


@contextmanager
def token_server(tls: ssl.SSLContext | None = None) -> Iterator[TokenServer]:
    """Starts a server, and stops it in the end.

    Args:
        tls: with its certificate; None for a server without TLS.
    """
    tokens = TokenServer()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = dict(parse_qsl(body))
            form["authorization"] = self.headers.get("Authorization", "")
            status, answer = tokens.answer(form)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tokens.port = server.server_address[1]
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield tokens
    finally:
        server.shutdown()
        server.server_close()
