"""Parses the storage options that no file system has: what is opened, how much of it is read.

They travel with the storage properties, so every process that reads a file obeys them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from icebergds.errors import InvalidOptionError
from icebergds.io.option_values import is_true
from icebergds.metrics import REPORTER, reporter_of

STORAGE_SCHEMES = "storage-schemes"

MAX_METADATA_BYTES = "max-metadata-bytes"
MAX_BLOCK_BYTES = "max-block-bytes"

STORAGE_CREDENTIALS = "storage-credentials"
"""Credentials by prefixes of locations, as JSON; `vended_credentials` parses it."""

MANIFEST_CACHE = "io.manifest.cache-enabled"
"""Whether metadata of remote storage stays in memory, under Java's name; by default it does."""

STORAGE_OPTIONS = (
    STORAGE_SCHEMES,
    MAX_METADATA_BYTES,
    MAX_BLOCK_BYTES,
    STORAGE_CREDENTIALS,
    MANIFEST_CACHE,
    REPORTER,
)
"""The names of all of them."""

STORAGE_PREFIXES = ("s3.", "gcs.", "adls.", "hdfs.", "client.", "fs.")
"""Prefixes of storage properties."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*")


def is_of_storage(name: str) -> bool:
    """Whether a property is one of the storage; executors get no others."""
    return name in STORAGE_OPTIONS or name.startswith(STORAGE_PREFIXES)


def storage_properties_of(properties: Mapping[str, str]) -> dict[str, str]:
    """The storage properties among `properties`, such as `s3.endpoint` and `storage-schemes`."""
    return {name: value for name, value in properties.items() if is_of_storage(name)}


def check_storage_options(properties: Mapping[str, str]) -> None:
    """Raises InvalidOptionError if one of the options among the properties is malformed."""
    further_schemes(properties)
    size_limit(properties, MAX_METADATA_BYTES)
    size_limit(properties, MAX_BLOCK_BYTES)
    keeps_metadata(properties)
    reporter_of(properties)


def size_limit(properties: Mapping[str, str], name: str) -> int | None:
    """A limit in bytes; None if it is not given.

    Raises:
        InvalidOptionError: it is not a number above 0.
    """
    given = properties.get(name)
    if given is None:
        return None
    if not given.strip().isdecimal() or int(given) == 0:
        raise InvalidOptionError(f"option {name!r} = {given!r}: expected a number of bytes above 0")
    return int(given)


def keeps_metadata(properties: Mapping[str, str]) -> bool:
    """Whether metadata of remote storage stays in memory.

    Raises:
        InvalidOptionError: the option is neither true nor false.
    """
    return is_true({MANIFEST_CACHE: "true", **properties}, MANIFEST_CACHE)


def further_schemes(properties: Mapping[str, str]) -> frozenset[str]:
    """The schemes that the user allows besides the known ones, in lower case.

    Raises:
        InvalidOptionError: one is not the name of a scheme.
    """
    given = properties.get(STORAGE_SCHEMES, "").lower()
    schemes = frozenset(map(str.strip, given.split(","))) if given.strip() else frozenset[str]()
    for scheme in sorted(schemes):
        if not _SCHEME.fullmatch(scheme):
            raise InvalidOptionError(
                f"option {STORAGE_SCHEMES!r} = {given!r}: {scheme!r} is not the scheme of a URL; "
                "expected names joined by commas, such as oss, sftp"
            )
    return schemes
