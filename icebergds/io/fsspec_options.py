"""Translates Iceberg's storage properties to options of fsspec's file systems."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.io.azure_options import azure_options

EXTRAS = {
    "s3": ("s3fs", "s3"),
    "gs": ("gcsfs", "gcs"),
    "abfs": ("adlfs", "azure"),
}

_PROTOCOLS = {
    "s3a": "s3",
    "s3n": "s3",
    "gcs": "gs",
    "abfss": "abfs",
    "wasb": "abfs",
    "wasbs": "abfs",
    "az": "abfs",
    "adl": "abfs",
}

KNOWN_SCHEMES = ("file", "s3", "gs", "abfs", "hdfs", "viewfs", "memory", *_PROTOCOLS)
"""Schemes of locations that are opened without being allowed by the user."""

# Without a user and a password, which no storage takes, but errors would show.
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", re.IGNORECASE)

_CREDENTIALS = {
    "s3": "set s3.access-key-id and s3.secret-access-key, s3.profile-name, or s3.anonymous = true "
    "for a public bucket, as options or as properties of load_table and load_catalog; or give what "
    "AWS's own tools use, such as the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a "
    "role of the machine",
    "abfs": "set adls.account-key, adls.sas-token, adls.connection-string, or adls.tenant-id, "
    "adls.client-id and adls.client-secret, as options or as properties of load_table and "
    "load_catalog; or give what Azure's own tools use, such as the variables AZURE_TENANT_ID, "
    "AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or a managed identity",
}

# Each option with the properties that may hold it; the first one that is set wins.
_S3 = {
    "endpoint_url": ("s3.endpoint",),
    "key": ("s3.access-key-id", "client.access-key-id"),
    "secret": ("s3.secret-access-key", "client.secret-access-key"),
    "token": ("s3.session-token", "client.session-token"),
    "profile": ("s3.profile-name", "client.profile-name"),
}
_GCS = {
    "project": ("gcs.project-id",),
    "token": ("gcs.oauth2.token",),
    "endpoint_url": ("gcs.service.host", "gcs.endpoint"),
    "requester_pays": ("gcs.user-project", "gcs.requester-pays"),
}


def fsspec_protocol(scheme: str) -> str:
    """The name of a location's scheme in fsspec."""
    return _PROTOCOLS.get(scheme, scheme)


def lacks_credentials(error: BaseException) -> bool:
    """Whether a request was not sent because there are no credentials for it."""
    names = {kind.__name__ for kind in type(error).__mro__}
    # Azure's is also that of answers.
    if "ClientAuthenticationError" in names:
        return getattr(error, "response", None) is None
    return not names.isdisjoint(("NoCredentialsError", "PartialCredentialsError"))


def missing_credentials(protocol: str, path: str) -> str:
    """The message of a request without credentials."""
    return f"there are no credentials for {path!r}: {_CREDENTIALS[protocol]}"


def fsspec_options(protocol: str, authority: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """Keyword arguments for fsspec's file system of `protocol`.

    `authority` is the part of a location between `scheme://` and the next slash. Listings are never
    cached: another process may add files at any time.
    """
    options: dict[str, Any] = {"use_listings_cache": False}
    match protocol:
        case "s3":
            options |= _s3_options(properties)
        case "gs":
            options |= _pick(_GCS, properties)
            if _is_true(properties.get("gcs.no-auth")):
                options["token"] = "anon"
        case "abfs":
            options |= azure_options(authority, properties)
        case "hdfs" | "viewfs":
            options |= _hdfs_options(protocol, authority, properties)
    return options


# Of those that are side by side at most; the client's default is 10.
_CONNECTIONS = 32


def _s3_options(properties: Mapping[str, str]) -> dict[str, Any]:
    options = _pick(_S3, properties)
    _check_address("s3.endpoint", options.get("endpoint_url"))
    region = properties.get("s3.region") or properties.get("client.region")
    if region:
        options["client_kwargs"] = {"region_name": region}
    if _is_true(properties.get("s3.anonymous")):
        options["anon"] = True
    config: dict[str, Any] = {"max_pool_connections": _CONNECTIONS}
    if _is_true(properties.get("s3.path-style-access")):
        config["s3"] = {"addressing_style": "path"}
    if proxy := properties.get("s3.proxy-uri"):
        config["proxies"] = {"http": proxy, "https": proxy}
    if timeout := properties.get("s3.connect-timeout"):
        config["connect_timeout"] = _number("s3.connect-timeout", timeout, float)
    if timeout := properties.get("s3.request-timeout"):
        config["read_timeout"] = _number("s3.request-timeout", timeout, float)
    options["config_kwargs"] = config
    return options


def _hdfs_options(protocol: str, authority: str, properties: Mapping[str, str]) -> dict[str, Any]:
    user, _, address = authority.rpartition("@")
    host, _, port = address.rpartition(":") if ":" in address else (address, "", "")
    host = host or properties.get("hdfs.host", "default")
    options: dict[str, Any] = {
        "host": host if protocol == "hdfs" else f"viewfs://{host}",
        "port": _number("hdfs.port", port or properties.get("hdfs.port", "0"), int),
    }
    if user := user or properties.get("hdfs.user", ""):
        options["user"] = user
    if ticket := properties.get("hdfs.kerberos_ticket"):
        options["kerb_ticket"] = ticket
    return options


def _pick(names: Mapping[str, tuple[str, ...]], properties: Mapping[str, str]) -> dict[str, Any]:
    found = {
        option: next((properties[name] for name in candidates if properties.get(name)), None)
        for option, candidates in names.items()
    }
    return {option: value for option, value in found.items() if value is not None}


def _check_address(name: str, value: str | None) -> None:
    # The value is not shown: it may be a key that was given to the wrong property.
    if value is not None and not _WEB_ADDRESS.fullmatch(value):
        raise InvalidOptionError(
            f"property {name!r} is not the address of a server: expected http://host:port or "
            "https://host:port; give keys as s3.access-key-id and s3.secret-access-key"
        )


def _number(name: str, text: str, convert: Callable[[str], float]) -> float:
    try:
        return convert(text)
    except ValueError:
        raise InvalidOptionError(f"property {name!r} = {text!r}: expected a number") from None


def _is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"
