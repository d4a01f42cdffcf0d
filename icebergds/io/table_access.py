"""Asks a table's catalog for signatures and new credentials, as the table's properties tell.

They are Java Iceberg's, without the catalog's own credential: tasks have the token that the catalog
gave for the table. Proxies and certificates are those of the environment, such as HTTPS_PROXY and
REQUESTS_CA_BUNDLE.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from icebergds.errors import InvalidOptionError, StorageError
from icebergds.io.option_values import is_true
from icebergds.io.request_signing import Signature, UnsignedRequest

REMOTE_SIGNING = "s3.remote-signing-enabled"
SIGNER_ENDPOINT = "s3.signer.endpoint"
"""The address that signs requests; relative in a catalog's answer, whole in a storage's
properties."""
SIGNING_CONFIG = "rest.remote-signing.config"
"""The `remote-signing-config` of a catalog's answer, as JSON."""
TABLE_TOKEN = "token"
REFRESH_ENDPOINTS = (
    "client.refresh-credentials-endpoint",
    "gcs.oauth2.refresh-credentials-endpoint",
    "adls.refresh-credentials-endpoint",
)
"""Addresses that answer with new credentials; whole in a storage's properties."""


@dataclass(frozen=True, slots=True)
class SigningConfig:
    """What each request to be signed is sent with.

    Attributes:
        properties: in the request's body.
        headers: of the request.
    """

    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class TaskSigner:
    """Has requests signed with the token of a table, in any process (`RequestSigner`)."""

    endpoint: str = field(repr=False)
    token: str | None = field(repr=False)
    config: SigningConfig

    def sign(self, request: UnsignedRequest) -> Signature:
        body = signing_request(request, self.config)
        headers = dict(self.config.headers)
        answer = ask_catalog("POST", self.endpoint, self.token, headers, body)
        return signature_in(answer.headers, answer.body)


def task_signer(properties: Mapping[str, str]) -> TaskSigner | None:
    """What signs for a storage with these properties; None if nothing does."""
    endpoint = properties.get(SIGNER_ENDPOINT, "")
    if not is_true(properties, REMOTE_SIGNING) or "://" not in endpoint:
        return None
    config = json.loads(properties.get(SIGNING_CONFIG) or "{}")
    return TaskSigner(endpoint, properties.get(TABLE_TOKEN), signing_config(config))


def task_renewal(properties: Mapping[str, str]) -> Callable[[], Mapping[str, Any]] | None:
    """What gets an answer with new credentials, by a table's properties; None if nothing does."""
    token = properties.get(TABLE_TOKEN)
    endpoint = next(filter(None, map(properties.get, refresh_endpoints(properties))), None)
    if token is None or endpoint is None or "://" not in endpoint:
        return None
    return lambda: ask_catalog("GET", endpoint, token).body


def refresh_endpoints(properties: Mapping[str, str]) -> list[str]:
    """The names of the properties that are addresses of new credentials, and are in use."""
    return [
        name
        for name in REFRESH_ENDPOINTS
        if properties.get(name)
        and properties.get(name.replace("-endpoint", "-enabled"), "true").lower() == "true"
    ]


def signing_config(document: Mapping[str, Any]) -> SigningConfig:
    """The configuration in a catalog's `remote-signing-config`."""
    properties = document.get("properties") or {}
    headers = document.get("headers") or {}
    return SigningConfig(
        tuple((str(name), str(value)) for name, value in properties.items()),
        tuple((str(name), ", ".join(map(str, values))) for name, values in headers.items()),
    )


def signing_request(request: UnsignedRequest, config: SigningConfig) -> dict[str, Any]:
    """The body of a request for a signature (REST catalog specification: RemoteSignRequest)."""
    return {
        "region": request.region,
        "uri": request.url,
        "method": request.method,
        "headers": {name: [value] for name, value in request.headers.items()},
        "properties": dict(config.properties),
        "provider": "s3",
        **({} if request.body is None else {"body": request.body}),
    }


def signature_in(headers: Mapping[str, str], body: Mapping[str, Any]) -> Signature:
    """The signature in an answer (RemoteSignResult).

    Raises:
        StorageError: the answer is malformed.
    """
    url, signed = body.get("uri"), body.get("headers")
    if not isinstance(url, str) or not isinstance(signed, dict):
        raise StorageError(
            "the answer of the table's catalog has no signature: expected uri and headers"
        )
    return Signature(
        url,
        {str(name).lower(): _joined(values) for name, values in signed.items()},
        headers.get("Cache-Control", "").strip().lower() == "private",
    )


def _joined(values: Any) -> str:
    return ", ".join(map(str, values)) if isinstance(values, list) else str(values)


@dataclass(frozen=True, slots=True)
class CatalogAnswer:
    """What a catalog answered.

    Attributes:
        headers: by their names in any case.
        body: a JSON object.
    """

    headers: Mapping[str, str] = field(repr=False)
    body: Mapping[str, Any] = field(repr=False)


def ask_catalog(
    method: str,
    url: str,
    token: str | None,
    headers: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
) -> CatalogAnswer:
    """Sends a request that may be repeated, until it is answered.

    Args:
        token: of the table; None if the catalog lets everybody in.
        body: sent as JSON.

    Raises:
        StorageError: the catalog refuses it, or does not answer.
        InvalidOptionError: requests is not installed.
    """
    try:
        import requests
    except ImportError as error:
        raise InvalidOptionError(
            "asking the catalog of a table needs the package requests where tasks run: "
            "pip install 'icebergds[rest]'"
        ) from error

    given = {"Accept": "application/json", "User-Agent": "icebergds", **(headers or {})}
    if token is not None:
        given["Authorization"] = f"Bearer {token}"
    try:
        response = _session(os.getpid()).request(
            method,
            url,
            headers=given,
            json=body,
            # Without it, credentials of ~/.netrc would be sent.
            auth=lambda prepared: prepared,
            timeout=_TIMEOUTS_S,
            allow_redirects=False,
        )
        answer = response.json() if response.ok else None
    except requests.RequestException as error:
        # Not chained: the error holds the request, with its token.
        failure = type(error).__name__
    else:
        if isinstance(answer, dict) and response.status_code < _REDIRECTS:
            return CatalogAnswer(response.headers, answer)
        failure = f"{response.status_code} {response.reason}"
        if response.status_code in (401, 403, 419):
            failure += "; the token of the table may have expired"
    # A query may be a secret.
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.netloc}{parts.path}"
    raise StorageError(f"the table's catalog does not help: {method} {where}: {failure}")


_TIMEOUTS_S = (30, 60)
_REDIRECTS = 300
_RETRIES = 5
_TRANSIENT = (408, 429, 500, 502, 503, 504)


# Each process has its own: a forked one must not use the connections of its parent.
@lru_cache(maxsize=4)
def _session(process: int) -> Any:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    retry = Retry(
        _RETRIES,
        redirect=False,
        status_forcelist=_TRANSIENT,
        allowed_methods=None,
        backoff_factor=0.2,
        raise_on_status=False,
    )
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=32, max_retries=retry))
    return session
