"""Translates Iceberg's properties of Google Cloud Storage to options of gcsfs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.io.option_values import first, is_true, number


def gcs_options(properties: Mapping[str, str]) -> dict[str, Any]:
    """Keyword arguments of gcsfs.

    Without a token, the application default credentials are used.

    Raises:
        InvalidOptionError: a property is malformed, or asks for what is not supported.
    """
    for name in properties:
        if name.startswith(_UNSUPPORTED):
            raise InvalidOptionError(f"property {name!r} is not supported; leave it out")
    options: dict[str, Any] = {
        option: value for option, names in _PLAIN.items() if (value := first(properties, *names))
    }
    if payer := properties.get("gcs.user-project"):
        options["requester_pays"] = payer
    elif is_true(properties, "gcs.requester-pays"):
        options["requester_pays"] = True
    options["token"] = _token(properties)
    return options


_PLAIN = {
    "project": ("gcs.project-id",),
    "endpoint_url": ("gcs.service.host", "gcs.endpoint"),
}
# Java's, which would change what is written, or who writes it.
_UNSUPPORTED = ("gcs.encryption-key", "gcs.decryption-key", "gcs.impersonate.")
_SCOPE = "https://www.googleapis.com/auth/devstorage.full_control"


def _token(properties: Mapping[str, str]) -> Any:
    """Credentials for gcsfs, which would ask Google about a token, and try others without one."""
    if is_true(properties, "gcs.no-auth"):
        return "anon"
    token = properties.get("gcs.oauth2.token")
    if not token:
        return _default_credentials()
    if os.path.isabs(token):
        # gcsfs would send what is not a file as a token. It is not shown: it may be one.
        if not os.path.isfile(token):
            raise InvalidOptionError(
                "property 'gcs.oauth2.token' begins with a slash, but there is no file of this "
                "path; expected a token, or the path of the file of a service account on each "
                "machine"
            )
        return token
    expires_at = properties.get("gcs.oauth2.token-expires-at")
    if expires_at is None:
        return _credentials(token, None)
    return _credentials(token, number("gcs.oauth2.token-expires-at", expires_at, int))


# fsspec keeps one client for equal options, and credentials are equal only to themselves.
@lru_cache(maxsize=32)
def _credentials(token: str, expires_at_ms: float | None) -> Any:
    from google.oauth2.credentials import Credentials

    expiry = None
    if expires_at_ms is not None:
        # Without a zone, as google.auth compares it.
        expiry = datetime.fromtimestamp(expires_at_ms / 1000, UTC).replace(tzinfo=None)
    return Credentials(token, expiry=expiry)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=1)
def _default_credentials() -> Any:
    import google.auth

    return google.auth.default(scopes=[_SCOPE])[0]
