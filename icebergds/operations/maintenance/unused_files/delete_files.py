"""Deletes files by kind and counts them, also all that the metadata of a lost table reaches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TypeVar

from icebergds.commit.operations import TableState
from icebergds.display import html_result
from icebergds.errors import InvalidOptionError, MissingFileError
from icebergds.io.fileio import FileIO
from icebergds.io.same_directory import is_same_directory
from icebergds.operations.maintenance.unused_files.reachable_files import (
    FileKind,
    FilesByKind,
    reachable_files,
    require_garbage_collection,
)
from icebergds.reporting import advancing, kept, stage
from icebergds.spec.metadata import metadata_directory

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
    with stage("delete files", sum(map(len, files.values()))):
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
    return sum(_parallel(delete, batches, _BATCHES_AT_ONCE, map(len, batches)))


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


def _parallel(
    delete: Callable[[_Item], int],
    items: Sequence[_Item],
    at_once: int,
    counts: Iterable[int] = repeat(1),
) -> list[int]:
    """Deletes items by several threads, and advances by the count of each."""
    counts = iter(counts)
    with ThreadPoolExecutor(max(1, min(at_once, len(items)))) as pool:
        return [
            failures
            for start in range(0, len(items), _SUBMITTED)
            for failures in advancing(pool.map(delete, items[start : start + _SUBMITTED]), counts)
        ]


_OTHERS = (FileKind.STATISTICS, FileKind.OLD_METADATA, FileKind.METADATA)


@dataclass(frozen=True, slots=True)
class DeletedReachableFiles:
    """How many files were deleted.

    Attributes:
        deleted_other_files_count: statistics and metadata files.
        failed_files_count: files that could not be deleted; each is logged. The files that lead to
            them, and the metadata file, are then left.
    """

    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifests_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_other_files_count: int = 0
    failed_files_count: int = 0

    def _repr_html_(self) -> str:
        return html_result("Deleted reachable files", self)


def delete_reachable(state: TableState) -> DeletedReachableFiles:
    """Deletes the files that metadata reaches, and the metadata files.

    Manifest lists and manifests that are missing are logged, so that a call that did not delete
    everything can be repeated.

    Raises:
        ValidationError: the table property `gc.enabled` is false.
        InvalidOptionError: the metadata file is not in the table's directory.
        CorruptFileError: a manifest list or manifest is damaged; nothing was deleted.
    """
    _check_place(state)
    require_garbage_collection(state, "delete its metadata alone")
    files = reachable_files(state, (MissingFileError,))
    kept("what was deleted is gone, and the call can be repeated")
    deleted = delete_files(state.io, files, stop_at_failure=True)
    counts = deleted.counts
    result = DeletedReachableFiles(
        deleted_data_files_count=counts.get(FileKind.DATA, 0),
        deleted_position_delete_files_count=counts.get(FileKind.POSITION_DELETES, 0),
        deleted_equality_delete_files_count=counts.get(FileKind.EQUALITY_DELETES, 0),
        deleted_manifests_count=counts.get(FileKind.MANIFEST, 0),
        deleted_manifest_lists_count=counts.get(FileKind.MANIFEST_LIST, 0),
        deleted_other_files_count=sum(counts.get(kind, 0) for kind in _OTHERS),
        failed_files_count=deleted.failed,
    )
    _LOG.info("%s: %s", state.metadata_location, result)
    return result


def _check_place(state: TableState) -> None:
    """Refuses a copied metadata file: it reaches the files of the table that it was copied from.

    Raises:
        InvalidOptionError: the file is in none of the directories that the metadata names.
    """
    metadata, found = state.metadata, state.metadata_location.rpartition("/")[0]
    named = (metadata_directory(metadata.location), metadata.metadata_directory)
    if any(is_same_directory(found, directory, state.io) for directory in named):
        return
    mapping = {metadata.location: found.removesuffix("/metadata")}
    raise InvalidOptionError(
        f"{state.metadata_location} was copied or moved: it describes a table at "
        f"{metadata.location}, so the files that it names may be those of another table. If they "
        f"were copied, too, map the old location to the new one: "
        f"location_map={mapping}; if all files of the table at "
        f"{metadata.location} are to be deleted, give a metadata file in {named[1]}"
    )
