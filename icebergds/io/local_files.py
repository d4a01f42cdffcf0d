"""Writes to the local disk, which make the directories they need.

Only what `exclusive` creates is forced to the disk: a metadata file that a crash of the machine
left empty would make the table unreadable. Data files and manifests are not, as Java's local file
system does not: the operating system writes them out, and a sync for each would cost more than
writing it.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

_T = TypeVar("_T")


def write_file(path: str, data: bytes) -> None:
    """Writes or replaces a file; readers see all of the old one or all of the new one."""
    temporary = write_temporary(path, data, sync=False)
    try:
        os.replace(temporary, path)
    except BaseException:
        remove_quietly(temporary)
        raise


def open_output(path: str) -> pa.NativeFile:
    """A writable stream; what is written so far is visible."""
    return _with_directories(path, lambda: pa.OSFile(path, "wb"))


def delete_file(path: str) -> None:
    """Deletes a file; a missing one is fine."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)


def write_temporary(path: str, data: bytes, *, sync: bool) -> str:
    """Writes a hidden file of a unique name next to `path`, and gives its path.

    Args:
        sync: force it to the disk.
    """
    temporary = os.path.join(os.path.dirname(path), f".{uuid.uuid4()}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    descriptor = _with_directories(temporary, lambda: os.open(temporary, flags, 0o666))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
    except BaseException:
        remove_quietly(temporary)
        raise
    return temporary


def remove_quietly(path: str) -> None:
    """Deletes a file if that is possible."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def _with_directories(path: str, make: Callable[[], _T]) -> _T:
    """Calls `make`, a second time with the file's directory made where that was missing."""
    try:
        return make()
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return make()
