"""Parses the properties of a Hive catalog, with PyIceberg's and Java Iceberg's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from icebergds.catalog.hive.connection import ANSWER_TIMEOUT_S, Endpoint, Metastore, User
from icebergds.catalog.hive.entries import EntryOptions
from icebergds.catalog.hive.locks import LockOptions
from icebergds.errors import InvalidOptionError
from icebergds.spec.table_properties import BOOLEAN, NUMBER, Property, at_least
from icebergds.suggestions import nearest_of

_DEFAULT_PORT = 9083
_DURATION = re.compile(r"(?P<number>[0-9]+)(?P<unit>s|m|)")


@dataclass(frozen=True, slots=True)
class HiveOptions:
    """The properties of a Hive catalog.

    Attributes:
        list_all_tables: whether to list tables of other formats, too.
        lock_enabled: whether commits lock tables that have no property for this.
    """

    metastore: Metastore
    list_all_tables: bool
    lock_enabled: bool
    lock: LockOptions
    entries: EntryOptions


def hive_options(catalog: str, properties: Mapping[str, str]) -> HiveOptions:
    """Parses the properties of a Hive catalog.

    Raises:
        InvalidOptionError: a property is missing, unknown or malformed, or needs a package that is
            missing.
    """
    _check_names(catalog, properties)
    try:
        return HiveOptions(
            metastore=_metastore(catalog, properties),
            list_all_tables=Property("list-all-tables", BOOLEAN, False).of(properties),
            lock_enabled=Property("iceberg.engine.hive.lock-enabled", BOOLEAN, True).of(properties),
            lock=_lock(properties),
            entries=EntryOptions(
                hive_engine=Property("iceberg.engine.hive.enabled", BOOLEAN, False).of(properties),
                hive2_compatible=Property("hive.hive2-compatible", BOOLEAN, False).of(properties),
                max_parameter_size=Property(
                    "iceberg.hive.table-property-max-size", at_least(0), 32672
                ).of(properties),
            ),
        )
    except InvalidOptionError as error:
        raise InvalidOptionError(f"catalog {catalog}: {error}") from None


_PROPERTIES = (
    "type",
    "uri",
    "warehouse",
    "list-all-tables",
    "ugi",
    "hive.hive2-compatible",
    "hive.kerberos-authentication",
    "hive.kerberos-service-name",
    "hive.metastore.client.socket.timeout",
    "lock-check-min-wait-time",
    "lock-check-max-wait-time",
    "lock-check-retries",
    "iceberg.hive.lock-timeout-ms",
    "iceberg.hive.lock-check-min-wait-ms",
    "iceberg.hive.lock-check-max-wait-ms",
    "iceberg.hive.lock-heartbeat-interval-ms",
    "iceberg.hive.table-property-max-size",
    "iceberg.engine.hive.enabled",
    "iceberg.engine.hive.lock-enabled",
)


def _check_names(catalog: str, properties: Mapping[str, str]) -> None:
    for name in properties:
        # Other names with a dot are storage properties.
        if name in _PROPERTIES or ("." in name and not name.startswith(("hive.", "iceberg."))):
            continue
        raise InvalidOptionError(
            f"catalog {catalog}: a Hive catalog has no property {name!r}; "
            f"{nearest_of(name, _PROPERTIES)} (besides those of the storage, such as s3.endpoint)"
        )


def _metastore(catalog: str, properties: Mapping[str, str]) -> Metastore:
    service = None
    if Property("hive.kerberos-authentication", BOOLEAN, False).of(properties):
        if find_spec("puresasl") is None or find_spec("kerberos") is None:
            raise InvalidOptionError(
                "hive.kerberos-authentication needs the packages pure-sasl and kerberos: pip "
                "install 'icebergds[hive-kerberos]'"
            )
        service = properties.get("hive.kerberos-service-name") or "hive"
    uris = [uri.strip() for uri in properties.get("uri", "").split(",")]
    endpoints = tuple(map(_endpoint, uris))
    return Metastore(catalog, endpoints, _user(properties), service, _answer_timeout(properties))


def _answer_timeout(properties: Mapping[str, str]) -> int:
    """How long to wait for an answer, in Hive's format: seconds, or `600s`, or `10m`."""
    name = "hive.metastore.client.socket.timeout"
    text = properties.get(name, f"{ANSWER_TIMEOUT_S}s").strip().lower()
    found = _DURATION.fullmatch(text)
    if found is None or int(found["number"]) == 0:
        raise InvalidOptionError(f"{name} is {text!r}, expected seconds above 0, such as 600s")
    return int(found["number"]) * (60 if found["unit"] == "m" else 1)


def _endpoint(uri: str) -> Endpoint:
    if not uri:
        raise InvalidOptionError(
            "a Hive catalog needs the address of its metastore: set option('catalog.uri', "
            f"'thrift://<host>:{_DEFAULT_PORT}'), several joined by commas"
        )
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme != "thrift" or not host or "@" in parts.netloc or parts.path not in ("", "/"):
        # Not shown: it may contain a password.
        raise InvalidOptionError(
            f"its uri is not that of a Hive Metastore; expected thrift://<host>:{_DEFAULT_PORT}, "
            "several joined by commas, without a user; Thrift over HTTP is not supported"
        )
    return Endpoint(host, _DEFAULT_PORT if port is None else port)


def _user(properties: Mapping[str, str]) -> User | None:
    ugi = properties.get("ugi")
    if not ugi:
        return None
    name, _, groups = ugi.partition(":")
    if not name:
        raise InvalidOptionError("ugi: expected a user and a group, such as 'etl:analysts'")
    return User(name, tuple(group for group in groups.split(",") if group))


def _lock(properties: Mapping[str, str]) -> LockOptions:
    return LockOptions(
        timeout_s=Property("iceberg.hive.lock-timeout-ms", at_least(0), 180_000).of(properties)
        / 1000,
        min_wait_s=_wait(properties, "min", 50),
        max_wait_s=_wait(properties, "max", 1_000),
        checks=Property("lock-check-retries", at_least(0), None).of(properties),
        heartbeat_s=Property("iceberg.hive.lock-heartbeat-interval-ms", at_least(1), 240_000).of(
            properties
        )
        / 1000,
    )


def _wait(properties: Mapping[str, str], bound: str, default_ms: int) -> float:
    """How long to wait between two checks of a lock: in milliseconds in Java, else in seconds."""
    java, ours = f"iceberg.hive.lock-check-{bound}-wait-ms", f"lock-check-{bound}-wait-time"
    if java in properties and ours in properties:
        raise InvalidOptionError(f"{java} and {ours} say the same; set one of them")
    if java in properties:
        return Property(java, at_least(0), default_ms).of(properties) / 1000
    seconds = Property(ours, NUMBER, default_ms / 1000).of(properties)
    if seconds < 0:
        raise InvalidOptionError(f"{ours} is {properties[ours]!r}, expected seconds, not below 0")
    return seconds
