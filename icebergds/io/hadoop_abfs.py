"""Translates Iceberg's properties of Azure to those of ABFS, Hadoop's client, by which Spark reads.

As for S3A, the files of each set of properties have a scheme of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icebergds.errors import InvalidOptionError
from icebergds.io.azure_options import AzureAccess, azure_access, azure_client
from icebergds.io.fileio import FileIO
from icebergds.io.hadoop_schemes import scheme_of
from icebergds.io.locations import split_location

_PACKAGE = "org.apache.hadoop.fs.azurebfs"
ABFS = f"{_PACKAGE}.AzureBlobFileSystem"
"""The class of the client."""


def abfs_obstacle(io: FileIO, path: str) -> str | None:
    """Why ABFS cannot open a resolved path on Azure as the storage opens it; None if it can."""
    if io.vended is not None:
        return "the table's storage has credentials that expire"
    unknown = sorted(name for name in io.properties if name.startswith("adls.") and _is_other(name))
    if unknown:
        return f"property {unknown[0]} of the storage has no equal that is passed to Spark"
    try:
        access = _access(io.properties, path)
        client = azure_client(io.properties)
    except InvalidOptionError as error:
        return str(error)
    if not (access.key or access.signature) and (client is None or access.connection):
        return (
            "the table has storage properties, but no key, signature or client of Azure to pass "
            "to Spark"
        )
    if _endpoint(access) is None:
        return f"the address {access.address} of the storage cannot be passed to Spark"
    return None


def abfs_address(io: FileIO, path: str) -> str:
    """The address of a resolved path on Azure, in the scheme of the storage's properties.

    The path is one that `abfs_obstacle` has no reason against.
    """
    _, authority, key = split_location(path)
    host, settings = _host_and_settings(io.properties, path)
    container = authority.partition("@")[0]
    return f"{scheme_of('abfs', settings)}://{container}@{host}{key}"


def abfs_options(io: FileIO, paths: Iterable[str]) -> dict[str, str]:
    """Hadoop's options that open the addresses of resolved paths as the storage opens the paths.

    The paths are of one account.
    """
    ((_, settings),) = {_host_and_settings(io.properties, path) for path in paths}
    return {
        f"fs.{scheme_of('abfs', settings)}.impl": ABFS,
        # Columns of up to this size are one request.
        "fs.azure.read.request.size": str(16 << 20),
        "fs.azure.io.retry.max.retries": "8",
        **dict(settings),
    }


_TRANSLATED = frozenset(
    {
        "adls.account-name",
        "adls.account-key",
        "adls.auth.shared-key.account.name",
        "adls.auth.shared-key.account.key",
        "adls.sas-token",
        "adls.connection-string",
        "adls.account-host",
        "adls.blob-storage-scheme",
        "adls.blob-storage-authority",
        "adls.tenant-id",
        "adls.client-id",
        "adls.client-secret",
    }
)
_OF_ACCOUNTS = ("adls.sas-token.", "adls.connection-string.")


def _is_other(name: str) -> bool:
    return name not in _TRANSLATED and not name.startswith(_OF_ACCOUNTS)


def _access(properties: Mapping[str, str], path: str) -> AzureAccess:
    return azure_access(split_location(path)[1], properties)


def _endpoint(access: AzureAccess) -> tuple[str, str] | None:
    """The account's host in ABFS, and another server's host and port or an empty text.

    None if ABFS cannot be told of the address.
    """
    scheme, _, rest = access.address.rstrip("/").partition("://")
    server, _, below = rest.partition("/")
    if below:
        # As of emulators, whose accounts have no host.
        is_server = below == access.account and ":" in server
        return (f"{access.account}.dfs.core.windows.net", server) if is_server else None
    account, service, domain = server.partition(".blob.")
    is_host = scheme == "https" and account.partition(".")[0] == access.account and bool(service)
    return (f"{account}.dfs.{domain}", "") if is_host else None


def _host_and_settings(
    properties: Mapping[str, str], path: str
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The account's host, and settings: each named, so that none of the session's own applies."""
    access = _access(properties, path)
    found = _endpoint(access)
    assert found is not None, "the address has an obstacle"
    host, server = found
    settings = {
        "abfs.endpoint": server,
        "always.use.https": str(access.address.startswith("https:")).lower(),
        **_credentials(access, properties),
    }
    if server:
        settings |= {
            "fns.account.service.type": "BLOB",
            "account.hns.enabled": "false",
            # The other one fails without TLS.
            "networking.library": "JDK_HTTP_URL_CONNECTION",
        }
    # Those of an account win over those of all, and a container's signature over both.
    out = {
        f"fs.azure.{name}{of}": value for name, value in settings.items() for of in ("", f".{host}")
    }
    if access.signature:
        container = split_location(path)[1].partition("@")[0]
        out[f"fs.azure.sas.fixed.token.{container}.{host}"] = access.signature
    return host, tuple(sorted(out.items()))


def _credentials(access: AzureAccess, properties: Mapping[str, str]) -> dict[str, str]:
    if access.signature:
        return {"account.auth.type": "SAS", "sas.fixed.token": access.signature}
    if access.key:
        return {"account.auth.type": "SharedKey", "account.key": access.key}
    client = azure_client(properties)
    assert client is not None, "properties without credentials have an obstacle"
    return {
        "account.auth.type": "OAuth",
        "account.oauth.provider.type": f"{_PACKAGE}.oauth2.ClientCredsTokenProvider",
        "account.oauth2.client.endpoint": client.token_address,
        "account.oauth2.client.id": client.client_id,
        "account.oauth2.client.secret": client.client_secret,
    }
