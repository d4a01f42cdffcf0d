"""Holds a lock file, for exclusive creation on file systems without hard links.

FAT and FUSE mounts of object stores have none. Creating the file itself with O_EXCL instead would
show readers half of it, and a process that dies would leave half a metadata file as the newest one.

A process that dies leaves its lock file behind. Another process takes it over only if the operating
system shows that the holder is dead: the lock file names the boot and the mount that it was made
under, and a live holder keeps it locked (flock). A lock file from another machine, boot or mount is
never taken over.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from icebergds.io.local_files import remove_quietly

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def hold_lock_file(path: str) -> Iterator[None]:
    """Holds a lock file and deletes it afterwards. Raises FileExistsError if another holds it."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
    except FileExistsError:
        descriptor = _take_over(path)
    else:
        _write_origin(descriptor)
    try:
        yield
    finally:
        # Delete before closing: whoever gets the flock next sees that the file is gone.
        remove_quietly(path)
        os.close(descriptor)


_RUNNING_KERNEL = "/proc/sys/kernel/random/boot_id"


def _write_origin(descriptor: int) -> None:
    """Locks the file and writes its origin, so that others can see whether the holder is alive."""
    with contextlib.suppress(OSError):
        origin = _origin(descriptor)
        if origin and _try_flock(descriptor):
            os.write(descriptor, origin)


def _take_over(path: str) -> int:
    """Opens the lock file of a dead process. Raises FileExistsError unless it is certainly dead."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        # Its holder has just deleted it, or this process may not open it.
        raise FileExistsError(path) from None
    try:
        if _is_abandoned(path, descriptor):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    raise FileExistsError(path)


def _is_abandoned(path: str, descriptor: int) -> bool:
    """Whether the holder of a lock file is dead; if so, this process has the flock now."""
    origin = _origin(descriptor)
    if not origin or not _try_flock(descriptor) or os.read(descriptor, 200) != origin:
        return False
    # Another process may have taken it over and deleted it meanwhile.
    return os.path.samestat(os.stat(path), os.fstat(descriptor))


def _origin(descriptor: int) -> bytes:
    """The boot id and the mount, within which flocks are visible; empty if unknown."""
    if fcntl is None:
        return b""
    with open(_RUNNING_KERNEL, "rb") as kernel:
        return b"%s %d" % (kernel.read().strip(), os.fstat(descriptor).st_dev)


def _try_flock(descriptor: int) -> bool:
    """Takes the flock of an open file until it is closed; False if another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
