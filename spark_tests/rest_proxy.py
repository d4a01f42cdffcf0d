"""A proxy in front of a server of REST catalogs: it records requests and breaks some of them."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Fault(Enum):
    """What becomes of a request."""

    NEVER_SENT = "the server never gets it, and the connection ends"
    ANSWER_LOST = "the server does it, and the connection ends"
    ANSWER_CUT = "the server does it, and the connection ends within the answer"
    LATE = "the server does it, and its answer comes too late"
    SENT_TWICE = "the server gets it twice, and the second answer comes"
    REFUSED_500 = "the server never gets it, and the answer is 500"
    REFUSED_503 = "the server never gets it, and the answer is 503"
    DONE_500 = "the server does it, and the answer is 500"
    DONE_502 = "the server does it, and the answer is 502 in HTML"
    DONE_503 = "the server does it, and the answer is 503 to try again"
    DONE_504 = "the server does it, and the answer is 504"
    DONE_HTML = "the server does it, and the answer is 200 in HTML"
    DONE_EMPTY = "the server does it, and the answer is 200 with an empty object"
    REFUSED_HTML = "the server never gets it, and the answer is 200 in HTML"
    THROTTLED = "the server never gets it, and the answer is 429"


_STATUS = {
    Fault.REFUSED_500: 500,
    Fault.REFUSED_503: 503,
    Fault.DONE_500: 500,
    Fault.DONE_502: 502,
    Fault.DONE_503: 503,
    Fault.DONE_504: 504,
    Fault.DONE_HTML: 200,
    Fault.DONE_EMPTY: 200,
    Fault.REFUSED_HTML: 200,
    Fault.THROTTLED: 429,
}
_NEVER_SENT = (
    Fault.NEVER_SENT,
    Fault.REFUSED_500,
    Fault.REFUSED_503,
    Fault.REFUSED_HTML,
    Fault.THROTTLED,
)
LATE_S = 0.7


@dataclass
class Seen:
    """A request, and the status of its answer."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int | None = None


@dataclass
class RestProxy:
    """Forwards requests.

    Attributes:
        seen: the requests in order, with the answers as the client got them.
        connections: the ports of the clients' connections.
        fault: what becomes of a request; None: nothing.
        refuse: whether a request is answered with a status of its own, and not forwarded.
        kind: the type of error of such an answer.
        location: where answers of such a status redirect to.
        reply: the body of an answer of its own; None: the request is forwarded.
        reply_headers: of answers of its own.
        rewrite: changes the JSON of answers.
    """

    server_port: int
    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    connections: set[int] = field(default_factory=set)
    fault: Callable[[Seen], Fault | None] = lambda request: None
    refuse: Callable[[Seen], int | None] = lambda request: None
    kind: str = ""
    location: str = ""
    reply: Callable[[Seen], Any] = lambda request: None
    reply_headers: dict[str, str] = field(default_factory=dict)
    rewrite: Callable[[Seen, Any], Any] = lambda request, body: body

    def break_request(self, number: int, fault: Fault) -> None:
        """Breaks one request, counted from 0 from now on; its repetitions pass."""
        self.seen.clear()
        counter = iter(range(1_000_000))
        self.fault = lambda request: fault if next(counter) == number else None

    def paths(self, method: str) -> list[str]:
        return [each.path for each in self.seen if each.method == method]


@contextmanager
def rest_proxy(server_port: int, tls: ssl.SSLContext | None = None) -> Iterator[RestProxy]:
    """Starts a proxy, and stops it in the end.

    Args:
        tls: speaks TLS with clients; None: plain HTTP.
    """
    proxy = RestProxy(server_port)

    class Handler(_Handler):
        def handle_request(self) -> None:
            _serve(proxy, self)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    proxy.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def handle_request(self) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.handle_request()

    def do_HEAD(self) -> None:
        self.handle_request()

    def do_POST(self) -> None:
        self.handle_request()

    def do_DELETE(self) -> None:
        self.handle_request()


def _serve(proxy: RestProxy, handler: BaseHTTPRequestHandler) -> None:
    body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    # As a forward proxy, it gets whole addresses.
    path = "/" + handler.path.partition("://")[2].partition("/")[2]
    path = path if "://" in handler.path else handler.path
    request = Seen(handler.command, path, dict(handler.headers.items()), body)
    fault = proxy.fault(request)
    proxy.seen.append(request)
    proxy.connections.add(handler.client_address[1])
    request.status = proxy.refuse(request)
    if request.status is not None:
        headers = {"Location": proxy.location} if proxy.location else {}
        _answer(
            handler,
            request.status,
            headers,
            _error(request.status, "refused by the proxy", proxy.kind),
        )
    elif (own := proxy.reply(request)) is not None:
        request.status = 200
        _answer(handler, 200, proxy.reply_headers, json.dumps(own).encode())
    elif fault in _NEVER_SENT:
        request.status = _STATUS.get(fault)
        _break(handler, fault, b"")
    else:
        answer = _forward(proxy, request)
        if fault is Fault.SENT_TWICE:
            answer = _forward(proxy, request)
        if fault is None or fault is Fault.SENT_TWICE:
            request.status = answer[0]
            _answer(handler, *answer)
        else:
            _break(handler, fault, answer[2])


def _forward(proxy: RestProxy, request: Seen) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.server_port, timeout=60)
    try:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _OF_CONNECTION}
        connection.request(request.method, request.path, request.body or None, headers)
        response = connection.getresponse()
        data = response.read()
        kept = {k: v for k, v in response.getheaders() if k.lower() in ("content-type", "etag")}
        if data and response.status < 300:
            data = json.dumps(proxy.rewrite(request, json.loads(data))).encode()
        return response.status, kept, data
    finally:
        connection.close()


_OF_CONNECTION = ("host", "connection", "accept-encoding")


def _break(handler: BaseHTTPRequestHandler, fault: Fault | None, data: bytes) -> None:
    if fault is Fault.ANSWER_CUT and data:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[: len(data) // 2])
        handler.wfile.flush()
    if fault is Fault.LATE:
        time.sleep(LATE_S)
    if fault not in _STATUS:
        handler.close_connection = True
        return
    status = _STATUS[fault]
    if fault in (Fault.DONE_502, Fault.DONE_HTML, Fault.REFUSED_HTML):
        _answer(handler, status, {"Content-Type": "text/html"}, b"<html><body>Oops</body></html>")
        return
    if fault is Fault.DONE_EMPTY:
        _answer(handler, status, {"Content-Type": "application/json"}, b"{}")
        return
    retry = {"Retry-After": "0"} if fault in (Fault.DONE_503, Fault.THROTTLED) else {}
    _answer(handler, status, retry, _error(status, "broken by the proxy"))


def _answer(
    handler: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str], data: bytes
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    if status not in (204, 304):
        handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    if handler.command != "HEAD" and status not in (204, 304):
        handler.wfile.write(data)


def _error(status: int, message: str, kind: str = "") -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "code": status}}).encode()
