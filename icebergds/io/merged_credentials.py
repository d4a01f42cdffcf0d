"""Merges storage properties of the user with those that a catalog vends.

A credential that is sent as it is, such as a token, goes only to servers of who gave it: the user's
own to those that the user configured, a vended one to those of the catalog. Keys of S3 are never
sent, and their signatures are of no use for other servers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from icebergds.errors import InvalidOptionError
from icebergds.io.option_values import is_true

SENT_AS_THEY_ARE = ("gcs.", "adls.")
"""The beginnings of the properties of storages whose credentials are sent as they are."""

EXPIRIES = (
    "s3.session-token-expires-at-ms",
    "gcs.oauth2.token-expires-at",
    "adls.sas-token-expires-at-ms",
)
"""The beginnings of properties that tell when credentials expire."""

# The user's own credentials, by the beginnings of their names: vended ones replace them all, for
# parts of both together would be refused.
_OF_KIND = {
    "s3.": (
        "s3.access-key-id",
        "s3.secret-access-key",
        "s3.session-token",
        "s3.profile-name",
        "s3.anonymous",
        "s3.role-",
        "client.access-key-id",
        "client.secret-access-key",
        "client.session-token",
        "client.profile-name",
        "client.role-",
        "client.assume-role.",
    ),
    "gcs.": ("gcs.oauth2.", "gcs.no-auth"),
    "adls.": (
        "adls.sas-token",
        "adls.account-key",
        "adls.connection-string",
        "adls.token",
        "adls.client-secret",
        "adls.auth.",
    ),
}
_CREDENTIALS = tuple(name for names in _OF_KIND.values() for name in names)
# Of names of credentials.
_MARKS = ("access-key-id", "oauth2.token", "sas-token", "account-key", "account.key")
# What says where credentials are sent.
_SERVERS = {
    "gcs.": ("gcs.service.host", "gcs.endpoint"),
    "adls.": ("adls.account-host", "adls.blob-storage-", "adls.connection-string"),
}
_GOOGLES_TOKEN = "gcs.oauth2.token"
_CONNECTION = "adls.connection-string"


def with_vended(own: Mapping[str, str], vended: Mapping[str, str]) -> dict[str, str]:
    """The properties to access a storage with.

    Vended properties replace the user's own. So do vended credentials those of the same kind; if
    there are none, the servers that the catalog names are not used.

    Raises:
        InvalidOptionError: the catalog vends a path as a token.
    """
    if os.path.isabs(vended.get(_GOOGLES_TOKEN, "")):
        raise InvalidOptionError(
            f"the catalog gave the path of a file as {_GOOGLES_TOKEN}, which only the user may do; "
            "let it vend tokens"
        )
    replaced: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    for kind, names in _OF_KIND.items():
        if _has_credentials(kind, vended):
            replaced += names
        elif not (kind == "gcs." and is_true(own, "gcs.no-auth")):
            left_out += _SERVERS.get(kind, ())
    kept = {key: value for key, value in own.items() if not key.startswith(replaced)}
    added = {key: value for key, value in vended.items() if not key.startswith(left_out)}
    return {**kept, **added}


def without_credentials(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that are not credentials."""
    return {key: value for key, value in properties.items() if not key.startswith(_CREDENTIALS)}


def without_expiries(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that do not tell when credentials expire."""
    return {key: value for key, value in properties.items() if not key.startswith(EXPIRIES)}


def secrets_in(properties: Mapping[str, str]) -> frozenset[str]:
    """What distinguishes the clients of these credentials from those of others."""
    return frozenset(
        value
        for key, value in without_expiries(properties).items()
        if any(mark in key for mark in (*_MARKS, "session-token"))
    )


def _has_credentials(kind: str, properties: Mapping[str, str]) -> bool:
    names = [key for key in properties if key.startswith(kind)]
    return any(
        any(mark in key for mark in _MARKS)
        or (key.startswith(_CONNECTION) and _has_secret(properties[key]))
        for key in names
    )


def _has_secret(connection: str) -> bool:
    """Whether a connection string, or the address of an account, has a credential."""
    is_address = connection.lower().startswith(("http://", "https://"))
    return ("?" if is_address else "=") in connection
