"""Translates Iceberg's storage properties to options of fsspec's file systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.io.azure_options import azure_options
from icebergds.io.gcs_options import gcs_options
from icebergds.io.option_values import number
from icebergds.io.request_signing import RequestSigner
from icebergds.io.s3_options import s3_options
from icebergds.io.webhdfs import WEBHDFS, webhdfs_options

EXTRAS = {
    "s3": ("s3fs", "s3"),
    "gs": ("gcsfs", "gcs"),
    "abfs": ("adlfs", "azure"),
    **dict.fromkeys(WEBHDFS, ("requests", "hdfs")),
}

_PROTOCOLS = {
    "s3a": "s3",
    "s3n": "s3",
    "oss": "s3",
    "gcs": "gs",
    "abfss": "abfs",
    "wasb": "abfs",
    "wasbs": "abfs",
    "az": "abfs",
    "adl": "abfs",
}

KNOWN_SCHEMES = ("file", "s3", "gs", "abfs", "hdfs", "viewfs", *WEBHDFS, "memory", *_PROTOCOLS)
"""Schemes of locations that are opened without being allowed by the user."""

# Of botocore and google.auth.
_LACKING = ("NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError")
_CREDENTIALS = {
    "gs": "set gcs.oauth2.token, or gcs.no-auth = true for a public bucket, as options or as "
    "properties of load_table and load_catalog; or give application default credentials, such as "
    "the variable GOOGLE_APPLICATION_CREDENTIALS with the file of a service account",
    "s3": "set s3.access-key-id and s3.secret-access-key, s3.profile-name, or s3.anonymous = true "
    "for a public bucket, as options or as properties of load_table and load_catalog; or give what "
    "AWS's own tools use, such as the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a "
    "role of the machine",
    "abfs": "set adls.account-key, adls.sas-token, adls.connection-string, or adls.tenant-id, "
    "adls.client-id and adls.client-secret, as options or as properties of load_table and "
    "load_catalog; or give what Azure's own tools use, such as the variables AZURE_TENANT_ID, "
    "AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or a managed identity",
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
    return not names.isdisjoint(_LACKING)


def missing_credentials(protocol: str, path: str) -> str:
    """The message of a request without credentials."""
    return f"there are no credentials for {path!r}: {_CREDENTIALS[protocol]}"


def lacks_libhdfs(protocol: str, error: Exception) -> bool:
    """Whether Hadoop's native client could not be loaded."""
    return protocol in ("hdfs", "viewfs") and "Unable to load lib" in str(error)


def missing_libhdfs(path: str, error: Exception) -> str:
    """The message of a location that needs Hadoop's native client."""
    reason = str(error).partition("\n")[0]
    return (
        f"{path!r} needs Hadoop's native client libhdfs and a JVM: {reason}; without them, map it "
        "to WebHDFS: location_map={'hdfs://host:8020': 'webhdfs://host:9870'}, with the port of "
        "the name node's HTTP server"
    )


def fsspec_options(
    protocol: str,
    authority: str,
    properties: Mapping[str, str],
    signer: RequestSigner | None = None,
) -> dict[str, Any]:
    """Keyword arguments for fsspec's file system of `protocol`.

    `authority` is the part of a location between `scheme://` and the next slash, and `signer` signs
    requests to S3 without keys. Listings are never cached: another process may add files at any
    time.
    """
    options: dict[str, Any] = {"use_listings_cache": False}
    match protocol:
        case "s3":
            options |= s3_options(properties, signer)
        case "gs":
            options |= gcs_options(properties)
        case "abfs":
            options |= azure_options(authority, properties)
        case "webhdfs" | "swebhdfs":
            options |= webhdfs_options(protocol, authority, properties)
        case "hdfs" | "viewfs":
            options |= _hdfs_options(protocol, authority, properties)
    return options


def _hdfs_options(protocol: str, authority: str, properties: Mapping[str, str]) -> dict[str, Any]:
    user, _, address = authority.rpartition("@")
    host, _, port = address.rpartition(":") if ":" in address else (address, "", "")
    host = host or properties.get("hdfs.host", "default")
    options: dict[str, Any] = {
        "host": host if protocol == "hdfs" else f"viewfs://{host}",
        "port": number("hdfs.port", port or properties.get("hdfs.port", "0"), int),
    }
    if user := user or properties.get("hdfs.user", ""):
        options["user"] = user
    if ticket := properties.get("hdfs.kerberos_ticket"):
        options["kerb_ticket"] = ticket
    return options
