"""Parses locations: local paths, and those with a scheme and an authority."""

from __future__ import annotations

import logging
import re

from icebergds.errors import InvalidOptionError
from icebergds.io.fsspec_options import fsspec_protocol

EQUAL_SCHEMES = {"s3n": "s3", "s3a": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "wasb"}
"""Java's s3n and s3a, and pairs that lead to one storage with and without encryption."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(?=/)")


def is_absolute(location: str) -> bool:
    return location.startswith("/") or _SCHEME.match(location) is not None


def is_local(path: str) -> bool:
    return path.startswith("/")


def undeleted_level(location: str) -> int:
    """The level at which a log says that a file that nothing refers to was not deleted.

    S3 Tables lets nobody delete single files, and removes such ones itself.
    """
    _, authority, _ = split_location(location)
    return logging.DEBUG if authority.endswith("--table-s3") else logging.WARNING


def absolute_location(location: str, directory: str) -> str:
    """Makes local locations absolute paths; leaves others as they are."""
    if location.startswith("/"):
        return location
    match = _SCHEME.match(location)
    if match is None:
        return f"{directory}/{without_dot(location)}"
    if match[1].lower() != "file":
        return location
    rest = location[match.end() :]
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise InvalidOptionError(
            f"location {location!r} is on the host {host!r}, but file: locations must be local; "
            "map its prefix to where the files are with location_map"
        )
    return slash + path


def without_dot(relative: str) -> str:
    return relative[2:] if relative.startswith("./") else relative


def joined_location(prefix: str, target: str, rest: str) -> str:
    """Replaces `prefix` by `target`, without doubling or losing the slash before `rest`."""
    if prefix.endswith("/") and rest:
        return f"{target.rstrip('/')}/{rest}"
    return target.rstrip("/") + rest if rest.startswith("/") else target + rest


def split_location(path: str) -> tuple[str, str, str]:
    """Scheme (lower case), authority and the rest from its first slash on."""
    scheme, _, rest = path.partition(":")
    if not rest.startswith("//"):
        return scheme.lower(), "", rest
    authority, slash, key = rest[2:].partition("/")
    return scheme.lower(), authority, slash + key


def protocol_of(path: str) -> str:
    """The name of the file system of a remote path in fsspec."""
    return fsspec_protocol(split_location(path)[0])
