"""Sends requests to a catalog's server, and retries those that can be retried.

Reads are retried after failures of the server or the network, with increasing waits. Changes are
retried only if they certainly had no effect, or if the server recognises repetitions by an
idempotency key.
"""

from __future__ import annotations

import json
import logging
import os
import random
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import quote, urlencode

import requests
from requests.adapters import HTTPAdapter

from icebergds.catalog.rest.auth.base import Authenticator, FixedHeader, SignedRequest
from icebergds.catalog.rest.failures import RestError
from icebergds.catalog.rest.options import HttpOptions
from icebergds.catalog.rest.secrets import Secrets
from icebergds.catalog.rest.transport import LostError, UnsentError, send
from icebergds.errors import StorageError

_LOG = logging.getLogger(__name__)

IDEMPOTENCY_KEY = "Idempotency-Key"

_FIRST_WAIT_S = 0.2
_LONGEST_WAIT_S = 10.0
_LONGEST_RETRY_AFTER_S = 120.0
_LONGEST_IDLE_S = 30.0
# After this time, an unresponsive server is not retried: each attempt may take long.
_PATIENCE_S = 300.0
_TOO_MANY_REQUESTS = 429
_UNAUTHORIZED = (401, 419)
# Retrying after these may succeed.
_TRANSIENT = (408, 429, 500, 502, 503, 504)
# Failures of the server that certainly had no effect.
_NOT_IMPLEMENTED = (501, 505)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the server.

    Attributes:
        headers: with case-insensitive names.
        body: the JSON object of the body; empty if there is no body.
        size: of the body, in bytes.
    """

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    size: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """A request, and how it may be retried.

    Attributes:
        path: relative to the server's address, percent-encoded; or a whole URL. It may end in a
            query, which is sent as it is.
        query: further parameters, not yet encoded.
        body: sent as JSON.
        form: sent as a form.
        repeatable: whether it may be retried even if it may have taken effect.
        repeatable_for_s: for how long it may be retried.
        answered: whether a successful answer has a body.
        renews: whether to renew a token that the server refuses.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = field(default=None, repr=False)
    repeatable: bool = False
    repeatable_for_s: float = float("inf")
    answered: bool = True
    renews: bool = True


class HttpClient:
    """Sends requests to one server; threads may share it.

    Args:
        catalog: the catalog's name in messages.
        secrets: what messages must not contain.
        auth: authenticates each request.
    """

    def __init__(
        self, catalog: str, options: HttpOptions, secrets: Secrets, auth: Authenticator
    ) -> None:
        self._catalog = catalog
        self._options = options
        self._secrets = secrets
        self._auth = auth
        self._lock = threading.Lock()
        self._session: tuple[int, requests.Session] | None = None
        self._used = 0.0

    @property
    def uri(self) -> str:
        """The server's address."""
        return self._options.uri

    @property
    def is_anonymous(self) -> bool:
        """Whether the server allows anonymous access: requests are not authenticated."""
        return self._auth == FixedHeader()

    def hide(self, secret: str) -> None:
        """Hides a text in messages from now on."""
        self._secrets.add(secret)

    def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Reads. Raises RestError."""
        return self.send(Request("GET", path, query or {}, headers or {}, repeatable=True))

    def send(self, request: Request) -> Answer:
        """Sends a request until it is answered, or must not be retried any more.

        Raises:
            RestError: the server refused it or did not answer; says whether it may have taken
                effect.
        """
        attempts, maybe_done, renewed, started = 0, False, False, time.monotonic()
        while True:
            retry_after = None
            try:
                sent_auth = self._auth.current()
                response = self._exchange(request, sent_auth)
            except StorageError as failure:
                # There is no token or signing key: nothing was sent.
                error = self._error(request, failure.reason)
                transient = False
            except UnsentError as failure:
                why = f"the server cannot be reached: {failure}; check the uri and the network"
                if not failure.may_pass:
                    why = f"the request cannot be sent: {failure}"
                error = self._error(request, why)
                transient = failure.may_pass
            except LostError as failure:
                error = self._error(request, f"there was no answer: {failure}")
                error.maybe_done = True
                transient = request.repeatable and time.monotonic() - started < _PATIENCE_S
            else:
                answer = self._success(request, response)
                if answer is not None:
                    return answer
                error = self._refusal(request, response)
                may_renew = request.renews and not renewed and error.status in _UNAUTHORIZED
                if may_renew and self._renew(sent_auth):
                    renewed = True
                    continue
                retry_after = _retry_after(response)
                transient = error.status == _TOO_MANY_REQUESTS or (
                    request.repeatable and (error.status in _TRANSIENT or error.maybe_done)
                )
            # A refused retry says nothing about an earlier attempt, which may still be running.
            maybe_done = maybe_done or error.maybe_done
            attempts += 1
            wait = _wait(attempts) if retry_after is None else retry_after
            too_late = time.monotonic() + wait - started > request.repeatable_for_s
            if not transient or too_late or attempts > self._options.max_retries:
                error.maybe_done = maybe_done and request.method != "GET"
                raise error
            _LOG.info("%s; it is sent again in %.1f s", error, wait)
            time.sleep(wait)

    def _renew(self, refused: str | None) -> bool:
        try:
            return self._auth.renew(refused)
        except StorageError as error:
            _LOG.warning("catalog %s: its token was not renewed: %s", self._catalog, error)
            return False

    def _exchange(self, request: Request, auth: Any) -> requests.Response:
        started = time.perf_counter()
        signed = self._auth.sign(self._signed(request), auth)
        response = send(self._open_session(), self._options, signed)
        _LOG.debug(
            "catalog %s: %s %s: %d, in %.0f ms",
            self._catalog,
            request.method,
            request.path.partition("?")[0],
            response.status_code,
            1000 * (time.perf_counter() - started),
        )
        return response

    def _signed(self, request: Request) -> SignedRequest:
        url = request.path if "://" in request.path else f"{self.uri}/{request.path}"
        if request.query:
            before = "&" if "?" in url else "?"
            url += before + urlencode(request.query, quote_via=quote, safe="")
        headers = {**_HEADERS, **self._options.headers, **request.headers}
        data = b""
        if request.form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            data = urlencode(request.form).encode()
        elif request.body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(request.body, separators=(",", ":")).encode()
        return SignedRequest(request.method, url, headers, data)

    def _open_session(self) -> requests.Session:
        """The session of this process, without connections that were idle for long.

        Forked processes must not share connections. Idle connections may be dropped silently on the
        network; a request on one would never be answered.
        """
        with self._lock:
            now = time.monotonic()
            if self._session is None or self._session[0] != os.getpid():
                session = requests.Session()
                adapter = HTTPAdapter(pool_maxsize=self._options.max_connections)
                session.mount("http://", adapter)
                session.mount("https://", adapter)
                session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
                self._session = os.getpid(), session
            elif now - self._used > _LONGEST_IDLE_S:
                # It opens new connections.
                self._session[1].close()
            self._used = now
            return self._session[1]

    def _success(self, request: Request, response: requests.Response) -> Answer | None:
        """The answer, if it is a readable success."""
        status = response.status_code
        if status == _NOT_MODIFIED or (
            status < 300 and not request.answered and not response.content
        ):
            return Answer(status, response.headers, {})
        body = _json_object(response) if status < 300 else None
        if body is None:
            return None
        return Answer(status, response.headers, body, len(response.content))

    def _refusal(self, request: Request, response: requests.Response) -> RestError:
        status = response.status_code
        if status < 300:
            error = self._error(
                request,
                f"the answer {status} is not the JSON object that was expected; is the uri that of "
                "an Iceberg REST catalog?",
            )
            error.maybe_done = True
            return error
        if status < 400:
            target = response.headers.get("Location", "another address").partition("?")[0]
            error = self._error(
                request, f"the server redirects to {target}; set that address as the uri"
            )
            error.status = status
            return error
        kind, explanation = _explained(response, self._secrets)
        text = ": ".join(filter(None, (f"{status} {response.reason}".strip(), kind, explanation)))
        remedy = _REMEDIES.get(status)
        error = self._error(request, f"{text}; {remedy}" if remedy else text)
        error.status, error.kind = status, kind
        error.explanation = explanation
        error.maybe_done = status == 408 or (status >= 500 and status not in _NOT_IMPLEMENTED)
        return error

    def _error(self, request: Request, reason: str) -> RestError:
        where = request.path if "://" in request.path else f"{self.uri}/{request.path}"
        # The query may be a secret.
        where = self._secrets.hide(where.partition("?")[0])
        text = f"catalog {self._catalog}: {request.method} {where} failed: {reason}"
        return RestError(self._secrets.hide(text), location=where)


def idempotency_key() -> str:
    """A new key: a UUID of version 7."""
    stamp = time.time_ns() // 1_000_000
    value = stamp << 80 | random.SystemRandom().getrandbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


_CREDENTIALS = (
    "check what the catalog authenticates with: its properties credential, token or those of its "
    "auth.type"
)
_REMEDIES = {
    401: _CREDENTIALS,
    403: "the server knows who asks but does not permit it: ask for the privilege, or authenticate "
    "as somebody else",
    # An expired token that could not be renewed.
    419: _CREDENTIALS,
}
_NOT_MODIFIED = 304
_HEADERS = {"Accept": "application/json", "User-Agent": "icebergds"}
_LONGEST_EXPLANATION = 1000
_LONGEST_PAGE = 200


def _json_object(response: requests.Response) -> dict[str, Any] | None:
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _explained(response: requests.Response, secrets: Secrets) -> tuple[str, str]:
    """The name and message of the server's error, without secrets; HTML is truncated more."""

    def shown(text: Any, longest: int) -> str:
        # Hidden before truncation: a part of a secret would not be recognised.
        return secrets.hide(str(text or ""))[:longest]

    body = _json_object(response)
    if body is None:
        text = secrets.hide(response.content.decode(errors="replace"))
        return "", " ".join(text.split())[:_LONGEST_PAGE]
    error = body.get("error")
    if isinstance(error, str):
        # The format of OAuth2 servers.
        message = body.get("error_description")
        return shown(error, _LONGEST_PAGE), shown(message, _LONGEST_EXPLANATION)
    members = error if isinstance(error, dict) else body
    kind = shown(members.get("type"), _LONGEST_PAGE)
    return kind, shown(members.get("message"), _LONGEST_EXPLANATION)


def _retry_after(response: requests.Response) -> float | None:
    """The wait that the server asks for, in seconds."""
    text = response.headers.get("Retry-After", "").strip()
    if not text:
        return None
    if text.isdecimal():
        seconds = float(text)
    else:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError):
            return None
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER_S)


def _wait(attempt: int) -> float:
    """Seconds to wait before the next attempt: exponential, with jitter."""
    return min(_FIRST_WAIT_S * 2.0 ** (attempt - 1), _LONGEST_WAIT_S) * random.uniform(0.75, 1.25)
