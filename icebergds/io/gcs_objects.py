"""Lists objects of Google Cloud Storage by requests of gcsfs.

gcsfs returns all pages at once, and takes objects that it may not see for missing ones.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """Some objects below a directory.

    Attributes:
        objects: their names below the directory, with the time of the last change and the size.
        date: the header of the answer.
        next: what asks for the next page; None if this is the last one.
    """

    objects: tuple[tuple[str, str | None, int], ...]
    date: str | None
    next: str | None


def names_of_objects(fs: Any, key: str) -> list[str]:
    """Names of what is directly inside a directory.

    Raises:
        FileNotFoundError: the directory does not exist.
    """
    bucket, prefix = _prefix(key)
    names: set[str] = set()
    token: str | None = None
    while True:
        answer, _ = _list(
            fs, bucket, prefix, token, delimiter="/", fields="items/name,prefixes,nextPageToken"
        )
        names |= {found["name"] for found in answer.get("items", ())}
        names |= set(answer.get("prefixes", ()))
        token = answer.get("nextPageToken")
        if token is None:
            break
    if not names:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)
    return sorted({name[len(prefix) :].rstrip("/") for name in names} - {""})


def page_of_objects(fs: Any, key: str, token: str | None, size: int) -> ObjectPage:
    """One answer to a listing of all objects below a directory.

    Args:
        fs: gcsfs's file system.
        key: its path of the directory.
        token: `next` of the page before; None for the first one.
        size: objects in a page at most.
    """
    bucket, prefix = _prefix(key)
    fields = "items(name,size,updated),nextPageToken"
    answer, date = _list(fs, bucket, prefix, token, maxResults=size, fields=fields)
    objects = tuple(
        (found["name"][len(prefix) :], found.get("updated"), int(found.get("size", 0)))
        for found in answer.get("items", ())
        # Names that end in a slash are markers of directories.
        if not found["name"].endswith("/")
    )
    return ObjectPage(objects, date, answer.get("nextPageToken"))


def object_exists(fs: Any, key: str) -> bool:
    """Whether there is an object, or a directory."""
    try:
        fs.info(key)
    except FileNotFoundError:
        return False
    return True


def is_folder(fs: Any, key: str) -> bool:
    """Whether there are objects below a directory, or a marker of it."""
    try:
        return bool(fs.info(key)["type"] == "directory")
    except FileNotFoundError:
        return False


def make_folder_object(fs: Any, key: str) -> None:
    """Creates a directory's marker; an existing one is fine."""
    fs.pipe_file(f"{key.rstrip('/')}/", b"")


def remove_folder_object(fs: Any, key: str) -> None:
    """Removes a directory's marker if there is nothing else in it.

    Raises:
        OSError: it does not exist or is not empty.
    """
    bucket, prefix = _prefix(key)
    answer, _ = _list(fs, bucket, prefix, None, maxResults=2, fields="items/name")
    names = [found["name"] for found in answer.get("items", ())]
    if not names:
        raise FileNotFoundError(errno.ENOENT, "no such directory", key)
    if names != [prefix]:
        raise OSError(errno.ENOTEMPTY, "the directory is not empty", key)
    fs.rm_file(f"{bucket}/{prefix}")


def _prefix(key: str) -> tuple[str, str]:
    bucket, _, name = key.rstrip("/").partition("/")
    return bucket, f"{name}/" if name else ""


def _list(
    fs: Any, bucket: str, prefix: str, token: str | None, **options: Any
) -> tuple[dict[str, Any], str | None]:
    """An answer to a listing, and its date."""
    headers, content = fs.call("GET", "b/{}/o", bucket, prefix=prefix, pageToken=token, **options)
    answer: dict[str, Any] = json.loads(content)
    return answer, headers.get("Date")
