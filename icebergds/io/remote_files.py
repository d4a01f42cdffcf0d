"""Reads and writes files, and reads names, by the file systems of fsspec.

Object stores have no directories, only names with slashes. In S3, Hadoop's S3A (and so Java's file
system catalog) and the web consoles of S3 and compatible storage mark empty directories by an empty
object whose name ends in a slash.
"""

from __future__ import annotations

import errno
import inspect
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pyarrow as pa

from icebergds.io.azure_blobs import make_folder, names_of_blobs, remove_folder
from icebergds.io.failures import RemoteFile
from icebergds.io.gcs_objects import (
    is_folder,
    make_folder_object,
    names_of_objects,
    object_exists,
    remove_folder_object,
)
from icebergds.io.multipart import AzureUpload, MultipartFile, S3Upload, Upload
from icebergds.io.ranged_file import Open, Range, RangedFile
from icebergds.io.threads import waiting_threads
from icebergds.io.webhdfs import WebHdfs

MARKED = ("s3", "abfs", "gs")
"""The object stores, by fsspec's names: directories need not be made for files in them."""


def open_remote(wanted: Open, fs: Any, key: str) -> RangedFile:
    """Opens a file for random access."""
    if isinstance(fs, WebHdfs):
        return RangedFile(
            lambda ranges: [fs.cat_file(key, start, end) for start, end in ranges],
            lambda: fs.size(key),
            wanted.size,
            wanted.first,
        )
    if not fs.async_impl:
        # It reads one range at a time, by an open file, and asks for the size when it opens it.
        file = fs.open(key, "rb", cache_type="none")
        return RangedFile(partial(_read_in_turn, file), partial(file.seek, 0, 2), close=file.close)

    def fetch(ranges: Sequence[Range]) -> list[bytes]:
        if len(ranges) == 1:
            return [bytes(fs.cat_file(key, start=ranges[0][0], end=ranges[0][1]))]
        starts, ends = (list(bounds) for bounds in zip(*ranges, strict=True))
        return list(map(bytes, fs.cat_ranges([key] * len(ranges), starts, ends, on_error="raise")))

    return RangedFile(fetch, lambda: int(fs.size(key)), wanted.size, wanted.first)


def _read_in_turn(file: Any, ranges: Sequence[Range]) -> list[bytes]:
    found = []
    for start, end in ranges:
        file.seek(start)
        found.append(bytes(file.read(end - start)))
    return found


# A multiple of 256 KiB, as Google demands.
_GCS_PART = 16 * 2**20
_UPLOADS: dict[str, Callable[[Any, str], Upload]] = {"s3": S3Upload, "abfs": AzureUpload}


class OutputStream(pa.PythonFile):  # type: ignore[misc]
    """A file that Arrow writes, replacing one that exists; its errors are StorageErrors.

    Args:
        fs: fsspec's file system.
        protocol: fsspec's name of it.
        key: the file system's path of the file.
        location: for errors.
    """

    def __new__(cls, fs: Any, protocol: str, key: str, location: str) -> OutputStream:
        file = _new_file(fs, protocol, key)
        self: OutputStream = super().__new__(cls, RemoteFile(file, "writing", location), "w")
        self._file = file
        return self

    def __init__(self, *_: Any) -> None:
        super().__init__()

    def discard(self) -> None:
        """Closes the incomplete file; object stores never show it, elsewhere, delete it then."""
        if isinstance(self._file, MultipartFile | WriteBehind):
            self._file.discard()
        self.close()


def _new_file(fs: Any, protocol: str, key: str) -> Any:
    """A file to write, which an object store shows when it is complete."""
    upload = _UPLOADS.get(protocol)
    if upload is not None:
        return MultipartFile(upload(fs, key))
    if protocol == "gs":
        begin = partial(fs.open, key, "wb", block_size=_GCS_PART)
        return WriteBehind(begin, partial(fs.pipe_file, key), _GCS_PART)
    return fs.open(key, "wb")


def read_whole(fs: Any, key: str) -> bytes:
    """Reads a file by one request."""
    # Newer releases of s3fs request the size first unless told to read one part at a time.
    in_parts = "max_concurrency" in inspect.signature(fs.cat_file).parameters
    return bytes(fs.cat_file(key, **({"max_concurrency": 1} if in_parts else {})))


def exists_in(protocol: str, fs: Any, key: str) -> bool:
    """Whether there is a file or directory."""
    return object_exists(fs, key) if protocol == "gs" else bool(fs.exists(key))


def is_directory_in(protocol: str, fs: Any, key: str) -> bool:
    """Whether there is a directory."""
    return is_folder(fs, key) if protocol == "gs" else bool(fs.isdir(key))


def names_in(protocol: str, fs: Any, key: str) -> list[str]:
    """Names of what is directly inside a directory."""
    if protocol == "abfs":
        return names_of_blobs(fs, key)
    if protocol == "gs":
        return names_of_objects(fs, key)
    found = [name.rstrip("/") for name in _listed(fs, key)]
    # The marker of an empty directory of an object store is listed as if it were inside it.
    return [name.rpartition("/")[2] for name in found if name != key.rstrip("/")]


def _listed(fs: Any, key: str, attempts: int = 100) -> Iterable[str]:
    # fsspec's `memory` looks up each file of a listing again: another thread may have deleted it.
    for _ in range(attempts - 1):
        with suppress(KeyError):
            return cast(Iterable[str], fs.ls(key, detail=False))
    return cast(Iterable[str], fs.ls(key, detail=False))


class WriteBehind:
    """A file being written. After an error it is given up, and closing it raises that error.

    Args:
        begin: opens the file of fsspec, which does not appear before it is closed.
        put: writes a whole file of one part, in place of `begin`.
        part: so many bytes are written at once, while the next ones are in memory.

    Errors are those of the file. Those of writing a part are raised by a later call.
    """

    def __init__(self, begin: Callable[[], Any], put: Callable[[bytes], object], part: int) -> None:
        self._begin, self._put, self._part = begin, put, part
        self._file: Any = None
        self._buffer = bytearray()
        self._position = 0
        self._writing: Future[Any] | None = None
        self._failure: BaseException | None = None
        self.closed = False

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Does nothing: what is in memory is written when it is a part, or in the end."""

    def write(self, data: bytes) -> int:
        # Only if more follows.
        if len(self._buffer) >= self._part:
            self._wait()
            self._writing = waiting_threads().submit(self._append, self._buffer)
            self._buffer = bytearray()
        self._buffer += data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Completes the file; if that fails, it is discarded."""
        if self.closed:
            return
        self.closed = True
        try:
            self._wait()
            if self._file is None:
                self._put(bytes(self._buffer))
            else:
                self._file.write(self._buffer)
                self._file.close()
        except BaseException:
            self.discard()
            raise
        self._buffer = bytearray()

    def discard(self) -> None:
        """Gives the file up. Never raises."""
        self.closed = True
        self._buffer = bytearray()
        with suppress(Exception):
            self._wait()
        if self._file is None:
            return
        with suppress(Exception):
            self._file.discard()
        with suppress(Exception):
            # Else it would complete the file when it is collected.
            self._file.closed = True

    def __del__(self) -> None:
        # The file would complete itself with what it has.
        if not self.closed:
            self.discard()

    def _append(self, data: bytearray) -> None:
        if self._file is None:
            self._file = self._begin()
        self._file.write(data)

    def _wait(self) -> None:
        """Waits for the part that is being written."""
        writing, self._writing = self._writing, None
        try:
            if writing is not None:
                writing.result()
            if self._failure is not None:
                raise self._failure
        except BaseException as error:
            self._failure = error
            raise


def make_marker(protocol: str, fs: Any, key: str) -> None:
    """Creates a directory's marker; an existing one is fine.

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
