"""Asks a table's catalog from a task: with a token of the table, and nothing else of the catalog.

Proxies and certificates are those of the environment, such as HTTPS_PROXY and REQUESTS_CA_BUNDLE.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from icebergds.errors import InvalidOptionError, StorageError


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
