"""A proxy in front of an S3 server that lets only some access keys in."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_KEY = re.compile(r"Credential=([^/]+)/")
_REFUSED = b"<Error><Code>ExpiredToken</Code><Message>The token has expired</Message></Error>"
_OF_CONNECTION = ("connection", "transfer-encoding", "content-length", "keep-alive")


@dataclass
class S3Guard:
    """Forwards the requests of valid keys.

    Attributes:
        valid: prefixes of paths by access key.
        used: the keys of requests in order, valid or not.
    """

    server_port: int
    port: int = 0
    valid: dict[str, str] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)


@contextmanager
def s3_guard(server_port: int) -> Iterator[S3Guard]:
    """Starts a guard, and stops it in the end."""
    guard = S3Guard(server_port)

    class Handler(_Handler):
        def forward(self) -> None:
            _forward(guard, self)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    guard.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield guard
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def forward(self) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.forward()

    def do_HEAD(self) -> None:
        self.forward()

    def do_PUT(self) -> None:
        self.forward()

    def do_POST(self) -> None:
        self.forward()

    def do_DELETE(self) -> None:
        self.forward()


def _forward(guard: S3Guard, handler: BaseHTTPRequestHandler) -> None:
    body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    found = _KEY.search(handler.headers.get("Authorization", ""))
    key = found[1] if found else ""
    guard.used.append(key)
    prefix = guard.valid.get(key)
    if prefix is None or not handler.path.startswith(prefix):
        _answer(handler, 403, {"Content-Type": "application/xml"}, _REFUSED)
        return
    connection = http.client.HTTPConnection("127.0.0.1", guard.server_port, timeout=60)
    try:
        headers = {k: v for k, v in handler.headers.items() if k.lower() != "connection"}
        connection.request(handler.command, handler.path, body or None, headers)
        response = connection.getresponse()
        data = response.read()
        kept = {k: v for k, v in response.getheaders() if k.lower() not in _OF_CONNECTION}
        length = response.getheader("Content-Length")
        _answer(handler, response.status, kept, data, length)
    finally:
        connection.close()


def _answer(
    handler: BaseHTTPRequestHandler,
    status: int,
    headers: dict[str, str],
    data: bytes,
    length: str | None = None,
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    if status != 204:
        is_head = handler.command == "HEAD"
        handler.send_header("Content-Length", (length if is_head else None) or str(len(data)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(data)
