"""Deletes files by kind and counts them; failures are logged and counted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.unused_files.reachable_files import FileKind, FilesByKind

_LOG = logging.getLogger(__name__)
_Item = TypeVar("_Item")

_BATCH = 1000
_BATCHES_AT_ONCE = 4
_FILES_AT_ONCE = 16
# An item that waits for its thread takes a kilobyte.
_SUBMITTED = 10_000


@dataclass(frozen=True, slots=True)
class DeletedFiles:
    """How many files were deleted, by kind, and how many could not be."""

    counts: Mapping[FileKind, int]
    failed: int


def delete_files(
    io: FileIO,
    files: FilesByKind,
    max_concurrent_deletes: int | None = None,
    *,
    stop_at_failure: bool = False,
) -> DeletedFiles:
    """Deletes files kind by kind, in the order of the kinds; missing ones count as deleted.

    Args:
        max_concurrent_deletes: delete files one by one, so many at once; by default in batches if
            the storage has such requests.
        stop_at_failure: leave the files of the following kinds if some of one were not deleted.
    """
    counts: dict[FileKind, int] = {}
    failed = 0
    for kind in FileKind:
        if failed and stop_at_failure:
            break
        found = files.get(kind, ())
        if max_concurrent_deletes is None:
            failures = _delete_batches(io, kind, found)
        else:
            failures = _delete_each(io, kind, found, max_concurrent_deletes)
        counts[kind] = len(found) - failures
        failed += failures
    return DeletedFiles(counts, failed)


def _delete_batches(io: FileIO, kind: FileKind, files: Sequence[str]) -> int:
    """Deletes files in batches; returns how many could not be deleted."""

    def delete(batch: Sequence[str]) -> int:
        try:
            io.delete_all(batch)
        except Exception as error:
            # The error names only the first failure.
            _LOG.info("%d files are deleted one by one: %s", len(batch), error)
            return _delete_each(io, kind, batch, _FILES_AT_ONCE)
        return 0

    batches = [files[start : start + _BATCH] for start in range(0, len(files), _BATCH)]
    return sum(_parallel(delete, batches, _BATCHES_AT_ONCE))


def _delete_each(io: FileIO, kind: FileKind, files: Sequence[str], at_once: int) -> int:
    """Deletes files one by one; returns how many could not be deleted."""
    return sum(_parallel(partial(_delete, io, kind), files, at_once))


def _delete(io: FileIO, kind: FileKind, file: str) -> int:
    try:
        io.delete(file)
    except Exception as error:
        _LOG.warning("the %s %s was not deleted: %s", kind, file, error)
        return 1
    return 0


def _parallel(delete: Callable[[_Item], int], items: Sequence[_Item], at_once: int) -> list[int]:
    if len(items) < 2:
        return [delete(item) for item in items]
    with ThreadPoolExecutor(min(at_once, len(items))) as pool:
        return [
            failures
            for start in range(0, len(items), _SUBMITTED)
            for failures in pool.map(delete, items[start : start + _SUBMITTED])
        ]
