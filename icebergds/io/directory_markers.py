"""Empty directories of S3: objects without content whose names end in a slash.

S3 has no directories, a name with slashes just looks as if it had. Hadoop's S3A, and with it Java's
file system catalog, marks the empty ones in this way, and so do the consoles of S3 and its like.
"""

from __future__ import annotations

import errno
from typing import Any


def make_marker(fs: Any, key: str) -> None:
    """Makes a directory; one that is there is fine.

    Args:
        fs: fsspec's file system of S3.
        key: what it calls the directory.
    """
    bucket, name = _marker(key)
    # Not by the file system's own methods, which take the slash off.
    fs.call_s3("put_object", Bucket=bucket, Key=name, Body=b"")


def remove_marker(fs: Any, key: str) -> None:
    """Removes a directory if nothing is in it; no file is lost that appears meanwhile.

    Raises:
        OSError: it is not there or not empty.
    """
    bucket, name = _marker(key)
    answer = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=name, MaxKeys=2)
    names = [found["Key"] for found in answer.get("Contents", ())]
    if not names:
        raise FileNotFoundError(errno.ENOENT, "no such directory", key)
    if names != [name]:
        raise OSError(errno.ENOTEMPTY, "the directory is not empty", key)
    fs.call_s3("delete_object", Bucket=bucket, Key=name)


def _marker(key: str) -> tuple[str, str]:
    bucket, _, name = key.partition("/")
    return bucket, f"{name.rstrip('/')}/"
