"""Tells whether two locations lead to the same directory.

One directory has many locations: `/a/b`, `file:/a/b` and `file:///a//b/`; `s3://b/k` and
`s3a://b/k`; on a local disk also paths through symbolic links. Percent signs stand for themselves.
"""

from __future__ import annotations

import os
import re

from icebergds.io.fileio import FileIO
from icebergds.io.locations import EQUAL_SCHEMES, is_local, split_location

_SLASHES = re.compile("/{2,}")


def is_same_directory(one: str, other: str, io: FileIO) -> bool:
    """Whether two locations lead to one directory, without access to remote storage.

    Args:
        one, other: locations of directories, which need not exist.
        io: maps and resolves them.

    Raises:
        InvalidOptionError: a `file:` location is on another machine.
    """
    first, second = io.locate(one), io.locate(other)
    if is_local(first) and is_local(second):
        return _is_same_local(first, second)
    return not is_local(first) and not is_local(second) and _remote(first) == _remote(second)


def _is_same_local(one: str, other: str) -> bool:
    # Python keeps two slashes at the beginning.
    one, other = _SLASHES.sub("/", one), _SLASHES.sub("/", other)
    try:
        if os.path.realpath(one) == os.path.realpath(other):
            return True
        # Names that differ only in case, and directories that are mounted twice.
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        # One does not exist, or no directory can have its name.
        return False


def _remote(location: str) -> tuple[str, str, str]:
    scheme, authority, path = split_location(location)
    path = _SLASHES.sub("/", f"/{path}/")
    return EQUAL_SCHEMES.get(scheme, scheme), authority.lower(), path
