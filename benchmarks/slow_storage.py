"""A proxy that answers HTTP requests late and counts them, for storages on this machine."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive"}


class SlowStorage:
    """What passed through the proxy.

    Attributes:
        port: of the proxy.
        requests: how many of each method.
        most_at_once: how many were under way at a time, at most.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: Counter[str] = Counter()
        self.most_at_once = 0
        self._under_way = 0
        self._lock = threading.Lock()

    def reset(self) -> None:
        self.requests.clear()
        self.most_at_once = 0

    @contextmanager
    def counted(self, method: str) -> Iterator[None]:
        with self._lock:
            self.requests[method] += 1
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1


@contextmanager
def slow_storage(target_port: int, seconds: float) -> Iterator[SlowStorage]:
    """A proxy of a server on this machine, whose answers come so many seconds later."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def forward(self) -> None:
            with storage.counted(self.command):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if length else None
                time.sleep(seconds)
                target = http.client.HTTPConnection("127.0.0.1", target_port)
                target.request(self.command, self.path, body, dict(self.headers))
                answer = target.getresponse()
                data = answer.read()
                target.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {*_HOP_BY_HOP, "content-length", "date", "server"}:
                    self.send_header(name, value)
            is_head = self.command == "HEAD"
            told = answer.getheader("Content-Length") if is_head else None
            self.send_header("Content-Length", told or str(len(data)))
            self.end_headers()
            if not is_head:
                self.wfile.write(data)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    storage = SlowStorage(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield storage
    finally:
        server.shutdown()
        server.server_close()
