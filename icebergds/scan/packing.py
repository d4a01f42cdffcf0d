"""Packs read plans and task groups as bytes, to pass them on in options and partitions.

Users who can set the options of a load must not be able to run code with them, so unpacking creates
only values of this package's own types.
"""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from icebergds.encryption.ciphers import WrongKey, open_sealed, seal
from icebergds.errors import InvalidOptionError
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ChangelogTaskGroup, ScanTaskGroup, TaskGroup, has_keys

# The fastest level: paths compress well at any level.
_LEVEL = 1
# Modules that define only values.
_OWN = ("icebergds.scan.tasks", "icebergds.scan.read_plan", "icebergds.spec.", "icebergds.expr.")
_FURTHER = {
    ("icebergds.io.fileio", "FileIO"),
    ("icebergds.io.vended_credentials", "PrefixCredentials"),
    ("icebergds.io.vended_credentials", "VendedCredentials"),
    ("icebergds.formats.wrong_counts", "WrongCounts"),
    *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
    ("decimal", "Decimal"),
    ("uuid", "UUID"),
}


def pack_task_group(task_group: TaskGroup) -> bytes:
    """Packs a task group for `unpack_task_group`."""
    return zlib.compress(pickle.dumps(task_group, pickle.HIGHEST_PROTOCOL), _LEVEL)


def unpack_task_group(packed: bytes) -> TaskGroup:
    """Unpacks a task group from `pack_task_group`.

    Raises:
        InvalidOptionError: the bytes are not a packed task group.
    """
    match _unpack(packed, zlib.decompress):
        case ScanTaskGroup() | ChangelogTaskGroup() as task_group:
            return task_group
        case other:
            raise InvalidOptionError(f"a packed task group holds a {type(other).__name__}")


def pack_scan(plan: ReadPlan, task_groups: Iterable[TaskGroup], key: bytes | None = None) -> bytes:
    """Packs a planned scan for `unpack_scan`.

    Args:
        key: encrypts the task groups; None if no file of theirs is encrypted.

    Raises:
        ValueError: there is no key, and task groups have keys of files.
    """
    task_groups = list(task_groups)
    if key is None and any(map(has_keys, task_groups)):
        raise ValueError("tasks of encrypted files are packed with a key")
    packed: bytes | list[bytes] = [pack_task_group(task_group) for task_group in task_groups]
    if key is not None:
        packed = seal(key, pickle.dumps(packed, pickle.HIGHEST_PROTOCOL))
    return pickle.dumps((plan, packed), pickle.HIGHEST_PROTOCOL)


def unpack_scan(packed: bytes, key: bytes | None = None) -> tuple[ReadPlan, list[bytes]]:
    """Unpacks the plan of a scan from `pack_scan`, and its task groups, which stay packed.

    Args:
        key: that it was packed with.

    Raises:
        InvalidOptionError: the bytes are not a packed scan, or were packed with another key.
    """
    match _unpack(packed):
        case (ReadPlan() as plan, bytes() as sealed) if key is not None:
            return plan, _opened(sealed, key)
        case (ReadPlan() as plan, list(task_groups)) if key is None:
            return plan, task_groups
        case other:
            raise InvalidOptionError(f"a packed scan holds a {type(other).__name__}")


def _opened(sealed: bytes, key: bytes) -> list[bytes]:
    try:
        opened = open_sealed(key, sealed)
    except WrongKey:
        raise InvalidOptionError(
            "a packed scan cannot be read: it is of another process, whose encrypted files it has "
            "the keys of; plan it again"
        ) from None
    task_groups: list[bytes] = _unpack(opened)
    return task_groups


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            # Python 3.11.0 to 3.11.3 pickle enum members this way.
            return _member
        if not (module.startswith(_OWN) or (module, name) in _FURTHER):
            raise pickle.UnpicklingError(f"{module}.{name}")
        found = super().find_class(module, name)
        # Excludes names that the module only imports, and functions.
        if not isinstance(found, type) or (found.__module__, found.__name__) != (module, name):
            raise pickle.UnpicklingError(f"{module}.{name}")
        return found


def _member(kind: Any, name: str) -> Enum:
    if not (isinstance(kind, type) and issubclass(kind, Enum)):
        raise pickle.UnpicklingError(f"attribute {name} of {kind!r}")
    return kind[name]


def _unpack(packed: bytes, decompress: Callable[[bytes], bytes] = bytes) -> Any:
    try:
        return _Unpickler(io.BytesIO(decompress(packed))).load()
    except Exception as error:
        raise InvalidOptionError(
            f"a packed scan cannot be read ({type(error).__name__}: {error}); it must come from "
            "the same version of icebergds"
        ) from None
