"""Creates and removes S3 directory markers: empty objects whose names end in a slash.

S3 has no directories, only names with slashes. Hadoop's S3A (and so Java's file system catalog) and
the web consoles of S3 and compatible storage mark empty directories in this way.
"""

from __future__ import annotations

import errno
from typing import Any


def make_marker(fs: Any, key: str) -> None:
    """Creates a directory; an existing one is fine.

    Args:
        fs: fsspec's file system of S3.
        key: its path of the directory.
    """
    bucket, name = _marker(key)
    # s3fs's own methods would strip the slash.
    fs.call_s3("put_object", Bucket=bucket, Key=name, Body=b"")


def remove_marker(fs: Any, key: str) -> None:
    """Removes a directory if it is empty; a file that is written meanwhile is not lost.

    Raises:
        OSError: it does not exist or is not empty.
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
