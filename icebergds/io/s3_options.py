"""Translates Iceberg's properties of S3 to options of s3fs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlencode

from icebergds.errors import InvalidOptionError, UnsupportedFeatureError
from icebergds.io.option_values import first, is_true, number
from icebergds.io.request_signing import RequestSigner, session_of_signer
from icebergds.io.table_access import REMOTE_SIGNING, task_signer


def s3_options(
    properties: Mapping[str, str], signer: RequestSigner | None = None
) -> dict[str, Any]:
    """Keyword arguments of s3fs.

    Args:
        signer: signs requests if the properties ask for it and have no keys; by default, one that
            the properties lead to.

    Raises:
        InvalidOptionError: a property is malformed, or asks for what is not supported.
        UnsupportedFeatureError: the requests are to be signed by a catalog that cannot be asked.
    """
    _refuse_unsupported(properties)
    options: dict[str, Any] = {
        option: value for option, names in _PLAIN.items() if (value := first(properties, *names))
    }
    _check_address("s3.endpoint", options.get("endpoint_url"))
    region = first(properties, "s3.region", "client.region")
    if region:
        options["client_kwargs"] = {"region_name": region}
    config = _config(properties)
    if is_true(properties, REMOTE_SIGNING) and "key" not in options:
        options["session"] = session_of_signer(_signer(properties, signer))
        options["anon"] = True
        config |= _without_checksums()
    elif is_true(properties, "s3.anonymous"):
        options["anon"] = True
    elif role := first(properties, *_ROLE):
        options = _with_role(options, role, region, properties)
    if is_true(properties, "s3.requester-pays"):
        options["requester_pays"] = True
    if writing := _writing(properties):
        options["s3_additional_kwargs"] = writing
    options["config_kwargs"] = config
    return options


# Of those that are side by side at most; the client's default is 10.
_CONNECTIONS = 32
# As Java's.
_RETRIES = 5

# Each option with the properties that may hold it; the first one that is set wins.
_PLAIN = {
    "endpoint_url": ("s3.endpoint",),
    "key": ("s3.access-key-id", "client.access-key-id"),
    "secret": ("s3.secret-access-key", "client.secret-access-key"),
    "token": ("s3.session-token", "client.session-token"),
    "profile": ("s3.profile-name", "client.profile-name"),
}
_ROLE = ("s3.role-arn", "client.role-arn", "client.assume-role.arn")
_SESSION_NAME = (
    "s3.role-session-name",
    "client.role-session-name",
    "client.assume-role.session-name",
)
_ENCRYPTION = {"s3": "AES256", "kms": "aws:kms", "dsse-kms": "aws:kms:dsse"}
# Java's, which would change what is written or deleted.
_UNSUPPORTED = ("s3.delete.tags.", "s3.access-points.")
_TAGS = "s3.write.tags."
_ROLE_TAGS = "client.assume-role.tags."

# Without a user and a password, which no storage takes, but errors would show.
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", re.IGNORECASE)


def _signer(properties: Mapping[str, str], signer: RequestSigner | None) -> RequestSigner:
    found = signer or task_signer(properties)
    if found is None:
        raise UnsupportedFeatureError(
            f"the table's catalog signs requests to S3 ({REMOTE_SIGNING}), but only the process "
            "that loaded the table can ask it: it gave no token for the table; let it give one or "
            "vend credentials, or set s3.access-key-id and s3.secret-access-key"
        )
    return found


def _without_checksums() -> dict[str, Any]:
    """Settings without checksums after the body, which the signature would have to cover."""
    from botocore.config import Config

    names = ("request_checksum_calculation", "response_checksum_validation")
    # Older releases have neither the settings nor such checksums.
    return {name: "when_required" for name in names if name in Config.OPTION_DEFAULTS}


def _with_role(
    options: dict[str, Any], role: str, region: str, properties: Mapping[str, str]
) -> dict[str, Any]:
    """The options with credentials of a role, which those of the options assume."""
    keys = ("key", "secret", "token", "profile")
    source = _Source(**{name: options.get(name) for name in keys})
    timeout = properties.get("client.assume-role.timeout-sec")
    assumed = _AssumedRole(
        arn=role,
        source=source,
        region=first(properties, "client.assume-role.region") or region or None,
        session_name=first(properties, *_SESSION_NAME) or "icebergds",
        external_id=properties.get("client.assume-role.external-id"),
        duration_s=None
        if timeout is None
        else int(number("client.assume-role.timeout-sec", timeout, int)),
        tags=tuple(sorted(_after(_ROLE_TAGS, properties).items())),
    )
    rest = {name: value for name, value in options.items() if name not in keys}
    return {**rest, "session": _session_of_role(assumed)}


def _config(properties: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of botocore's configuration."""
    retries = properties.get("s3.retry.num-retries", str(_RETRIES))
    config: dict[str, Any] = {
        "max_pool_connections": _CONNECTIONS,
        # Its waits are random up to an exponential bound.
        "retries": {
            "mode": "standard",
            "total_max_attempts": 1 + int(number("s3.retry.num-retries", retries, int)),
        },
    }
    store: dict[str, Any] = {}
    if is_true(properties, "s3.path-style-access"):
        store["addressing_style"] = "path"
    elif is_true(properties, "s3.force-virtual-addressing"):
        store["addressing_style"] = "virtual"
    if is_true(properties, "s3.acceleration-enabled"):
        store["use_accelerate_endpoint"] = True
    if is_true(properties, "s3.dualstack-enabled"):
        store["use_dualstack_endpoint"] = True
    if store:
        config["s3"] = store
    if proxy := properties.get("s3.proxy-uri"):
        config["proxies"] = {"http": proxy, "https": proxy}
    if timeout := properties.get("s3.connect-timeout"):
        config["connect_timeout"] = number("s3.connect-timeout", timeout, float)
    if timeout := properties.get("s3.request-timeout"):
        config["read_timeout"] = number("s3.request-timeout", timeout, float)
    return config


def _writing(properties: Mapping[str, str]) -> dict[str, str]:
    """Arguments of requests that write objects."""
    found = {
        "ServerSideEncryption": _encryption(properties)
        or first(properties, "s3.server-side-encryption"),
        "SSEKMSKeyId": first(properties, "s3.sse.key", "s3.sse-kms-key-id"),
        "ACL": first(properties, "s3.acl"),
        "StorageClass": first(properties, "s3.write.storage-class"),
        "Tagging": urlencode(_after(_TAGS, properties)),
    }
    return {name: value for name, value in found.items() if value}


def _after(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that begin with a prefix, by what follows it."""
    return {
        name[len(prefix) :]: value for name, value in properties.items() if name.startswith(prefix)
    }


def _encryption(properties: Mapping[str, str]) -> str:
    given = properties.get("s3.sse.type", "none").strip().lower()
    if given == "none":
        return ""
    if given not in _ENCRYPTION:
        raise InvalidOptionError(
            f"property 's3.sse.type' = {given!r} is not supported; expected none, "
            f"{', '.join(_ENCRYPTION)}"
        )
    return _ENCRYPTION[given]


def _refuse_unsupported(properties: Mapping[str, str]) -> None:
    for name in properties:
        if name.startswith(_UNSUPPORTED):
            raise InvalidOptionError(f"property {name!r} is not supported; leave it out")
    if properties.get("s3.delete-enabled") and not is_true(properties, "s3.delete-enabled"):
        raise InvalidOptionError(
            "property 's3.delete-enabled' = 'false' is not supported: files would be deleted; deny "
            "s3:DeleteObject to the credentials instead"
        )


def _check_address(name: str, value: str | None) -> None:
    # The value is not shown: it may be a key that was given to the wrong property.
    if value is not None and not _WEB_ADDRESS.fullmatch(value):
        raise InvalidOptionError(
            f"property {name!r} is not the address of a server: expected http://host:port or "
            "https://host:port; give keys as s3.access-key-id and s3.secret-access-key"
        )


@dataclass(frozen=True, slots=True)
class _Source:
    """The credentials that assume a role; without any, those that AWS's own tools use."""

    key: str | None = None
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class _AssumedRole:
    """A role and how it is assumed.

    Attributes:
        arn: of the role.
        source: who assumes it.
        region: of the token service; None for that of the environment.
        session_name: by which AWS's logs name the session.
        external_id: which the role may demand.
        duration_s: how long credentials hold; None for AWS's default, an hour.
        tags: names and values of the session's tags.
    """

    arn: str
    source: _Source
    region: str | None
    session_name: str
    external_id: str | None
    duration_s: int | None
    tags: tuple[tuple[str, str], ...] = ()


def _session_of_role(role: _AssumedRole) -> Any:
    """A session of aiobotocore with the role's credentials; one for each role in a process."""
    return _session(role, os.getpid())


# fsspec keeps one client for equal options, and sessions are equal only to themselves. A fork of
# this process cannot wait for what a session of this one has begun.
@lru_cache(maxsize=32)
def _session(role: _AssumedRole, _process: int) -> Any:
    from aiobotocore.session import AioSession

    session = AioSession()
    session.register_component("credential_provider", _RoleCredentials(role))
    return session


@dataclass(frozen=True, slots=True)
class _RoleCredentials:
    """What a session asks for its credentials."""

    role: _AssumedRole

    async def load_credentials(self) -> Any:
        from aiobotocore.credentials import (
            AioAssumeRoleCredentialFetcher,
            AioCredentials,
            AioDeferredRefreshableCredentials,
        )
        from aiobotocore.session import AioSession
        from botocore.exceptions import NoCredentialsError

        role, source = self.role, self.role.source
        session = AioSession(profile=source.profile)
        if source.key and source.secret:
            credentials = AioCredentials(source.key, source.secret, source.token)
        else:
            credentials = await session.get_credentials()
        if credentials is None:
            raise NoCredentialsError()
        more = {
            "ExternalId": role.external_id,
            "DurationSeconds": role.duration_s,
            "Tags": [{"Key": name, "Value": value} for name, value in role.tags] or None,
        }
        fetcher = AioAssumeRoleCredentialFetcher(
            partial(session.create_client, region_name=role.region),
            credentials,
            role.arn,
            extra_args={
                "RoleSessionName": role.session_name,
                **{name: value for name, value in more.items() if value is not None},
            },
        )
        return AioDeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
