"""Writes and deletes local files, creating parent directories as needed.

Only what `exclusive` creates is synced to the disk: a metadata file that a crash of the machine
left empty would make the table unreadable. Data files and manifests are not synced, as in Java's
local file system: a sync for each would cost more than writing it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar
from uuid import uuid4

import pyarrow as pa

_T = TypeVar("_T")


def write_file(path: str, data: bytes) -> None:
    """Writes or replaces a file atomically; readers see the whole old or the whole new file."""
    temporary = write_temporary(path, data, sync=False)
    try:
        os.replace(temporary, path)
    except BaseException:
        remove_quietly(temporary)
        raise


def open_output(path: str) -> pa.NativeFile:
    """Opens a file for writing; readers see what is written so far."""
    return _with_directories(path, lambda: pa.OSFile(path, "wb"))


def mode(path: str) -> int | None:
    """The file's type and permissions (`os.stat`); None if there is no file or directory."""
    try:
        return os.stat(path).st_mode
    except OSError as error:
        # Not a permission that is missing above it, nor a disk that fails.
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
            return None
        raise
    except ValueError:
        return None


def delete_file(path: str) -> None:
    """Deletes a file; a missing one is fine."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)


def write_temporary(path: str, data: bytes, *, sync: bool) -> str:
    """Writes a hidden file with a unique name next to `path` and returns its path.

    Args:
        sync: whether to sync it to the disk.
    """
    temporary = os.path.join(os.path.dirname(path), f".{uuid.uuid4()}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    try:
        descriptor = _with_directories(temporary, lambda: os.open(temporary, flags, 0o666))
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
    """Deletes a file and ignores errors."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def _with_directories(path: str, make: Callable[[], _T]) -> _T:
    """Calls `make`; if the file's directory is missing, creates it and calls `make` again."""
    try:
        return make()
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return make()


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that replaces another one, or appears, at the end of the block.

    Links and permissions stay, and so does what is no file: devices and pipes are written to as
    they are.

    Raises:
        OSError: the file cannot be written; it is as it was.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    part = path.with_name(f".{uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            if path.exists():
                shutil.copymode(path, part)
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
