"""Parses how a service of AWS is reached: region, endpoint, keys, role."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from icebergds.errors import InvalidOptionError, UnsupportedFeatureError
from icebergds.suggestions import nearest_of

__all__ = ["AwsSettings", "aws_settings", "check_names", "flag"]


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """How a catalog, or its key service, reaches a service of AWS.

    Attributes:
        catalog: the catalog's name, for messages; empty for its key service.
        service: botocore's name of the service, which is also the prefix of its properties.
        endpoint: None for AWS's own endpoint in the region.
        profile: in AWS's configuration files; may set a role and a region.
        role: the role to assume; None to use the credentials directly.
    """

    catalog: str
    service: str
    region: str | None
    endpoint: str | None
    keys: Keys | None
    profile: str | None
    role: Role | None
    max_retries: int
    retry_mode: str

    @property
    def where(self) -> str:
        """What has the settings, for messages."""
        return _where(self.catalog)

    def secrets(self) -> Iterator[str]:
        """Texts that messages must not contain."""
        if self.keys is not None:
            yield self.keys.secret
            if self.keys.token is not None:
                yield self.keys.token


@dataclass(frozen=True, slots=True, repr=False)
class Keys:
    """Static credentials."""

    key_id: str
    secret: str
    token: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Role:
    """A role to assume with the credentials of the catalog."""

    arn: str
    session_name: str | None
    external_id: str | None
    seconds: int | None
    tags: tuple[tuple[str, str], ...]


def aws_settings(catalog: str, service: str, properties: Mapping[str, str]) -> AwsSettings:
    """The settings of a service from properties; empty values count as absent.

    Args:
        catalog: the catalog's name, for messages; empty for its key service.
        service: botocore's name of the service.

    Raises:
        InvalidOptionError: one is malformed, or an access key is given without its secret.
    """
    given = {name: value for name, value in properties.items() if value}

    def first(*names: str) -> str | None:
        return next((given[name] for name in names if name in given), None)

    retries = _number(catalog, given, f"{service}.max-retries", 0)
    keys = _keys(catalog, service, given)
    if keys is None and f"{service}.profile-name" not in given:
        keys = _keys(catalog, "client", given)
    return AwsSettings(
        catalog,
        service,
        first(f"{service}.region", "client.assume-role.region", "client.region"),
        _endpoint(catalog, f"{service}.endpoint", given),
        keys,
        first(f"{service}.profile-name", "client.profile-name"),
        _role(catalog, given),
        _RETRIES if retries is None else retries,
        _retry_mode(catalog, f"{service}.retry-mode", given),
    )


def check_names(
    catalog: str, service: str, properties: Mapping[str, str], own: Collection[str]
) -> None:
    """Checks that the catalog's properties exist.

    Properties of the storage are not checked.

    Args:
        own: names in addition to those of `aws_settings`.

    Raises:
        InvalidOptionError: one does not exist.
        UnsupportedFeatureError: it is a property of Java Iceberg that is not supported.
    """
    known = {*own, "type", "warehouse", *_CLIENT, *(f"{service}.{name}" for name in _OF_SERVICE)}
    for name in properties:
        of_catalog = "." not in name or name.startswith((f"{service}.", "client."))
        if not of_catalog or name in known or name.startswith(_TAGS):
            continue
        if why := _UNSUPPORTED.get(name):
            raise UnsupportedFeatureError(
                f"{_where(catalog)}: property {name!r} is not supported: {why}"
            )
        raise InvalidOptionError(
            f"{_where(catalog)}: a catalog of type {service} has no property {name!r}; "
            f"{nearest_of(name, sorted(known))}"
        )


def flag(catalog: str, properties: Mapping[str, str], name: str, default: bool) -> bool:
    """A property that is true or false. Raises InvalidOptionError if it is neither."""
    text = properties.get(name, "").strip().lower()
    if text not in ("", "true", "false"):
        raise InvalidOptionError(
            f"{_where(catalog)}: {name} is {properties[name]!r}, expected true or false"
        )
    return text == "true" if text else default


def _where(catalog: str) -> str:
    return f"catalog {catalog}" if catalog else "its properties"


_RETRIES = 5
_OF_SERVICE = (
    "region",
    "endpoint",
    "access-key-id",
    "secret-access-key",
    "session-token",
    "profile-name",
    "max-retries",
    "retry-mode",
)
_TAGS = "client.assume-role.tags."
_CLIENT = (
    "client.region",
    "client.access-key-id",
    "client.secret-access-key",
    "client.session-token",
    "client.profile-name",
    "client.role-arn",
    "client.role-session-name",
    "client.assume-role.arn",
    "client.assume-role.region",
    "client.assume-role.session-name",
    "client.assume-role.external-id",
    "client.assume-role.timeout-sec",
)
_JAVA_CLASS = "it names a class of Java; give keys, a profile or a role"
_UNSUPPORTED = {
    "client.factory": _JAVA_CLASS,
    "client.credentials-provider": _JAVA_CLASS,
    "glue.lakeformation-enabled": "credentials of Lake Formation are not; leave it out to use "
    "those of the catalog",
    "lock-impl": "commits use the optimistic lock of the service, as those of Java Iceberg without "
    "a lock manager do, and must not meet commits that use another",
}


def _endpoint(catalog: str, name: str, given: Mapping[str, str]) -> str | None:
    endpoint = given.get(name)
    if endpoint is None:
        return None
    try:
        parts = urlsplit(endpoint)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in endpoint
    except ValueError:
        valid = False
    if not valid:
        # The value is not shown: it may be a key, or contain a password.
        raise InvalidOptionError(
            f"{_where(catalog)}: {name} is not the address of a server: expected "
            "https://host:port, without a user"
        )
    return endpoint


def _keys(catalog: str, prefix: str, given: Mapping[str, str]) -> Keys | None:
    key_id, secret = given.get(f"{prefix}.access-key-id"), given.get(f"{prefix}.secret-access-key")
    if key_id is None and secret is None:
        return None
    if key_id is None or secret is None:
        missing = "access-key-id" if key_id is None else "secret-access-key"
        raise InvalidOptionError(
            f"{_where(catalog)}: {prefix}.{missing} is missing; an access key is "
            f"{prefix}.access-key-id and {prefix}.secret-access-key together"
        )
    return Keys(key_id, secret, given.get(f"{prefix}.session-token"))


def _role(catalog: str, given: Mapping[str, str]) -> Role | None:
    arn = given.get("client.role-arn") or given.get("client.assume-role.arn")
    if arn is None:
        return None
    return Role(
        arn,
        given.get("client.role-session-name") or given.get("client.assume-role.session-name"),
        given.get("client.assume-role.external-id"),
        _number(catalog, given, "client.assume-role.timeout-sec", 1),
        tuple((k.removeprefix(_TAGS), v) for k, v in given.items() if k.startswith(_TAGS)),
    )


def _number(catalog: str, given: Mapping[str, str], name: str, minimum: int) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < minimum:
        raise InvalidOptionError(
            f"{_where(catalog)}: {name} is {text!r}, expected a number of at least {minimum}"
        )
    return int(text)


def _retry_mode(catalog: str, name: str, given: Mapping[str, str]) -> str:
    mode = given.get(name, "standard").strip().lower()
    if mode not in ("standard", "adaptive", "legacy"):
        raise InvalidOptionError(
            f"{_where(catalog)}: {name} is {mode!r}, expected standard, adaptive or legacy"
        )
    return mode
