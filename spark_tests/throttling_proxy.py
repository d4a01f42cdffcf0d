"""A proxy in front of a store that answers some requests itself, as a store that is too busy."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass
class ThrottlingProxy:
    """Forwards requests.

    Attributes:
        busy: how many of the next requests are answered with 503.
        forwards: whether the store gets those, too.
        body: of those answers.
        concerned: which requests are.
        seen: all requests.
        most: how many were under way at once, at most.
    """

    target: int
    server: ThreadingHTTPServer
    busy: int = 0
    forwards: bool = False
    body: bytes = b""
    concerned: Callable[[Request], bool] = lambda _: True
    seen: list[Request] = field(default_factory=list)
    most: int = 0
    status: int = 503
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        content = handler.rfile.read(length)
        request = Request(handler.command, handler.path, dict(handler.headers))
        with self._lock:
            self.seen.append(request)
            self._now += 1
            self.most = max(self.most, self._now)
            is_busy = self.busy > 0 and self.concerned(request)
            self.busy -= is_busy
        try:
            if is_busy and not self.forwards:
                self._reply(handler, self.status, {"Content-Type": "application/xml"}, self.body)
                return
            status, headers, found = self._forward(request, content)
            if is_busy:
                status, headers, found = self.status, {"Content-Type": "application/xml"}, self.body
            self._reply(handler, status, headers, found)
        finally:
            with self._lock:
                self._now -= 1

    def _forward(self, request: Request, content: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.target, timeout=60)
        try:
            connection.putrequest(
                request.method, request.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in request.headers.items():
                connection.putheader(name, value)
            connection.endheaders(content)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    @staticmethod
    def _reply(
        handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], content: bytes
    ) -> None:
        handler.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                handler.send_header(name, value)
        # The answer to HEAD tells the length of what it does not have.
        length = headers.get("Content-Length") if handler.command == "HEAD" else None
        handler.send_header("Content-Length", length or str(len(content)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content)


@contextmanager
def throttling_proxy(target: int) -> Iterator[ThrottlingProxy]:
    """Starts a proxy in front of a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            proxy.answer(self)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy = ThrottlingProxy(target, server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
