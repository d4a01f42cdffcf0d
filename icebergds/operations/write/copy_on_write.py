"""What a task does to change rows by rewriting the files that hold them: copy-on-write.

The rows that stay as they are do not come from the query: the task reads them from the files
itself, so that they pass no process but this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.errors import InvalidDataError
from icebergds.formats.deletes.position_deletes import positions_by_path
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import FileScanTask, ScanTaskGroup
from icebergds.spec.manifest import DataFile
from icebergds.write.changes.deltas import DeltaFiles
from icebergds.write.changes.position_delta import (
    CONTROL_COLUMNS,
    FILE_COLUMN,
    POS_COLUMN,
    WRITE_COLUMN,
)
from icebergds.write.deletes.data_file_names import DataFileNames
from icebergds.write.task import WritePlan, write_batches

_Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """All that tasks need to replace files.

    Attributes:
        write: of the new files.
        read: of the old ones: the columns of `write`, then `_pos`.
        task_group: the files that may be rewritten, each as one task of a scan.
        originals: the same files as manifests describe them, by path.
    """

    write: WritePlan
    read: ReadPlan
    task_group: ScanTaskGroup
    originals: Mapping[str, DataFile]


def write_rewritten(
    plan: RewritePlan,
    batches: Iterable[pa.RecordBatch],
    *,
    partition_id: int,
    attempt_id: int,
) -> DeltaFiles:
    """Writes the rows of one task, and the rows of their files that stay.

    If anything fails, all files of the attempt are deleted and the error is raised as it was.

    Args:
        batches: as of `write_position_delta`.

    Returns:
        The new data files, and in `replaced` the data files that they stand for.

    Raises:
        InvalidDataError: a row of the table comes twice, or a value does not fit its column.
        CorruptFileError, MissingFileError: of the files that are rewritten.
    """
    names = DataFileNames(plan.write.io, plan.originals, plan.write.matching.table)
    changed = _Changes(names)
    rows = _all_rows(plan, changed, batches)
    files = write_batches(plan.write, rows, partition_id=partition_id, attempt_id=attempt_id)
    return DeltaFiles(
        files=tuple(files),
        replaced=tuple(plan.originals[path] for path in changed.positions),
        counts=dict(changed.counts),
    )


@dataclass(slots=True)
class _Changes:
    """What the incoming rows change, gathered as they pass."""

    names: DataFileNames
    positions: dict[str, list[_Positions]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def rows_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are to be written."""
        files = batch.column(FILE_COLUMN)
        written = batch.column(WRITE_COLUMN)
        changed = files.is_valid()
        self._gather(files.filter(changed), batch.column(POS_COLUMN).filter(changed))
        updated = _count(pc.and_(changed, written))
        self.counts["inserted"] += _count(written) - updated
        self.counts["updated"] += updated
        self.counts["deleted"] += _count(changed) - updated
        names = [name for name in batch.schema.names if name not in CONTROL_COLUMNS]
        return batch.select(names).filter(written)

    def _gather(self, files: pa.Array, positions: pa.Array) -> None:
        for name, part in positions_by_path(files, positions.to_numpy(zero_copy_only=False)):
            self.positions.setdefault(self.names.path_of(name), []).append(part)


def _all_rows(
    plan: RewritePlan, changes: _Changes, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The incoming rows, then those of their files that stay."""
    for batch in batches:
        if batch.num_rows:
            rows = changes.rows_of(batch)
            if rows.num_rows:
                yield rows
    tasks = {task.file_path: task for task in plan.task_group.tasks}
    for path, parts in changes.positions.items():
        positions = np.unique(np.concatenate(parts))
        if len(positions) < sum(map(len, parts)):
            raise InvalidDataError(
                f"table {plan.write.matching.table}: a row of {path} is changed by more than one "
                "row of the source; make the rows of the source match at most one each"
            )
        yield from _staying(plan, tasks[path], positions)


def _staying(
    plan: RewritePlan, task: FileScanTask, changed: _Positions
) -> Iterator[pa.RecordBatch]:
    columns = [field.name for field in plan.read.columns.fields[:-1]]
    for batch in read_scan_tasks(plan.read, replace(plan.task_group, tasks=(task,))):
        positions = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
        stays = ~np.isin(positions, changed, assume_unique=True)
        rows = batch.select(columns)
        yield rows if stays.all() else rows.filter(pa.array(stays))


def _count(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)
