"""Creates and removes directory markers of object stores.

They have no directories, only names with slashes. In S3, Hadoop's S3A (and so Java's file system
catalog) and the web consoles of S3 and compatible storage mark empty directories by an empty object
whose name ends in a slash.
"""

from __future__ import annotations

import errno
from typing import Any

from icebergds.io.azure_blobs import make_folder, remove_folder
from icebergds.io.gcs_objects import make_folder_object, remove_folder_object

MARKED = ("s3", "abfs", "gs")
"""The object stores, by fsspec's names: directories need not be made for files in them."""


def make_marker(protocol: str, fs: Any, key: str) -> None:
    """Creates a directory; an existing one is fine.

    Args:
        protocol: fsspec's name of the file system, one of `MARKED`.
        fs: fsspec's file system.
        key: its path of the directory.
    """
    if protocol == "abfs":
        make_folder(fs, key)
    elif protocol == "gs":
        make_folder_object(fs, key)
    else:
        bucket, name = _marker(key)
        # s3fs's own methods would strip the slash.
        fs.call_s3("put_object", Bucket=bucket, Key=name, Body=b"")


def remove_marker(protocol: str, fs: Any, key: str) -> None:
    """Removes a directory if it is empty; a file that is written meanwhile is not lost.

    Raises:
        OSError: it does not exist or is not empty.
    """
    if protocol == "abfs":
        remove_folder(fs, key)
        return
    if protocol == "gs":
        remove_folder_object(fs, key)
        return
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
