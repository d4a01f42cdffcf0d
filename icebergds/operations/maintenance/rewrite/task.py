"""Rewrites data files in a task, and moves deletes of their rows to the new files.

Rows are read with their deletes merged and written in the same order, as Arrow batches all the way.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from icebergds.formats.deletes.existing_deletes import read_existing_deletes
from icebergds.formats.deletes.positions import PositionSet
from icebergds.interrupts import until_stopped
from icebergds.operations.runner import TaskAttempt
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import DataFile, DataFileRef
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import FILE_PATH, POS
from icebergds.spec.schema import Schema
from icebergds.write.deletes.position_deletes import FilePositions
from icebergds.write.deletes.row_deletes import DeleteSettings, write_deletes
from icebergds.write.task import WritePlan, start_attempt, write_batches


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """What all tasks of a group of files share.

    Attributes:
        read: reads the columns of `write` of all rows that are not deleted.
    """

    read: ReadPlan
    write: WritePlan

    def renamed(self) -> RewritePlan:
        """The plan with new file names, which identify the files of one job."""
        return replace(self, write=replace(self.write, operation_id=str(uuid.uuid4())))


def rewrite_files(plan: RewritePlan, files: ScanTaskGroup, attempt: TaskAttempt) -> list[DataFile]:
    """Writes the rows of some files to new ones; deletes these if it fails.

    Returns:
        The new files, in the order of their rows.
    """
    return write_batches(
        plan.write,
        until_stopped(read_scan_tasks(plan.read, files)),
        partition_id=attempt.partition_id,
        attempt_id=attempt.attempt_id,
    )


@dataclass(frozen=True, slots=True)
class MovePlan:
    """Shared by all tasks that move deletes of rewritten rows."""

    rewrite: RewritePlan
    settings: DeleteSettings
    specs: Mapping[int, PartitionSpec]


@dataclass(frozen=True, slots=True)
class DeletesToMove:
    """Deletes of rows that a task of a rewrite has moved to new files.

    Attributes:
        files: what the task read.
        written: the new files in the order of their rows, and how many rows each has.
        deletes: position delete files and deletion vectors, by the path of a data file of `files`.
    """

    files: ScanTaskGroup
    written: tuple[tuple[DataFileRef, int], ...]
    deletes: Mapping[str, tuple[DataFile, ...]]


def move_deletes(plan: MovePlan, item: DeletesToMove, attempt: TaskAttempt) -> list[DataFile]:
    """Writes deletes for the rows of new files that were deleted in the old ones meanwhile.

    Reads again which rows the rewrite has read, but none of their columns.

    Returns:
        New delete files; none if all of the deleted rows were deleted before.
    """
    deleted = read_existing_deletes(plan.rewrite.read.io, item.deletes)
    rows = _rows_at(_positions_only(plan.rewrite.read), item.files, deleted)
    starts = np.cumsum([0, *(count for _, count in item.written)])
    # None is written of files all of whose rows were deleted before.
    found = [
        FilePositions(ref, PositionSet.of(rows[first:last] - start))
        for (ref, _), start, (first, last) in zip(
            item.written, starts[:-1], pairwise(rows.searchsorted(starts)), strict=True
        )
        if last > first
    ]
    if not found:
        return []
    with start_attempt(
        plan.rewrite.write, partition_id=attempt.partition_id, attempt_id=attempt.attempt_id
    ) as task:
        return write_deletes(task, found, plan.settings, plan.specs)


def _positions_only(plan: ReadPlan) -> ReadPlan:
    return replace(plan, columns=Schema((FILE_PATH, POS)))


def _rows_at(
    plan: ReadPlan, files: ScanTaskGroup, deleted: Mapping[str, PositionSet]
) -> npt.NDArray[np.int64]:
    """The numbers of the deleted rows among all rows that are read, ascending."""
    numbers: list[npt.NDArray[np.int64]] = []
    first = 0
    for batch in read_scan_tasks(plan, files):
        # All rows of a batch are of one file.
        path, positions = batch.column(0)[0].as_py(), batch.column(1)
        if path in deleted:
            found = deleted[path].contains(positions.to_numpy(zero_copy_only=False))
            numbers.append(first + np.flatnonzero(found))
        first += batch.num_rows
    return np.concatenate(numbers) if numbers else np.empty(0, np.int64)
