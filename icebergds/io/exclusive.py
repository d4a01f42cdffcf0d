"""Creates a file atomically and only if it does not exist yet, by what each storage supports.

If two writers create the same name, exactly one succeeds, and no reader ever sees half a file.
Commits to tables without a catalog service rely on this, so a remote storage is trusted only after
it has refused to overwrite a file (`require_exclusive`): some S3-compatible storages ignore the
condition, and some check and then write, so that two concurrent writers both succeed.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from icebergds.errors import AlreadyExistsError, UnsupportedFeatureError
from icebergds.io.local_files import remove_quietly, write_temporary
from icebergds.io.lock_file import hold_lock_file


def create_local(path: str, data: bytes) -> None:
    """Creates a local file.

    Raises:
        AlreadyExistsError: the file exists, or another process is about to create it.
        OSError: it could not be written and does not exist, unless the server of a network mount
            created it and its answer was lost.
    """
    # Fails early, before a temporary file is written and synced.
    if os.path.lexists(path):
        raise AlreadyExistsError(f"{path} already exists")
    # A hard link appears with all its content and never replaces a file.
    temporary = write_temporary(path, data, sync=True)
    try:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise AlreadyExistsError(f"{path} already exists") from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _LOG.info("%s: no hard links there, a lock file is used: %s", path, error)
            _move_under_lock(temporary, path)
    finally:
        remove_quietly(temporary)
    _sync_directory(os.path.dirname(path))


def require_exclusive(fs: Any, protocol: str, key: str) -> None:
    """Checks, once per process, that a remote storage supports exclusive creation.

    One probe file next to `key` is created several times, on S3 concurrently; all attempts but one
    must be refused. A race may go well by chance, so this finds most storages that check and then
    write, not all.

    Args:
        fs: fsspec's file system.
        protocol: fsspec's name of it.
        key: the file system's path of the file that will be created.

    Raises:
        UnsupportedFeatureError: the storage does not support it, or overwrote the probe file.
    """
    if protocol not in _PROTOCOLS:
        raise UnsupportedFeatureError(
            f"{protocol!r} storage cannot create a file only if it does not exist, so commits to "
            "a table addressed by its location could overwrite each other; use a catalog of type "
            f"sql or rest, or storage of {_LISTED}"
        )
    proved = (fs, key.lstrip("/").partition("/")[0])
    if protocol == "memory" or proved in _PROVED:
        return
    probe = f"{key.rpartition('/')[0]}/.{uuid.uuid4()}.probe"
    try:
        created = _race(fs, protocol, probe)
    finally:
        with contextlib.suppress(Exception):
            fs.rm_file(probe)
    if created == 1:
        _PROVED.add(proved)
        return
    raise UnsupportedFeatureError(
        f"the {protocol} storage of {key} overwrites files that should be created only if they do "
        "not exist, so commits to a table addressed by its location could overwrite each other; "
        "use a catalog of type sql or rest"
    )


def create_remote(fs: Any, protocol: str, key: str, data: bytes) -> None:
    """Creates a file on a storage that `require_exclusive` accepts.

    Raises:
        AlreadyExistsError: the storage says that the file exists. It may be this one, if an
            earlier request of the storage's client succeeded and the answer was lost.
        PermissionError: the storage refused the request.
        Exception: whatever the client raises; the file may or may not have been created.
    """
    try:
        match protocol:
            case "s3":
                _create_s3(fs, key, data)
            case "gs":
                fs.pipe_file(key, data, mode="create")
            case "abfs":
                # Not mode="create": releases that do not support it would overwrite.
                fs.pipe_file(key, data, overwrite=False)
            case "webhdfs" | "swebhdfs":
                fs.create(key, data)
            case "memory":
                # It checks and then writes, but it is local to this process.
                with _MEMORY:
                    fs.pipe_file(key, data, mode="create")
            case _:
                _create_hdfs(fs, key, data)
    except FileExistsError:
        raise AlreadyExistsError(f"{key} already exists") from None
    except Exception as error:
        if _is_denied(error):
            raise PermissionError(errno.EACCES, str(error)) from error
        raise


_LOG = logging.getLogger(__name__)
_PROTOCOLS = ("s3", "gs", "abfs", "hdfs", "viewfs", "webhdfs", "swebhdfs", "memory")
_LISTED = "file:, s3:, gs:, abfs:, hdfs: or webhdfs:"
_PROVED: set[tuple[Any, str]] = set()
_MEMORY = threading.Lock()
_RACERS = 8
_DENIED = (401, 403)
_NO_LINKS = frozenset(
    {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EMLINK}
)


def _move_under_lock(temporary: str, path: str) -> None:
    """Moves a file to `path` on a file system without hard links.

    A rename would replace an existing file, so only the holder of a lock file checks and renames.
    If a process dies in between, its lock file may block this name: no data is lost by that, and
    the error says what to do.
    """
    directory, name = os.path.split(path)
    lock_file = os.path.join(directory, f".{name}.claim")
    try:
        with hold_lock_file(lock_file):
            if os.path.lexists(path):
                raise AlreadyExistsError(f"{path} already exists")
            os.rename(temporary, path)
    except FileExistsError:
        raise AlreadyExistsError(
            f"{path} is being created by another process, which holds the lock file {lock_file}; "
            "if no process is writing, delete it: it was left behind by one that died"
        ) from None


def _sync_directory(directory: str) -> None:
    """Syncs a directory, if possible, so that a new file in it survives a crash of the machine."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _race(fs: Any, protocol: str, key: str) -> int:
    """How many attempts to create the same file succeed.

    Concurrent only on S3: its many implementations differ in this.
    """
    attempts, threads = (_RACERS, _RACERS) if protocol == "s3" else (2, 1)
    gate = threading.Barrier(threads)

    def succeeds(number: int) -> bool:
        gate.wait()
        try:
            create_remote(fs, protocol, key, b"%d" % number)
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(succeeds, range(attempts)))


def _is_denied(error: Exception) -> bool:
    """Whether an error of Azure's or Google's client is a refusal of the credentials."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status in _DENIED or (isinstance(error, OSError) and str(error).startswith("Forbidden:"))


def _create_s3(fs: Any, key: str, data: bytes) -> None:
    for wait in (0.1, 0.5, None):
        try:
            fs.pipe_file(key, data, mode="create")
        except OSError as error:
            code = _s3_code(error)
            # Some servers do not say which condition failed, but only one was sent.
            if code in ("PreconditionFailed", "412"):
                raise FileExistsError(key) from error
            # Rejected because of a concurrent request on the same key: send it again.
            if code != "ConditionalRequestConflict" or wait is None:
                raise
            time.sleep(wait)
        else:
            return


def _s3_code(error: BaseException) -> str:
    """The error code in the server's response."""
    response = getattr(error.__cause__, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def _create_hdfs(fs: Any, key: str, data: bytes) -> None:
    """Creates a file by moving it into its directory.

    Arrow's `move` of a file onto an existing file deletes that file first. A move to an existing
    directory is left to HDFS, which moves the file into it unless the name is taken there.
    """
    directory, _, name = key.rpartition("/")
    temporary = f"{directory}/.{uuid.uuid4()}.tmp"
    fs.makedirs(temporary, exist_ok=True)
    try:
        fs.pipe_file(f"{temporary}/{name}", data)
        try:
            fs.mv(f"{temporary}/{name}", directory)
        except OSError:
            if fs.exists(key):
                raise FileExistsError(key) from None
            raise
    finally:
        with contextlib.suppress(Exception):
            fs.rm(temporary, recursive=True)
