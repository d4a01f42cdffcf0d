"""Turns at creating a file, for file systems without hard links: one holds a claim, a file.

A process that dies leaves its claim. It is taken over where the system knows that its holder is
gone: the claim says by which running kernel and through which mount it was made, and the holder has
locked it. Of a claim made elsewhere nothing is known, so it stands.
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
def held_claim(claim: str) -> Iterator[None]:
    """Holds a claim, which is gone afterwards. Raises FileExistsError where another has it."""
    try:
        descriptor = os.open(claim, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
    except FileExistsError:
        descriptor = _take_over(claim)
    else:
        _sign(descriptor)
    try:
        yield
    finally:
        # In this order: who gets the lock later sees that the file is no longer there.
        remove_quietly(claim)
        os.close(descriptor)


_RUNNING_KERNEL = "/proc/sys/kernel/random/boot_id"


def _sign(descriptor: int) -> None:
    """Lets others see whether the holder lives, where that is possible."""
    with contextlib.suppress(OSError):
        origin = _origin(descriptor)
        if origin and _is_locked(descriptor):
            os.write(descriptor, origin)


def _take_over(claim: str) -> int:
    """Opens the claim of a process that died. Raises FileExistsError unless that is certain."""
    try:
        descriptor = os.open(claim, os.O_RDWR)
    except OSError:
        # Its holder has just let go, or it may not be opened.
        raise FileExistsError(claim) from None
    try:
        if _is_abandoned(claim, descriptor):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    raise FileExistsError(claim)


def _is_abandoned(claim: str, descriptor: int) -> bool:
    """Whether the holder of a claim is dead; if so, it is locked for this process."""
    origin = _origin(descriptor)
    if not origin or not _is_locked(descriptor) or os.read(descriptor, 200) != origin:
        return False
    # Others may have taken it over before, and be done with it.
    return os.path.samestat(os.stat(claim), os.fstat(descriptor))


def _origin(descriptor: int) -> bytes:
    """The running kernel and the mount, within which locks are seen; empty where unknown."""
    if fcntl is None:
        return b""
    with open(_RUNNING_KERNEL, "rb") as kernel:
        return b"%s %d" % (kernel.read().strip(), os.fstat(descriptor).st_dev)


def _is_locked(descriptor: int) -> bool:
    """Locks an open file until it is closed, or its process ends, unless another one has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
