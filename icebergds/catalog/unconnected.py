"""Distinguishes failed connections from lost responses, using urllib3's errors.

With a proxy, urllib3 raises `ProxyError` for every connection failure, even after the request was
sent. Only the cause distinguishes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

__all__ = ["causes", "unconnected"]


def unconnected(error: BaseException) -> BaseException | None:
    """The cause that proves that a request was not sent, because there was no connection."""
    return next(filter(_proves, causes(error)), None)


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, outermost first.

    `__context__` is ignored: it may be an earlier error that the caller is handling.
    """
    seen: set[int] = set()
    at: object = error
    while isinstance(at, BaseException) and id(at) not in seen:
        seen.add(id(at))
        yield at
        # The causes of urllib3's errors, of botocore's, of others.
        parts = getattr(at, "reason", None), getattr(at, "kwargs", {}).get("error"), *at.args
        inner = next((part for part in parts if isinstance(part, BaseException)), None)
        at = inner or at.__cause__


def _proves(error: BaseException) -> bool:
    if isinstance(error, ConnectTimeoutError | NewConnectionError):
        return True
    # The proxy refused to connect; http.client has no class for it.
    return isinstance(error, OSError) and str(error).startswith("Tunnel connection failed: ")
