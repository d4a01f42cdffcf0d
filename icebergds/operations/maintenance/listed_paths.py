"""Finds data files that a branch lists several times, in 8 bytes a file.

Position deletes and removals name a path, and so affect all of its entries: maintenance leaves such
files as they are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np

from icebergds.formats.manifests.packed_entries import Int64s
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.packed_files import PackedFiles


class ListedPaths:
    """The paths of data files that were listed, as hashes.

    Two paths may have the same hash: then both files count as listed several times.
    """

    def __init__(self) -> None:
        self._hashes = array("q")

    def add(self, file: PlannedFile) -> None:
        """Adds a file that is listed."""
        self._hashes.append(_hash(file))

    def add_all(self, files: PackedFiles) -> None:
        """Adds files that are listed."""
        self._hashes.frombytes(files.entries.path_hashes.tobytes())

    def once(self, files: Iterable[PlannedFile]) -> list[PlannedFile]:
        """The files, all of them added before, whose path was added only once."""
        repeated = frozenset(self._repeated().tolist())
        return [file for file in files if _hash(file) not in repeated]

    def once_of(self, files: PackedFiles) -> PackedFiles:
        """The files, all of them added before, whose path was added only once."""
        return files.filter(~np.isin(files.entries.path_hashes, self._repeated()))

    def _repeated(self) -> Int64s:
        values, counts = np.unique(np.array(self._hashes, np.int64), return_counts=True)
        repeated: Int64s = values[counts > 1]
        return repeated


def _hash(file: PlannedFile) -> int:
    return hash(file.entry.data_file.file_path)
