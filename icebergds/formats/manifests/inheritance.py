"""Fills in what entries inherit (spec: Sequence Number Inheritance, First Row ID Inheritance)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.errors import CorruptFileError
from icebergds.spec.manifest import ManifestContent, ManifestEntryStatus, ManifestFile

Int64s = npt.NDArray[np.int64]
_ADDED = ManifestEntryStatus.ADDED.value
_DELETED = ManifestEntryStatus.DELETED.value


def inherited_snapshot_ids(stored: pa.Array, manifest: ManifestFile, what: str) -> Int64s:
    """Snapshot ids; null ones are inherited from the manifest."""
    if stored.null_count and manifest.added_snapshot_id is None:
        raise CorruptFileError(f"{what}: neither an entry nor the manifest has a snapshot id")
    return numbers(stored, manifest.added_snapshot_id or 0)


def inherited_sequence_numbers(
    data: pa.Array | None,
    file: pa.Array | None,
    status: Int64s,
    manifest: ManifestFile,
    what: str,
) -> tuple[Int64s, Int64s]:
    """Data and file sequence numbers; stored ones are None if the column is missing (version 1).

    Added files inherit the manifest's number. Others must have their own, except in manifests
    without the column, where they have 0. Deleted files are not scanned, so theirs may be missing.
    A missing file sequence number defaults to the data sequence number, which is never greater.
    """
    own = manifest.sequence_number
    data_numbers = np.zeros(len(status), np.int64) if data is None else numbers(data, own)
    inheriting = missing(data, len(status))
    if data is None:
        data_numbers[status == _ADDED] = own
    elif own and (inheriting & (status != _ADDED) & (status != _DELETED)).any():
        raise CorruptFileError(f"{what}: an existing file has no data sequence number")
    file_numbers = data_numbers.copy() if file is None else numbers(file, own)
    unknown = missing(file, len(status))
    file_numbers[unknown & (status == _ADDED)] = own
    file_numbers[unknown & (status != _ADDED)] = data_numbers[unknown & (status != _ADDED)]
    return data_numbers, file_numbers


def inherited_first_row_ids(
    stored: pa.Array, status: Int64s, record_counts: Int64s, manifest: ManifestFile
) -> pa.Array:
    """First row ids; data files without one are assigned ids from the manifest's, in order.

    Deleted files are assigned none, and delete files have none.
    """
    if manifest.content is ManifestContent.DELETES:
        return pa.nulls(len(stored), pa.int64())
    if manifest.first_row_id is None:
        return stored
    taking = missing(stored, len(stored)) & (status != _DELETED)
    rows = np.where(taking, record_counts, 0)
    assigned = manifest.first_row_id + np.cumsum(rows) - rows
    values = np.where(taking, assigned, numbers(stored, 0))
    return pa.array(values, mask=missing(stored, len(stored)) & ~taking)


def numbers(column: pa.Array, default: int) -> Int64s:
    """A writable numpy copy of an int64 column, with `default` for null."""
    filled = column.fill_null(default) if column.null_count else column
    return np.array(filled.to_numpy(zero_copy_only=False), np.int64)


def missing(column: pa.Array | None, length: int) -> npt.NDArray[np.bool_]:
    """Which values of a column are null; all if there is no column."""
    if column is None:
        return np.ones(length, np.bool_)
    if not column.null_count:
        return np.zeros(length, np.bool_)
    return np.array(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
