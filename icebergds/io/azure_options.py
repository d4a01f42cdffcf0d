"""Tells from Iceberg's properties of Azure storage how it is reached, for adlfs and other clients.

A location names its account: `abfss://container@account.dfs.core.windows.net/...`. Properties that
name an account are used for that one only; those of `adls.account-name`, and those without a name,
for a location without an account, too.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.io.option_values import first, is_true

FILE_METADATA = {"is_directory": "false"}
"""What adlfs stores of a blob that is a file."""


@dataclass(frozen=True, slots=True, repr=False)
class AzureAccess:
    """How the blobs of a location are reached.

    Attributes:
        account: the name of the storage account; empty if only the environment tells it.
        address: of the account's blobs; empty likewise.
        signature: a shared access signature (SAS), which is used before the key.
        key: of the account.
        connection: the connection string that says all this, if one was given.
    """

    account: str
    address: str
    signature: str = ""
    key: str = ""
    connection: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class AzureClient:
    """A client of Entra (a service principal)."""

    tenant_id: str
    client_id: str
    client_secret: str

    @property
    def token_address(self) -> str:
        """Where it gets its tokens: the address that Azure's own tools use."""
        host = os.environ.get("AZURE_AUTHORITY_HOST") or "login.microsoftonline.com"
        authority = host.removeprefix("https://").rstrip(" /")
        return f"https://{authority}/{self.tenant_id}/oauth2/v2.0/token"


def azure_options(authority: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """Keyword arguments of adlfs.

    Without a connection string, signature or key, a token or a client's secret is used; else, what
    Azure's own tools use, such as variables of the environment or a managed identity.

    Args, Raises: as for `azure_access`.
    """
    access = azure_access(authority, properties)
    if access.connection:
        return {"connection_string": access.connection}
    if not access.address:
        return {}
    if access.signature:
        return _connection(access.address, SharedAccessSignature=access.signature)
    if access.key:
        return _connection(access.address, AccountName=access.account, AccountKey=access.key)
    if is_true(properties, "adls.anon"):
        return _connection(access.address)
    identity = _identity(properties)
    connection = os.environ.get(_CONNECTION_STRING, "")
    if connection and not identity:
        return {"connection_string": _of_this_account(connection, access.account)}
    return {
        "account_name": access.account,
        "account_host": access.address.removeprefix("https://"),
        **identity,
    }


def azure_client(properties: Mapping[str, str]) -> AzureClient | None:
    """The client that properties name; None if they name none.

    Raises:
        InvalidOptionError: they name a part of one.
    """
    found = {option: properties[name] for option, name in _CLIENT.items() if properties.get(name)}
    if found and (missing := [name for option, name in _CLIENT.items() if option not in found]):
        raise InvalidOptionError(
            f"properties of Azure storage: {missing[0]} is missing; a client needs all of "
            f"{', '.join(_CLIENT.values())}"
        )
    return AzureClient(**found) if found else None


def azure_access(authority: str, properties: Mapping[str, str]) -> AzureAccess:
    """How properties say that the blobs of a location are reached.

    Args:
        authority: of the location: `container@host` or `container`.
        properties: storage properties.

    Raises:
        InvalidOptionError: no account is named, or a property is malformed.
    """
    host = _host(authority)
    named = first(properties, *_ACCOUNT_NAMES)
    account = host.partition(".")[0] or named
    # Its endpoint in Java Iceberg, a connection string in PyIceberg.
    given = _of_account("adls.connection-string", host, account, properties)
    if given and not _is_address(given):
        if not (host and _setting(given, "AccountName") not in ("", account)):
            return _access_by(_checked_connection(given), account)
        given = ""
    if not (account or given):
        _require_environment(authority)
        return AzureAccess("", "")
    address, _, signature = (given or _endpoint(host, account, properties)).partition("?")
    signature = signature or _of_account("adls.sas-token", host, account, properties)
    if signature:
        signature = _checked("adls.sas-token", signature.removeprefix("?"))
        return AzureAccess(account, address, signature=signature)
    key = first(properties, *_ACCOUNT_KEYS) if named in ("", account) else ""
    return AzureAccess(account, address, key=_checked("adls.account-key", key))


_ACCOUNT_NAMES = ("adls.account-name", "adls.auth.shared-key.account.name")
_ACCOUNT_KEYS = ("adls.account-key", "adls.auth.shared-key.account.key")
_CLIENT = {
    "tenant_id": "adls.tenant-id",
    "client_id": "adls.client-id",
    "client_secret": "adls.client-secret",
}
# Read by adlfs.
_CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"
_ENVIRONMENT = ("AZURE_STORAGE_ACCOUNT_NAME", _CONNECTION_STRING)
_TOKEN_LIFETIME_S = 3600


@dataclass(frozen=True, slots=True, repr=False)
class _Token:
    """A bearer token for azure.core, which asks for it again when it may have expired."""

    token: str

    # fsspec distinguishes file systems by the texts of their options; the text tells no secret.
    def __repr__(self) -> str:
        return f"_Token({hashlib.sha256(self.token.encode()).hexdigest()})"

    async def get_token(self, *_: str, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken(self.token, int(time.time()) + _TOKEN_LIFETIME_S)

    async def close(self) -> None:
        """Has nothing to close."""


@dataclass(slots=True, repr=False)
class _ClientCredential:
    """A client's tokens for azure.core. A client that Entra refuses is an error at once.

    The client of storage would ask again, for a minute and more.
    """

    client: AzureClient
    _identity: Any = None

    def __repr__(self) -> str:
        text = "\0".join(astuple(self.client))
        return f"_ClientCredential({hashlib.sha256(text.encode()).hexdigest()})"

    async def get_token(self, *scopes: str, **options: Any) -> Any:
        from azure.core.exceptions import ClientAuthenticationError
        from azure.identity.aio import ClientSecretCredential

        if self._identity is None:
            self._identity = ClientSecretCredential(*astuple(self.client))
        try:
            return await self._identity.get_token(*scopes, **options)
        except ClientAuthenticationError as error:
            told = str(error).replace(self.client.client_secret, "...")
            raise PermissionError(
                f"no token for the client {self.client.client_id}: {told}"
            ) from None

    async def close(self) -> None:
        if self._identity is not None:
            await self._identity.close()


def _host(authority: str) -> str:
    container, at, host = authority.partition("@")
    if not container or (not at and "." in container):
        raise InvalidOptionError(
            f"location of {authority!r}: it names no container; expected "
            "abfss://container@account.dfs.core.windows.net/..."
        )
    return host


def _require_environment(authority: str) -> None:
    if not any(os.environ.get(name) for name in _ENVIRONMENT):
        raise InvalidOptionError(
            f"location of container {authority!r}: it names no storage account; use "
            "abfss://container@account.dfs.core.windows.net/..., or set adls.account-name or "
            "adls.connection-string"
        )


def _of_this_account(connection_string: str, account: str) -> str:
    """The connection string of the environment, which may be of another account."""
    named = _setting(connection_string, "AccountName")
    if named not in ("", account):
        raise InvalidOptionError(
            f"the variable {_CONNECTION_STRING} is of the account {named}, and the location of "
            f"{account}; unset it, or set adls.account-key or another property of Azure storage"
        )
    return connection_string


def _endpoint(host: str, account: str, properties: Mapping[str, str]) -> str:
    """The address of the account's blobs."""
    if given := properties.get("adls.account-host"):
        return f"https://{given}"
    scheme = properties.get("adls.blob-storage-scheme") or "https"
    authority = properties.get("adls.blob-storage-authority")
    if authority and authority.startswith("."):
        return f"{scheme}://{account}{authority}"
    if authority:
        return f"{scheme}://{authority}/{account}"
    return f"{scheme}://{host.replace('.dfs.', '.blob.', 1) or f'{account}.blob.core.windows.net'}"


def _identity(properties: Mapping[str, str]) -> dict[str, Any]:
    """A token or the secret of a client; empty for the default credential."""
    if token := properties.get("adls.token"):
        return {"credential": _Token(token)}
    client = azure_client(properties)
    return {} if client is None else {"credential": _ClientCredential(client)}


def _connection(address: str, **settings: str) -> dict[str, Any]:
    # A connection string leaves nothing for adlfs to take from the environment.
    parts = [f"BlobEndpoint={address}", *(f"{name}={value}" for name, value in settings.items())]
    return {"connection_string": ";".join(parts)}


def _of_account(name: str, host: str, account: str, properties: Mapping[str, str]) -> str:
    """A property of the account, else the one of all, if that is not of another account."""
    own = first(properties, *(f"{name}.{key}" for key in (host, account) if key))
    named = first(properties, *_ACCOUNT_NAMES)
    return own or (properties.get(name, "") if named in ("", account) else "")


def _setting(connection_string: str, name: str) -> str:
    found = re.search(rf"(?:^|;)\s*{name}=([^;]*)", connection_string, re.IGNORECASE)
    return found[1].strip() if found else ""


def _checked_connection(text: str) -> str:
    if not any(_setting(text, name) for name in ("AccountName", "BlobEndpoint")):
        raise InvalidOptionError(
            "property 'adls.connection-string' is malformed: expected settings joined by "
            "semicolons, such as AccountName=...;AccountKey=..., or the address of the account"
        )
    return text


def _access_by(connection_string: str, account: str) -> AzureAccess:
    account = _setting(connection_string, "AccountName") or account
    protocol = _setting(connection_string, "DefaultEndpointsProtocol") or "https"
    suffix = _setting(connection_string, "EndpointSuffix") or "core.windows.net"
    given = _setting(connection_string, "BlobEndpoint")
    address, _, signature = (given or f"{protocol}://{account}.blob.{suffix}").partition("?")
    return AzureAccess(
        account,
        address,
        signature or _setting(connection_string, "SharedAccessSignature").removeprefix("?"),
        _setting(connection_string, "AccountKey"),
        connection_string,
    )


def _is_address(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))


def _checked(name: str, value: str) -> str:
    if ";" in value or not value.isprintable():
        raise InvalidOptionError(f"property {name!r} is malformed: it has a semicolon or a newline")
    return value
