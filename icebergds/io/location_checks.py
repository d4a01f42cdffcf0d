"""Refuses locations that a table's metadata should not lead to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from icebergds.errors import InvalidMetadataError, InvalidOptionError
from icebergds.io.fsspec_options import KNOWN_SCHEMES
from icebergds.io.storage_options import STORAGE_SCHEMES, further_schemes

# fsspec's chains, such as zip::s3://bucket/archive.
_CHAIN = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)::.*://")
_USER = re.compile(r"(?<=://)[^@]*:[^@]*@")


def refuse_other_schemes(location: str, scheme: str, properties: Mapping[str, str]) -> None:
    """Refuses a remote location unless its scheme is known or the user allows it.

    fsspec would also request web addresses and unpack archives for whoever wrote the metadata.

    Args:
        scheme: in lower case.
        properties: of the storage; `storage-schemes` allows further schemes.

    Raises:
        InvalidOptionError: the scheme is neither known nor allowed.
    """
    if scheme in KNOWN_SCHEMES or scheme in further_schemes(properties):
        return
    raise InvalidOptionError(
        f"location {without_secrets(location)!r}: the scheme {scheme!r} is not one of those that "
        f"are opened, {', '.join(sorted(KNOWN_SCHEMES))}; if you trust who wrote the table's "
        f"metadata, allow it with option({STORAGE_SCHEMES!r}, {scheme!r})"
    )


def without_secrets(location: str) -> str:
    """The location, with asterisks for user, password and parameters: it may be a database's."""
    address, mark, parameters = location.partition("?")
    return _USER.sub("***@", address) + mark + ("***" if parameters else "")


def refuse_chains(location: str) -> None:
    """Refuses locations of several file systems in one, which would be taken for relative paths.

    Raises:
        InvalidOptionError: it is one.
    """
    if (match := _CHAIN.match(location)) is not None:
        raise InvalidOptionError(
            f"location {location!r} chains {match[1]} to another file system, which is not "
            "supported; use the location of the file itself"
        )


def leaves_by_dots(path: str, root: str) -> bool:
    """Whether a resolved location is outside of a resolved directory, once `..` is followed.

    Only the comparison follows `..`: in an object store, it is part of a name.
    """
    inside = posixpath.normpath(root).rstrip("/")
    return not f"{posixpath.normpath(path)}/".startswith(f"{inside}/")


def leaving_error(location: str, root: str) -> InvalidMetadataError:
    """The error for a location that leaves the root directory of its table."""
    return InvalidMetadataError(
        f"table at {root}: its metadata names {location!r}, which leaves the table's directory by "
        "'..'; this is refused. If the file is the table's own, map the prefix that ends with '..' "
        "to where it leads with 'location-map'"
    )
