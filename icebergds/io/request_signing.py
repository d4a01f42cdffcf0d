"""Has a table's catalog sign requests to S3, for clients that have no keys.

The client of S3 sends requests unsigned; each is completed by what the catalog answers. A signature
that the catalog allows to be kept is used again for the same address, such as for other ranges of a
file.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True)
class UnsignedRequest:
    """A request to S3.

    Attributes:
        headers: by their names in lower case.
        body: only of requests whose meaning is in their body, such as deletes of many objects.
    """

    method: str
    url: str
    region: str
    headers: Mapping[str, str]
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """What completes a request.

    Attributes:
        url: replaces that of the request.
        headers: to add, by their names in lower case.
        reusable: whether it may be kept.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    reusable: bool = False


class RequestSigner(Protocol):
    """Signs requests; threads share it. Equal ones share connections to the storage."""

    def sign(self, request: UnsignedRequest) -> Signature:
        """Signs a request.

        Raises:
            StorageError: the catalog refuses to sign it, or does not answer.
        """
        ...

    def __hash__(self) -> int: ...


def session_of_signer(signer: RequestSigner) -> Any:
    """A session of aiobotocore whose requests to S3 the signer signs; one for each in a process."""
    return _session(os.getpid(), signer)


class KeptSignatures:
    """The signatures of the last requests that may be kept; threads may share them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, ...], _Kept] = OrderedDict()

    def find(self, request: UnsignedRequest) -> Signature | None:
        """A signature that holds for a request."""
        with self._lock:
            kept = self._kept.get(_key(request))
        if kept is None or time.monotonic() >= kept.until:
            return None
        now = {name: request.headers.get(name) for name in kept.signed}
        return kept.signature if now == kept.signed else None

    def keep(self, request: UnsignedRequest, signature: Signature) -> None:
        """Keeps the signature of a request if the catalog allows it, and if it tells its parts."""
        parts = _SIGNED_HEADERS.search(signature.headers.get("authorization", ""))
        if not signature.reusable or request.method not in _REPEATED or parts is None:
            return
        signed = {name: request.headers.get(name) for name in parts[1].lower().split(";")}
        with self._lock:
            self._kept[_key(request)] = _Kept(signature, signed, time.monotonic() + _KEPT_S)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)


# As Java's; S3 accepts signatures for some minutes.
_KEPT_S = 30.0
_MOST_KEPT = 100
_REPEATED = ("GET", "HEAD")
_SIGNED_HEADERS = re.compile(r"SignedHeaders=([^,\s]+)")
# Of each attempt or connection; S3 demands the signature of none of them.
_NOT_TO_SIGN = (
    "amz-sdk-invocation-id",
    "amz-sdk-request",
    "connection",
    "expect",
    "transfer-encoding",
    "user-agent",
    "x-amzn-trace-id",
)
# Of the answer itself, or of the request as it is sent.
_NOT_TO_ADD = ("cache-control", "connection", "content-length", "transfer-encoding")


@dataclass(frozen=True, slots=True)
class _Kept:
    """A signature, the values of the headers that it covers, and until when it is used."""

    signature: Signature
    signed: Mapping[str, str | None]
    until: float


# fsspec keeps one client for equal options, and sessions are equal only to themselves.
@lru_cache(maxsize=32)
def _session(process: int, signer: RequestSigner) -> Any:
    from aiobotocore.session import AioSession

    session = AioSession()
    session.register("before-sign.s3", _BeforeSign(signer))
    return session


class _BeforeSign:
    """What a session calls with each request, before it would sign it."""

    def __init__(self, signer: RequestSigner) -> None:
        self._signer = signer
        self._kept = KeptSignatures()

    async def __call__(self, request: Any, **_: Any) -> None:
        unsigned = _unsigned(request)
        signature = self._kept.find(unsigned)
        if signature is None:
            # The loop serves all threads of the process.
            signature = await asyncio.to_thread(self._signer.sign, unsigned)
            self._kept.keep(unsigned, signature)
        present = {name.lower() for name in request.headers}
        for name, value in signature.headers.items():
            if name not in present and name not in _NOT_TO_ADD:
                request.headers[name] = value
        request.url = signature.url


def _unsigned(request: Any) -> UnsignedRequest:
    """A request of botocore as it is sent to be signed."""
    signing = request.context.get("signing") or {}
    return UnsignedRequest(
        method=request.method,
        url=request.url,
        region=signing.get("region") or request.context.get("client_region") or "us-east-1",
        headers={
            name.lower(): _text(value)
            for name, value in request.headers.items()
            if name.lower() not in _NOT_TO_SIGN
        },
        body=_text(request.data) if _deletes_many(request) else None,
    )


def _deletes_many(request: Any) -> bool:
    query = parse_qs(urlsplit(request.url).query, keep_blank_values=True)
    return request.method == "POST" and "delete" in query


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes | bytearray) else str(value)


def _key(request: UnsignedRequest) -> tuple[str, ...]:
    return request.method, request.region, request.url
