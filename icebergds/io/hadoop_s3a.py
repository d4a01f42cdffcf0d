"""Translates Iceberg's properties of S3 to those of S3A, Hadoop's client, by which Spark reads.

The files of each set of properties have a scheme of their own, which Hadoop is told of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icebergds.io.fileio import FileIO
from icebergds.io.hadoop_schemes import scheme_of
from icebergds.io.locations import split_location
from icebergds.io.option_values import first, is_true

S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
"""The class of the client."""


def s3a_obstacle(io: FileIO) -> str | None:
    """Why S3A cannot open the files that a storage with properties opens; None if it can."""
    properties = io.properties
    if io.vended is not None or first(properties, *_TOKENS):
        return "the table's storage has credentials that expire"
    unknown = sorted(name for name in properties if name.startswith(_OF_S3) and not _is_known(name))
    if unknown:
        return f"property {unknown[0]} of the storage has no equal that is passed to Spark"
    if is_true(properties, "s3.anonymous") or all(first(properties, *names) for names in _KEYS):
        return None
    return "the table has storage properties, but no keys of S3 to pass to Spark"


def s3a_address(io: FileIO, path: str) -> str:
    """The address of a resolved path on S3, in the scheme of the storage's properties."""
    _, bucket, key = split_location(path)
    return f"{scheme_of('s3a', _settings(io.properties))}://{bucket}{key}"


def s3a_options(io: FileIO, paths: Iterable[str]) -> dict[str, str]:
    """Hadoop's options that open the addresses of resolved paths as the storage opens the paths."""
    settings = _settings(io.properties)
    options = {f"fs.{scheme_of('s3a', settings)}.impl": S3A, **_FEW_REQUESTS}
    for bucket in sorted({split_location(path)[1] for path in paths}):
        # Those of a bucket win over those of all.
        options |= {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in settings}
    return options | {f"fs.s3a.{name}": value for name, value in settings}


_KEYS = (
    ("s3.access-key-id", "client.access-key-id"),
    ("s3.secret-access-key", "client.secret-access-key"),
)
_TOKENS = ("s3.session-token", "client.session-token")
_REGION = ("s3.region", "client.region")
_OF_S3 = ("s3.", "client.")
_TRANSLATED = frozenset(
    {
        *(name for names in _KEYS for name in names),
        *_REGION,
        "s3.endpoint",
        "s3.anonymous",
        "s3.path-style-access",
        "s3.requester-pays",
        # Only where there are no keys.
        "s3.remote-signing-enabled",
    }
)
# They do not matter to a read.
_OF_WRITES = frozenset(
    {"s3.sse-kms-key-id", "s3.server-side-encryption", "s3.acl", "s3.delete-enabled"}
)
_OF_WRITES_BEGIN = ("s3.sse.", "s3.write.")
_FEW_REQUESTS = {
    # Columns that are near one another are one request.
    "fs.s3a.vectored.read.min.seek.size": "1M",
    "fs.s3a.vectored.read.max.merged.size": "64M",
}
_PROVIDERS = "org.apache.hadoop.fs.s3a."


def _is_known(name: str) -> bool:
    return name in _TRANSLATED or name in _OF_WRITES or name.startswith(_OF_WRITES_BEGIN)


def _settings(properties: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Settings of S3A, each named, so that none of the session's own applies instead."""
    path_style = is_true(properties, "s3.path-style-access")
    found = {
        "endpoint": properties.get("s3.endpoint", ""),
        # As the other client's: S3 redirects to the right one.
        "endpoint.region": first(properties, *_REGION) or "us-east-1",
        "path.style.access": str(path_style).lower(),
        "requester.pays.enabled": str(is_true(properties, "s3.requester-pays")).lower(),
        "session.token": "",
        "delegation.token.binding": "",
    }
    if is_true(properties, "s3.anonymous"):
        found["aws.credentials.provider"] = f"{_PROVIDERS}AnonymousAWSCredentialsProvider"
    else:
        key, secret = (first(properties, *names) for names in _KEYS)
        found |= {
            "aws.credentials.provider": f"{_PROVIDERS}SimpleAWSCredentialsProvider",
            "access.key": key,
            "secret.key": secret,
        }
    return tuple(sorted(found.items()))
