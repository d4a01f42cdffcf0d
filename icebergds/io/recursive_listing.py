"""Lists all files below a directory, with their sizes and times, in batches.

Local directories are scanned side by side; symbolic links are neither listed nor followed. Object
stores list a prefix page by page, WebHDFS a directory; fsspec's clients of other storages return
all that they find at once. They name a file's times differently: the newest of its times of
modification counts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from icebergds.io.azure_blobs import page_of_blobs
from icebergds.io.gcs_objects import page_of_objects
from icebergds.io.webhdfs import WEBHDFS, DirectoryToken, WebHdfs

_T = TypeVar("_T")
Remote: TypeAlias = Callable[[Callable[[Any, str], Any]], Any]
"""Calls a function with fsspec's file system and its path of the listed directory."""

FILE_SCHEMA = pa.schema(
    [("location", pa.string()), ("modified_ms", pa.int64()), ("size_in_bytes", pa.int64())]
)
"""Columns of listings; the time is null if the storage does not tell it."""


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """Some files below a directory.

    Attributes:
        files: columns of `FILE_SCHEMA`; locations are resolved.
        storage_time_ms: the storage's own time when it answered; None if it did not tell.
    """

    files: pa.RecordBatch
    storage_time_ms: int | None = None


def list_local(path: str) -> Iterator[ListedFiles]:
    """Lists the regular files below a local directory; what vanishes meanwhile is left out.

    Raises:
        OSError: it does not exist, or a directory cannot be read.
    """
    level = [path]
    # Of the first directory, errors are told; those below it may vanish.
    os.scandir(path).close()
    with ThreadPoolExecutor(_THREADS) as pool:
        while level:
            below: list[str] = []
            size = min(_DIRECTORIES, len(level) // (4 * _THREADS) + 1)
            tasks = [level[start : start + size] for start in range(0, len(level), size)]
            for start in range(0, len(tasks), 4 * _THREADS):
                for found, directories in pool.map(_scan, tasks[start : start + 4 * _THREADS]):
                    yield from found
                    below += directories
            level = below


def list_remote(remote: Remote, protocol: str, path: str) -> Iterator[ListedFiles]:
    """Lists the files below a remote directory; nothing if it does not exist.

    Args:
        remote: calls a function with the file system and the directory's path there.
        protocol: fsspec's name of the file system.
        path: the directory's resolved location, which locations of its files start with.
    """
    base = path.rstrip("/")
    pages = _PAGES.get(protocol)
    if pages is not None:
        token: Any = None
        while True:
            page, token = remote(partial(pages, base=base, token=token))
            yield from page
            if token is None:
                return
    yield from remote(partial(_found, base=base))


def modified_local(path: str) -> int | None:
    """When a local file was modified, in milliseconds since 1970; None if it is not a file."""
    status = os.stat(path, follow_symlinks=False)
    return status.st_mtime_ns // 1_000_000 if stat.S_ISREG(status.st_mode) else None


def modified_remote(fs: Any, key: str) -> int | None:
    """When a remote file was modified; None if the storage does not tell."""
    info = fs.info(key)
    return int(info[_OF_HDFS]) if _OF_HDFS in info else _modified_ms(info)


_THREADS = 8
_BATCH_ROWS = 10_000
# How many directories a thread scans at once.
_DIRECTORIES = 64
_S3_PAGE = 1_000
_AZURE_PAGE = 5_000
_GCS_PAGE = 1_000

# s3fs, adlfs, Arrow's file systems and gcsfs, gcsfs of old, memory and others.
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified")
_OF_HDFS = "modificationTime"
_CREATION_TIMES = ("created", "creation_time")


@dataclass(slots=True)
class _Rows:
    """Gathers files to batches.

    Attributes:
        full: the batches that are full.
    """

    full: list[ListedFiles] = field(default_factory=list)
    _locations: list[str] = field(default_factory=list)
    _modified_ms: list[int | None] = field(default_factory=list)
    _sizes: list[int | None] = field(default_factory=list)

    def add(self, location: str, modified_ms: int | None, size: int | None) -> None:
        self._locations.append(location)
        self._modified_ms.append(modified_ms)
        self._sizes.append(size)
        if len(self._locations) == _BATCH_ROWS:
            self.full.append(ListedFiles(self._batch()))

    def all(self, storage_time_ms: int | None = None) -> list[ListedFiles]:
        """All batches."""
        rest = self._batch()
        return [*self.full, ListedFiles(rest, storage_time_ms)] if len(rest) else self.full

    def _batch(self) -> pa.RecordBatch:
        columns = (self._locations, self._modified_ms, self._sizes)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, FILE_SCHEMA, strict=True)]
        for column in columns:
            column.clear()
        return pa.record_batch(arrays, schema=FILE_SCHEMA)


def _scan(directories: Sequence[str]) -> tuple[list[ListedFiles], list[str]]:
    """The files in some directories, and the directories in them."""
    rows, below = _Rows(), []
    for directory in directories:
        try:
            entries = os.scandir(directory)
        except (FileNotFoundError, NotADirectoryError):
            continue
        with entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
                        continue
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                # A name that is not UTF-8 cannot be in metadata.
                if stat.S_ISREG(status.st_mode) and _is_text(entry.path):
                    rows.add(entry.path, status.st_mtime_ns // 1_000_000, status.st_size)
    return rows.all(), below


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _s3_page(
    fs: Any, key: str, base: str, token: str | None
) -> tuple[list[ListedFiles], str | None]:
    """One answer of S3 to a listing of a prefix, and the token that asks for the next."""
    bucket, _, name = key.rstrip("/").partition("/")
    prefix = f"{name}/" if name else ""
    more = {} if token is None else {"ContinuationToken": token}
    answer = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=_S3_PAGE, **more)
    rows = _Rows()
    for found in answer.get("Contents", ()):
        # Names that end in a slash are markers of directories.
        if not found["Key"].endswith("/"):
            location = f"{base}/{found['Key'][len(prefix) :]}"
            rows.add(location, _modified_ms(found), found["Size"])
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    listed = rows.all(_date_ms(headers.get("date")))
    return listed, answer["NextContinuationToken"] if answer.get("IsTruncated") else None


def _azure_page(
    fs: Any, key: str, base: str, token: str | None
) -> tuple[list[ListedFiles], str | None]:
    """As `_s3_page`."""
    page = page_of_blobs(fs, key, token, _AZURE_PAGE)
    rows = _Rows()
    for name, modified, size in page.blobs:
        rows.add(f"{base}/{name}", _time_ms(modified), size)
    return rows.all(_date_ms(page.date)), page.next


def _gcs_page(
    fs: Any, key: str, base: str, token: str | None
) -> tuple[list[ListedFiles], str | None]:
    """As `_s3_page`."""
    page = page_of_objects(fs, key, token, _GCS_PAGE)
    rows = _Rows()
    for name, modified, size in page.objects:
        rows.add(f"{base}/{name}", _time_ms(modified), size)
    return rows.all(_date_ms(page.date)), page.next


def _hdfs_page(
    fs: WebHdfs, key: str, base: str, token: DirectoryToken | None
) -> tuple[list[ListedFiles], DirectoryToken | None]:
    """As `_s3_page`."""
    files, following = fs.files_below(key, token)
    rows = _Rows()
    for name, modified, size in files:
        rows.add(f"{base}/{name}", modified, size)
    return rows.all(), following


_PAGES: dict[str, Callable[..., tuple[list[ListedFiles], Any]]] = {
    "s3": _s3_page,
    "abfs": _azure_page,
    "gs": _gcs_page,
    **dict.fromkeys(WEBHDFS, _hdfs_page),
}


def _found(fs: Any, key: str, base: str) -> Iterator[ListedFiles]:
    """What fsspec finds below a directory."""
    # It is asked now, so that its errors are those of this call.
    infos = fs.find(key, detail=True)
    return _below(infos, f"{key.strip('/')}/".lstrip("/"), base)


def _below(infos: Mapping[str, Mapping[str, Any]], prefix: str, base: str) -> Iterator[ListedFiles]:
    """Files whose names start with a prefix; object stores may find others, too."""
    rows = _Rows()
    for name, info in infos.items():
        plain = name.lstrip("/")
        if info.get("type") == "directory" or name.endswith("/") or not plain.startswith(prefix):
            continue
        rows.add(f"{base}/{plain[len(prefix) :]}", _modified_ms(info), info.get("size"))
        if rows.full:
            yield rows.full.pop()
    yield from rows.all()


def _modified_ms(info: Mapping[str, Any]) -> int | None:
    """The newest time that a client tells of a file, in milliseconds since 1970."""
    for names in (_TIMES, _CREATION_TIMES):
        times = [_time_ms(info[name]) for name in names if name in info]
        known = [time for time in times if time is not None]
        if known:
            return max(known)
    return None


def _time_ms(value: Any) -> int | None:
    """A time as milliseconds since 1970; numbers are seconds, times without a zone are in UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return _date_ms(value)
    if isinstance(value, datetime):
        zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return int(zoned.timestamp() * 1000)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value * 1000)
    return None


def _date_ms(text: str | None) -> int | None:
    """A date as HTTP writes it."""
    try:
        return None if text is None else _time_ms(parsedate_to_datetime(text))
    except ValueError:
        return None
