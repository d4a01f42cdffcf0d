"""A proxy in front of a server that cuts a connection at a request, such as a COMMIT."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

# MariaDB's client also says SET AUTOCOMMIT.
_COMMIT = rb"\bCOMMIT"


class Cut(Enum):
    """What becomes of the request."""

    BEFORE = "the server never gets it"
    AFTER = "the server does it, its answer is lost"


@dataclass
class BreakingProxy:
    """Forwards connections, until one of them is to be cut."""

    server_port: int
    listener: socket.socket
    _cut: Cut | None = None
    _request: bytes = b""
    _then: Callable[[], object] = bool

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def arm(self, cut: Cut, then: Callable[[], object] = bool, *, request: bytes = _COMMIT) -> None:
        """Cuts the connection of the next request.

        Args:
            then: called when the server is cut off, before the client learns of it.
            request: a pattern by which the request can be told.
        """
        self._cut, self._then, self._request = cut, then, request

    @property
    def is_armed(self) -> bool:
        """Whether the request is still awaited."""
        return self._cut is not None

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.server_port)) as server:
            while True:
                readable, _, _ = select.select([client, server], [], [])
                source, target = (client, server) if client in readable else (server, client)
                data = source.recv(65536)
                if not data:
                    return
                if source is client and self._cut is not None and re.search(self._request, data):
                    self._break(server, data)
                    return
                target.sendall(data)

    def _break(self, server: socket.socket, data: bytes) -> None:
        cut, self._cut = self._cut, None
        if cut is Cut.AFTER:
            server.sendall(data)
            server.recv(65536)
        server.close()
        self._then()


@contextmanager
def breaking_proxy(server_port: int) -> Iterator[BreakingProxy]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = BreakingProxy(server_port, listener)
        threading.Thread(target=proxy.accept, daemon=True).start()
        yield proxy
