"""A proxy that answers HTTP requests late and counts them, for storages on this machine.

It is a process of its own: in the one that is timed, its threads would hold up those of the client.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
from aiohttp import web
from yarl import URL

_HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive"}
_NOT_KEPT = {*_HOP_BY_HOP, "content-length", "date", "server"}
_CLIENT = web.AppKey("client", aiohttp.ClientSession)
_COUNTS = "/-/counts"
_RESET = "/-/reset"


class SlowStorage:
    """A running proxy.

    Args:
        port: of the proxy.
    """

    def __init__(self, port: int) -> None:
        self.port = port

    def reset(self) -> None:
        self._ask(_RESET)

    @property
    def requests(self) -> dict[str, int]:
        """How many requests of each method passed since `reset`."""
        return self._ask(_COUNTS)["requests"]

    @property
    def most_at_once(self) -> int:
        """How many were under way at a time, at most."""
        return self._ask(_COUNTS)["most_at_once"]

    def _ask(self, path: str) -> dict:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return json.load(answer)


@contextmanager
def slow_storage(target_port: int, seconds: float) -> Iterator[SlowStorage]:
    """A proxy of a server on this machine, whose answers come so many seconds later."""
    command = [sys.executable, __file__, str(target_port), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield SlowStorage(int(process.stdout.readline()))
        finally:
            process.terminate()


def _serve(target_port: int, seconds: float) -> None:
    requests: Counter[str] = Counter()
    most_at_once = under_way = 0

    async def forward(request: web.Request) -> web.Response:
        nonlocal most_at_once, under_way
        requests[request.method] += 1
        under_way += 1
        most_at_once = max(most_at_once, under_way)
        try:
            body = await request.read()
            await asyncio.sleep(seconds)
            url = URL(f"http://127.0.0.1:{target_port}{request.raw_path}", encoded=True)
            headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
            async with request.app[_CLIENT].request(
                request.method, url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                data = await answer.read()
        finally:
            under_way -= 1
        kept = {k: v for k, v in answer.headers.items() if k.lower() not in _NOT_KEPT}
        if request.method == "HEAD" and "Content-Length" in answer.headers:
            kept["Content-Length"] = answer.headers["Content-Length"]
        return web.Response(status=answer.status, headers=kept, body=data)

    async def counts(request: web.Request) -> web.Response:
        return web.json_response({"requests": requests, "most_at_once": most_at_once})

    async def reset(request: web.Request) -> web.Response:
        nonlocal most_at_once
        requests.clear()
        most_at_once = 0
        return web.json_response({})

    async def client(app: web.Application) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            app[_CLIENT] = session
            yield

    app = web.Application(client_max_size=2**30)
    app.cleanup_ctx.append(client)
    app.router.add_get(_COUNTS, counts)
    app.router.add_get(_RESET, reset)
    app.router.add_route("*", "/{path:.*}", forward)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        web.run_app(app, sock=listening, print=None, access_log=None)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), float(sys.argv[2]))
