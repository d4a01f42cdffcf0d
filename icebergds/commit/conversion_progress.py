"""Records in a snapshot's summary how far a conversion of equality deletes in parts has come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import (
    CONVERSION_PROGRESS,
    CONVERT_EQUALITY_DELETES,
    OWN_OPERATION,
    Snapshot,
)

Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ConversionProgress:
    """Which data files of a snapshot were compared with which of its equality deletes.

    Data files are taken in the order of their data sequence numbers and names. Names stay if a
    table is copied to another location. The file sequence number says since when a file is in the
    table, so nothing is said of files that came later. Data and delete files never change, and what
    replaces a deletion vector has its positions: so this also holds in all snapshots that descend
    from the one that records it, whatever other libraries commit.

    Attributes:
        deletes: equality delete files with at most this file sequence number.
        files: data files with at most this file sequence number.
        number, name: the last of the compared data files: data sequence number and file name.
    """

    deletes: int
    files: int
    number: int
    name: str

    def covers(self, data: _Numbers, file: _Numbers, paths: pa.Array) -> Mask:
        """Marks the data files that were compared.

        Args:
            data: their data sequence numbers.
            file: their file sequence numbers.
        """
        found: Mask = data < self.number
        is_last: Mask = data == self.number
        if is_last.any():
            names = file_names(paths.filter(pa.array(is_last)))
            is_before = pc.less_equal(names, pa.scalar(self.name, names.type))
            found[is_last] = is_before.to_numpy(zero_copy_only=False)
        covered: Mask = found & (file <= self.files)
        return covered

    def text(self) -> str:
        """As a snapshot's summary has it."""
        return f"{self.deletes} {self.files} {self.number} {self.name}"


def file_names(paths: pa.Array) -> pa.Array:
    """The last parts of some paths."""
    return pc.replace_substring_regex(paths, pattern="(?s)^.*/", replacement="")


def progress_of(metadata: TableMetadata, head: Snapshot | None) -> ConversionProgress | None:
    """The newest record in a snapshot and its ancestors; None if there is none, or it has expired.

    Without it, all data files are compared again.
    """
    for snapshot in metadata.lineage(head):
        summary = snapshot.summary
        if summary.get(OWN_OPERATION) == CONVERT_EQUALITY_DELETES:
            text = summary.get(CONVERSION_PROGRESS)
            if text is not None:
                return _parsed(text)
    return None


def _parsed(text: str) -> ConversionProgress | None:
    match text.split(" ", 3):
        case [deletes, files, number, name] if f"{deletes}{files}{number}".isdecimal():
            return ConversionProgress(int(deletes), int(files), int(number), name)
    return None
