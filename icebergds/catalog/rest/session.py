"""Holds a process's state for a REST catalog: its configuration, connections and tokens."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from icebergds.catalog.base import Identifier
from icebergds.catalog.rest.auth.base import FixedHeader
from icebergds.catalog.rest.auth.choose import choose_authenticator, own_options
from icebergds.catalog.rest.auth.oauth2 import TokenRequest
from icebergds.catalog.rest.config import ServerConfig, fetch_config
from icebergds.catalog.rest.failures import RestError
from icebergds.catalog.rest.http import (
    IDEMPOTENCY_KEY,
    Answer,
    HttpClient,
    Request,
    idempotency_key,
)
from icebergds.catalog.rest.options import (
    HttpOptions,
    check_names,
    http_options,
    snapshot_mode,
    web_address,
)
from icebergds.catalog.rest.routes import SEPARATOR, TOKENS, Routes
from icebergds.catalog.rest.secrets import Secrets
from icebergds.commit.operations import TableState

_MOST_BYTES = 64 * 1024 * 1024
_ACCESS_DELEGATION = "X-Iceberg-Access-Delegation"
_DELEGATED = "vended-credentials,remote-signing"
# Properties that decide how requests are sent and authenticated.
_OF_REQUESTS = ("uri", "token", "credential", "scope", "audience", "resource", "oauth2-server-uri")
_OF_REQUESTS_PREFIXES = ("rest.", "header.", "auth.", "token-")


@dataclass(frozen=True, slots=True)
class RestSession:
    """A catalog on a server; threads may share it.

    Attributes:
        name: the catalog's name in messages.
        snapshots: those that a table is loaded with, as the server names them.
        seen: the tables that were loaded last, for conditional requests.
    """

    name: str
    client: HttpClient = field(repr=False)
    config: ServerConfig = field(repr=False)
    routes: Routes
    snapshots: str
    seen: SeenTables = field(repr=False)

    def change(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        answered: bool = False,
    ) -> Answer:
        """Sends a request that changes the catalog.

        Args:
            answered: whether a successful answer has a body.

        Raises:
            RestError: it was refused or not answered; says whether it may have taken effect.
        """
        lifetime = self.config.idempotency_s
        headers = {} if lifetime is None else {IDEMPOTENCY_KEY: idempotency_key()}
        request = Request(
            method,
            path,
            query=query or {},
            headers=headers,
            body=body,
            repeatable=lifetime is not None,
            repeatable_for_s=lifetime or float("inf"),
            answered=answered,
        )
        return self.client.send(request)

    def referenced_by(self, views: Sequence[Identifier]) -> RestSession:
        """The session for what is loaded through views; it shares connections and tables."""
        return replace(self, routes=replace(self.routes, through=tuple(views)))

    def __reduce__(self) -> Any:
        raise TypeError(
            f"the session of catalog {self.name} cannot be pickled: it holds connections and tokens"
        )


class SeenTables:
    """The tables that were loaded last; the least recently used are evicted.

    Their keys are paths, with the views through which they were loaded: a server may answer
    differently for each of these.

    Args:
        most_bytes: the limit for the total size of their metadata, as the server sent it.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._lock = threading.Lock()
        self._most_bytes, self._bytes = most_bytes, 0
        self._tables: OrderedDict[str, tuple[str, TableState, int]] = OrderedDict()

    def find(self, path: str) -> tuple[str, TableState] | None:
        """The ETag and the state of a table."""
        with self._lock:
            found = self._tables.get(path)
            if found is None:
                return None
            self._tables.move_to_end(path)
            return found[:2]

    def keep(self, path: str, answer: Answer, state: TableState) -> None:
        """Keeps the state of a table, if the server gave it an ETag."""
        etag = answer.headers.get("ETag")
        with self._lock:
            self._remove(path)
            if etag is None or answer.size > self._most_bytes:
                return
            self._tables[path] = etag, state, answer.size
            self._bytes += answer.size
            while self._bytes > self._most_bytes:
                self._bytes -= self._tables.popitem(last=False)[1][2]

    def forget(self, path: str) -> None:
        """Forgets a table that was dropped or renamed, also as it was loaded through views."""
        with self._lock:
            for known in [key for key in self._tables if key.partition("?")[0] == path]:
                self._remove(known)

    def _remove(self, path: str) -> None:
        self._bytes -= self._tables.pop(path, ("", None, 0))[2]


def rest_session(name: str, properties: Mapping[str, str]) -> RestSession:
    """The session of a catalog, opened once per process.

    Raises:
        InvalidOptionError: a property is unknown or malformed.
        StorageError: the server does not answer, or refuses to.
    """
    check_names(name, properties)
    return _session(name, tuple(sorted(properties.items())))


@lru_cache(maxsize=32)
def _session(name: str, properties: tuple[tuple[str, str], ...]) -> RestSession:
    given, secrets = dict(properties), Secrets()
    client = _client(name, given, secrets)
    config = fetch_config(name, client, given)
    merged = config.properties
    if any(given.get(key) != merged[key] for key in merged if _is_of_requests(key)):
        client = _client(name, merged, secrets)
    routes = Routes(name, merged.get("prefix", ""), merged.get("namespace-separator") or SEPARATOR)
    return RestSession(name, client, config, routes, snapshot_mode(name, merged), SeenTables())


def _is_of_requests(key: str) -> bool:
    return key in _OF_REQUESTS or key.startswith(_OF_REQUESTS_PREFIXES)


def _client(name: str, properties: Mapping[str, str], secrets: Secrets) -> HttpClient:
    options = http_options(name, properties)
    secrets.add(*options.headers.values(), properties.get("rest.client.proxy.password"))
    options = _with_headers(options, {_ACCESS_DELEGATION: _DELEGATED})
    request = _token_request(name, properties, options, secrets)
    return HttpClient(
        name, options, secrets, choose_authenticator(name, properties, request, secrets)
    )


def _with_headers(options: HttpOptions, defaults: Mapping[str, str]) -> HttpOptions:
    given = {key.lower() for key in options.headers}
    added = {key: value for key, value in defaults.items() if key.lower() not in given}
    return replace(options, headers={**added, **options.headers})


def _token_request(
    name: str, properties: Mapping[str, str], options: HttpOptions, secrets: Secrets
) -> TokenRequest:
    """Returns a function that sends forms to the token endpoint."""
    key = "oauth2-server-uri"
    given = properties.get(key) or own_options("oauth2", properties).get("token_url") or TOKENS
    address = web_address(name, key, given) if "://" in given else given.lstrip("/")
    # Headers of the catalog's requests may be secrets meant for the catalog only.
    client = HttpClient(name, replace(options, headers={}), secrets, FixedHeader())

    def request(form: Mapping[str, str], authorization: str | None) -> Mapping[str, Any]:
        headers = {} if authorization is None else {"Authorization": authorization}
        # This includes an encoded login.
        secrets.add((authorization or "").rpartition(" ")[2])
        try:
            sent = Request("POST", address, headers=headers, form=form, repeatable=True)
            return client.send(sent).body
        except RestError as error:
            error.maybe_done = False
            raise

    return request
