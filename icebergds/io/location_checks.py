"""Refuses locations that a table's metadata should not lead to."""

from __future__ import annotations

import posixpath

from icebergds.errors import InvalidMetadataError


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
