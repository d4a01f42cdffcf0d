"""A proxy in front of a server of AWS's services that spoils the answer to a request."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias


class Spoil(Enum):
    """What becomes of a request."""

    CUT_BEFORE = "the server never gets it, the connection breaks"
    CUT_AFTER = "the server carries it out, the connection breaks"
    ERROR_AFTER = "the server carries it out, the answer is an error of a server"
    HALF = "the server carries it out, half of the answer arrives"


@dataclass(frozen=True)
class Refusal:
    """The server never gets the request, the answer is an error of AWS.

    Attributes:
        xml: whether the service is one that answers in XML.
    """

    status: int
    code: str
    message: str
    xml: bool = False

    @property
    def body(self) -> bytes:
        if self.xml:
            error = f"<Code>{self.code}</Code><Message>{self.message}</Message>"
            return f"<ErrorResponse><Error>{error}</Error></ErrorResponse>".encode()
        return json.dumps({"__type": self.code, "message": self.message}).encode()


_Spoil: TypeAlias = Spoil | Refusal | None


@dataclass
class FaultyProxy:
    """Forwards requests, until some of them are to be spoilt.

    Attributes:
        seen: the names of the requests, in order.
    """

    server_port: int
    port: int = 0
    seen: list[str] = field(default_factory=list)
    _wanted: str = ""
    _spoils: list[_Spoil] = field(default_factory=list)
    _then: Callable[[], object] = bool

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spoil(
        self, request: str, *spoils: Spoil | Refusal | None, then: Callable[[], object] = bool
    ) -> None:
        """Spoils the next requests of a name, each in its way; None leaves one alone.

        Args:
            request: the operation, such as `UpdateTable`; for services that have paths, the method
                and a part of the path; empty for all.
            then: called after the last of them, before the client gets to know.
        """
        self._wanted, self._spoils, self._then = request, list(spoils), then
        self.seen.clear()

    def next_spoil(self, name: str) -> tuple[_Spoil, Callable[[], object]]:
        self.seen.append(name)
        if not self._spoils or not _is(name, self._wanted):
            return None, bool
        spoil = self._spoils.pop(0)
        return spoil, bool if self._spoils else self._then


def _is(name: str, wanted: str) -> bool:
    method, _, path = wanted.partition(" ")
    return wanted in ("", name) or (bool(path) and name.startswith(method) and path in name)


@contextmanager
def faulty_proxy(server_port: int) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(server_port)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            target = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
            spoil, then = proxy.next_spoil(target or f"{self.command} {self.path}")
            answer = None
            if spoil is not Spoil.CUT_BEFORE and not isinstance(spoil, Refusal):
                answer = self._ask(body)
            then()
            self._answer(spoil, answer)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = forward  # noqa: N815

        def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            server = http.client.HTTPConnection("127.0.0.1", proxy.server_port, timeout=60)
            server.request(self.command, self.path, body, dict(self.headers))
            response = server.getresponse()
            answer = response.status, response.getheaders(), response.read()
            server.close()
            return answer

        def _answer(
            self,
            spoil: Spoil | Refusal | None,
            answer: tuple[int, list[tuple[str, str]], bytes] | None,
        ) -> None:
            if spoil in (Spoil.CUT_BEFORE, Spoil.CUT_AFTER):
                self.close_connection = True
                return
            if spoil is Spoil.ERROR_AFTER:
                answer = 500, [], b'{"__type": "InternalServiceException", "message": "broken"}'
            elif isinstance(spoil, Refusal):
                answer = spoil.status, [("x-amzn-errortype", spoil.code)], spoil.body
            assert answer is not None
            status, headers, content = answer
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if spoil is Spoil.HALF:
                content, self.close_connection = content[: len(content) // 2], True
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
