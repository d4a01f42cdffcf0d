"""Estimates how many rows of a data file are deleted by delete files that it shares."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

import numpy as np
import numpy.typing as npt

from icebergds.commit.file_selection import FileKey, file_key
from icebergds.formats.deletes.position_deletes import only_data_path
from icebergds.operations.maintenance.deletes.dangling_deletes import is_older
from icebergds.scan.plan.packed_files import PackedFiles
from icebergds.spec.manifest import ManifestEntry

Float64s = npt.NDArray[np.float64]


class SharedDeletes:
    """Position delete files that may apply to several data files.

    Metadata does not say how many rows of which file they delete: these are assumed to be spread
    evenly over the rows of all data files that they may apply to, except those that were added
    later.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        # The rows of the data files that each of them may apply to.
        self._rows: dict[FileKey, int] = {}

    def add(self, files: PackedFiles) -> None:
        """Adds data files; called by several threads."""
        with self._lock:
            for deletes, at in _alike(files):
                rows = int(np.maximum(files.entries.record_count[at], 0).sum())
                for delete in deletes:
                    key = file_key(delete.data_file)
                    self._rows[key] = self._rows.get(key, 0) + rows

    def any_of(self, files: PackedFiles) -> npt.NDArray[np.bool_]:
        """Which of some files have shared deletes."""
        found = np.zeros(len(files), np.bool_)
        for deletes, at in _alike(files):
            found[at] = bool(deletes)
        return found

    def shares(self, files: PackedFiles) -> Float64s:
        """The share of rows that they delete in each of some added files, from 0 to 1."""
        found = np.zeros(len(files))
        for deletes, at in _alike(files):
            counts = ((max(d.data_file.record_count, 0), file_key(d.data_file)) for d in deletes)
            share = sum(count / max(self._rows.get(key, 0), 1) for count, key in counts)
            found[at] = min(share, 1.0)
        return found


def _alike(
    files: PackedFiles,
) -> Iterator[tuple[list[ManifestEntry], npt.NDArray[np.intp]]]:
    """Shared deletes, and the numbers of the files that have exactly these."""
    by_number = [list(filter(_is_shared, found.position_deletes)) for found in files.deletes]
    have_some = np.array([bool(deletes) for deletes in by_number], np.bool_)
    rows = np.flatnonzero(have_some[files.delete_numbers])
    pairs = np.stack([files.delete_numbers, files.entries.file_sequence_number])[:, rows]
    distinct, at = np.unique(pairs, axis=1, return_inverse=True)
    order = np.argsort(at, kind="stable")
    groups = np.split(rows[order], np.flatnonzero(np.diff(at[order])) + 1)
    for (number, added), group in zip(distinct.T.tolist(), groups, strict=False):
        deletes = [delete for delete in by_number[number] if not is_older(delete, added)]
        if deletes:
            yield deletes, group


def _is_shared(delete: ManifestEntry) -> bool:
    file = delete.data_file
    return not file.is_deletion_vector and only_data_path(file) is None
