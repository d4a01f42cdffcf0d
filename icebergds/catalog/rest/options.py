"""Parses the properties of a REST catalog, with Java Iceberg's and PyIceberg's names."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote, urlsplit

from icebergds.errors import InvalidOptionError
from icebergds.io.storage_options import is_of_storage
from icebergds.suggestions import did_you_mean, nearest_of

__all__ = [
    "ALL",
    "REFS",
    "HttpOptions",
    "check_names",
    "flag",
    "http_options",
    "integer",
    "snapshot_mode",
]

_LOG = logging.getLogger(__name__)

ALL = "all"
"""Load a table with all of its snapshots."""

REFS = "refs"
"""Load a table with the snapshots that branches and tags refer to."""

TOKEN_TYPES = "urn:ietf:params:oauth:token-type:"
"""Prefix of the properties that hold a token to exchange."""

PLAIN_PROPERTIES = (
    "type",
    "uri",
    "warehouse",
    "prefix",
    "token",
    "credential",
    "oauth2-server-uri",
    "scope",
    "audience",
    "resource",
    "token-expires-in-ms",
    "token-refresh-enabled",
    "token-exchange-enabled",
    "snapshot-loading-mode",
    "scan-planning-mode",
    "namespace-separator",
    "rest-page-size",
    "rest-metrics-reporting-enabled",
    "rest-scan-planning-enabled",
    "view-endpoints-supported",
)
"""Properties without dots."""

DOTTED_PROPERTIES = (
    "rest.auth.type",
    "rest.auth.basic.username",
    "rest.auth.basic.password",
    "rest.auth.sigv4.delegate-auth-type",
    "rest.sigv4-enabled",
    "rest.signing-name",
    "rest.signing-region",
    "rest.access-key-id",
    "rest.secret-access-key",
    "rest.session-token",
    "rest-scan-planning.poll-timeout-ms",
    "rest.client.max-retries",
    "rest.client.max-connections",
    "rest.client.connection-timeout-ms",
    "rest.client.socket-timeout-ms",
    "rest.client.user-agent",
    "rest.client.proxy.hostname",
    "rest.client.proxy.port",
    "rest.client.proxy.username",
    "rest.client.proxy.password",
    "ssl.cabundle",
    "ssl.client.cert",
    "ssl.client.key",
)
"""Properties with dots, besides `header.<name>`, those of `auth.` and those of the storage."""

_OPEN = ("header.", "auth.", "gcp.auth.", TOKEN_TYPES)
_STRICT = ("rest.", "ssl.")
# Prefixes that mark an unknown property as a likely typo.
_PREFIXES = ("header", "auth", "rest", "ssl", "client", "table-default", "table-override")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How requests are sent.

    Attributes:
        uri: the server's address, without a slash at its end.
        headers: of each request.
        connect_timeout_s: how long to wait for a connection.
        read_timeout_s: how long to wait for the next bytes of an answer.
        max_retries: how often to retry a request that may be retried.
        proxy: the address of a proxy; None for the one in the environment.
        verify: the file of trusted certificates; True for the default ones.
        certificate: the client's own certificate, and its key if that is in another file.
    """

    uri: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout_s: float = 30
    read_timeout_s: float = 180
    max_retries: int = 5
    max_connections: int = 32
    proxy: str | None = field(default=None, repr=False)
    verify: bool | str = True
    certificate: str | tuple[str, str] | None = None


def check_names(name: str, given: Mapping[str, str]) -> None:
    """Checks that all properties are properties of a REST catalog.

    Raises:
        InvalidOptionError: one is unknown.
    """
    known = (*PLAIN_PROPERTIES, *DOTTED_PROPERTIES)
    for key in given:
        if key in known or is_of_storage(key) or key.startswith(_OPEN):
            continue
        # Other names with dots are for other engines, such as table-default.<property>.
        if "." in key and not key.startswith(_STRICT):
            _warn_of_prefix(name, key)
            continue
        raise InvalidOptionError(
            f"catalog {name}: a REST catalog has no property {key!r}; {nearest_of(key, known)} "
            "(besides header.<name>, auth.type and what belongs to it, and those of the storage, "
            "such as s3.endpoint)"
        )


@lru_cache(maxsize=1024)
def _warn_of_prefix(name: str, key: str) -> None:
    prefix = key.partition(".")[0]
    near = did_you_mean(prefix, _PREFIXES, shown=repr, closeness=0.75)
    if near and prefix not in _PREFIXES:
        _LOG.warning("catalog %s: property %r has no effect; %s", name, key, near)


def http_options(name: str, properties: Mapping[str, str]) -> HttpOptions:
    """The options for requests to the catalog's server.

    Raises:
        InvalidOptionError: the uri or another property is malformed.
    """
    defaults = HttpOptions("")
    client = "rest.client."
    certificate = properties.get("ssl.client.cert")
    key = properties.get("ssl.client.key")
    if key and not certificate:
        raise InvalidOptionError(
            f"catalog {name}: ssl.client.key needs ssl.client.cert, the certificate of the key"
        )
    return HttpOptions(
        uri=_uri(name, properties),
        headers=_headers(properties),
        connect_timeout_s=_seconds(
            name, properties, client + "connection-timeout-ms", defaults.connect_timeout_s
        ),
        read_timeout_s=_seconds(
            name, properties, client + "socket-timeout-ms", defaults.read_timeout_s
        ),
        max_retries=integer(
            name, properties, client + "max-retries", defaults.max_retries, minimum=0
        ),
        max_connections=integer(
            name, properties, client + "max-connections", defaults.max_connections
        ),
        proxy=_proxy(name, properties),
        verify=properties.get("ssl.cabundle") or True,
        certificate=(certificate, key) if certificate and key else certificate or None,
    )


def snapshot_mode(name: str, properties: Mapping[str, str]) -> str:
    """The snapshots that a table is loaded with: `ALL` or `REFS`.

    Raises InvalidOptionError if the property is neither.
    """
    mode = properties.get("snapshot-loading-mode", ALL).lower()
    if mode not in (ALL, REFS):
        raise InvalidOptionError(
            f"catalog {name}: snapshot-loading-mode is {mode!r}, expected {ALL} or {REFS}"
        )
    return mode


def flag(name: str, properties: Mapping[str, str], key: str, default: bool) -> bool:
    """A property that is true or false. Raises InvalidOptionError for other values."""
    text = properties.get(key)
    if not text:
        return default
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise InvalidOptionError(f"catalog {name}: {key} is {text!r}, expected true or false")
    return value


def integer(
    name: str, properties: Mapping[str, str], key: str, default: int, *, minimum: int = 1
) -> int:
    """A property that is a whole number. Raises InvalidOptionError for other values."""
    text = properties.get(key)
    if not text:
        return default
    if not text.strip().isdecimal() or int(text) < minimum:
        raise InvalidOptionError(
            f"catalog {name}: {key} is {text!r}, expected a whole number from {minimum} on"
        )
    return int(text)


def web_address(name: str, key: str, text: str) -> str:
    """The address of a server, without a slash at its end.

    Raises:
        InvalidOptionError: it is malformed, or contains a user or password; then it is not shown.
    """
    try:
        parts = urlsplit(text.strip())
        valid = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
        with_user = "@" in parts.netloc
    except ValueError:
        valid = with_user = False
    if with_user:
        raise InvalidOptionError(
            f"catalog {name}: {key} contains a user or password, which errors and logs would show; "
            "leave it out, and set rest.auth.type = basic, rest.auth.basic.username and "
            "rest.auth.basic.password"
        )
    if not valid or parts.query or parts.fragment:
        raise InvalidOptionError(
            f"catalog {name}: {key} is not the address of a server, such as "
            "https://catalog.example.org or http://localhost:8181/iceberg"
        )
    return text.strip().rstrip("/")


def _uri(name: str, properties: Mapping[str, str]) -> str:
    uri = properties.get("uri")
    if not uri:
        raise InvalidOptionError(
            f"catalog {name}: a REST catalog needs the address of its server as uri, such as "
            "https://catalog.example.org"
        )
    return web_address(name, "uri", uri)


def _headers(properties: Mapping[str, str]) -> dict[str, str]:
    headers = {
        key.removeprefix("header."): value
        for key, value in properties.items()
        if key.startswith("header.") and value
    }
    if agent := properties.get("rest.client.user-agent"):
        headers["User-Agent"] = agent
    return headers


def _seconds(name: str, properties: Mapping[str, str], key: str, default: float) -> float:
    return integer(name, properties, key, round(default * 1000)) / 1000


def _proxy(name: str, properties: Mapping[str, str]) -> str | None:
    prefix = "rest.client.proxy."
    host = properties.get(prefix + "hostname")
    if not host:
        return None
    port = integer(name, properties, prefix + "port", 80)
    user, password = properties.get(prefix + "username"), properties.get(prefix + "password")
    login = f"{quote(user, safe='')}:{quote(password or '', safe='')}@" if user else ""
    return f"http://{login}{host}:{port}"
