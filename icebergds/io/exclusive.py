"""Creating a file only if it is not there yet, whole and in one step, as each storage can.

Two writers of one name: exactly one succeeds, and no reader ever sees half a file. That is what
commits to tables without a catalog service rest on, so a remote storage is believed only after
it refused to overwrite a file (`require_exclusive`): some that speak S3 ignore the condition, and
some look and then write, which two writers at once get through.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from icebergds.errors import AlreadyExistsError, UnsupportedFeatureError
from icebergds.io.claims import held_claim
from icebergds.io.local_files import remove_quietly, write_temporary


def create_local(path: str, data: bytes) -> None:
    """Creates a local file.

    Raises:
        AlreadyExistsError: there is such a file, or another process is about to make it.
        OSError: it could not be written; nothing is there, unless the storage behind a network
            mount lost its answer.
    """
    # Who is too late need not write and sync a file to find that out.
    if os.path.lexists(path):
        raise AlreadyExistsError(f"{path} already exists")
    # A hard link appears with all its content, and never replaces anything.
    temporary = write_temporary(path, data, sync=True)
    try:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise AlreadyExistsError(f"{path} already exists") from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _move_under_claim(temporary, path)
    finally:
        remove_quietly(temporary)
    _sync_directory(os.path.dirname(path))


def require_exclusive(fs: Any, protocol: str, key: str) -> None:
    """Makes sure, once in a process, that a remote storage creates exclusively.

    Files of one throw-away name are created next to `key`, where the storage speaks S3 several at
    once; all but one must be refused. A race may go well by chance, so this finds most storages
    that look and then write, not all.

    Args:
        fs: fsspec's file system.
        protocol: fsspec's name of it.
        key: what the file system calls the file that will be created.

    Raises:
        UnsupportedFeatureError: it cannot, or it overwrites nevertheless.
    """
    if protocol not in _PROTOCOLS:
        raise UnsupportedFeatureError(
            f"storage of the scheme {protocol!r} cannot create a file only if it is absent, so "
            "commits to a table named by its location could overwrite each other; use a catalog "
            f"that keeps the tables' state, of type sql or rest, or storage of {_LISTED}"
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
        f"the {protocol} storage of {key} overwrites files that were to be created only if absent, "
        "so commits to a table named by its location could overwrite each other; use a catalog "
        "that keeps the tables' state, of type sql or rest"
    )


def create_remote(fs: Any, protocol: str, key: str, data: bytes) -> None:
    """Creates a file of a storage that `require_exclusive` accepts.

    Raises:
        AlreadyExistsError: the storage says that there is such a file. It may be this one, if an
            earlier attempt of the storage's client went through and the answer was lost.
        Exception: whatever the client raises; whether the file is there must be looked up.
    """
    try:
        match protocol:
            case "s3":
                _create_s3(fs, key, data)
            case "gs":
                fs.pipe_file(key, data, mode="create")
            case "abfs":
                # Not mode="create": releases that do not know it would overwrite.
                fs.pipe_file(key, data, overwrite=False)
            case "memory":
                # It looks and then writes, but lives in this process only.
                with _MEMORY:
                    fs.pipe_file(key, data, mode="create")
            case _:
                _create_hdfs(fs, key, data)
    except FileExistsError:
        raise AlreadyExistsError(f"{key} already exists") from None


_PROTOCOLS = ("s3", "gs", "abfs", "hdfs", "viewfs", "memory")
_LISTED = "file:, s3:, gs:, abfs: or hdfs:"
_PROVED: set[tuple[Any, str]] = set()
_MEMORY = threading.Lock()
_RACERS = 8
_NO_LINKS = frozenset(
    {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EMLINK}
)


def _move_under_claim(temporary: str, path: str) -> None:
    """Moves a file to `path` where there are no hard links.

    A rename replaces what is there, so writers take turns: only who holds a claim, a file of a
    name of its own, looks and renames. A process that dies in between leaves its claim, which may
    block the name: nothing is ever lost by that, and the message says what to do.
    """
    directory, name = os.path.split(path)
    claim = os.path.join(directory, f".{name}.claim")
    try:
        with held_claim(claim):
            if os.path.lexists(path):
                raise AlreadyExistsError(f"{path} already exists")
            os.rename(temporary, path)
    except FileExistsError:
        raise AlreadyExistsError(
            f"{path} is being created by another process, which holds {claim}; if that is there "
            "although no process is writing, one died: delete it"
        ) from None


def _sync_directory(directory: str) -> None:
    """Makes a new name survive a crash of the machine, where directories can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _race(fs: Any, protocol: str, key: str) -> int:
    """How many of those that try to create one and the same file succeed.

    At once only where it tells something: every storage that speaks S3 is another program.
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


def _create_s3(fs: Any, key: str, data: bytes) -> None:
    for wait in (0.1, 0.5, None):
        try:
            fs.pipe_file(key, data, mode="create")
        except OSError as error:
            code = _s3_code(error)
            # Some servers leave out which condition failed; only one was sent.
            if code in ("PreconditionFailed", "412"):
                raise FileExistsError(key) from error
            # A concurrent request on the same key: not done, to be sent again.
            if code != "ConditionalRequestConflict" or wait is None:
                raise
            time.sleep(wait)
        else:
            return


def _s3_code(error: BaseException) -> str:
    """The code of the server's answer that the client made an error of."""
    response = getattr(error.__cause__, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def _create_hdfs(fs: Any, key: str, data: bytes) -> None:
    """Creates by a rename into a directory.

    Arrow's `move` of a file to an existing file deletes that first. HDFS moves what is renamed to
    an existing directory into it, unless the name is taken there, and then Arrow sees a directory
    and leaves it at that.
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
