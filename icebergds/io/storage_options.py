"""Parses the storage options that no file system has: which schemes of locations are opened."""

from __future__ import annotations

import re
from collections.abc import Mapping

from icebergds.errors import InvalidOptionError

STORAGE_SCHEMES = "storage-schemes"

STORAGE_OPTIONS = (STORAGE_SCHEMES,)
"""Options that travel with the storage properties."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*")


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
