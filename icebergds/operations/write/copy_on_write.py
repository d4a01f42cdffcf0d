"""Changes rows in a task by rewriting their data files (copy-on-write).

The task itself reads the unchanged rows from the files, so that they do not pass through the query.
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
from icebergds.scan.tasks import (
    DeleteFileRef,
    EqualityDeleteGroup,
    FileScanTask,
    ScanTaskGroup,
)
from icebergds.spec.manifest import DataFile, without_metrics
from icebergds.spec.schema import Schema
from icebergds.write.changes.deltas import DeltaFiles
from icebergds.write.changes.position_delta import (
    CONTROL_COLUMNS,
    FILE_COLUMN,
    POS_COLUMN,
    WRITE_COLUMN,
    take_targets,
)
from icebergds.write.deletes.data_file_names import DataFileNames
from icebergds.write.deletes.deleted_rows import REPEATED
from icebergds.write.task import WritePlan, write_batches

_Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RewriteTarget:
    """A data file that may be rewritten.

    Attributes:
        task: the scan of the whole file; its equality deletes are in the `RewritePlan`.
        position_deletes: the files that the task's position deletes index into.
        original: the file's manifest entry, without metrics.
    """

    task: FileScanTask
    position_deletes: tuple[DeleteFileRef, ...]
    original: DataFile


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """What all tasks need to rewrite files; what is specific to a file is in a `RewriteTarget`.

    Attributes:
        write: the plan for the new files.
        read: the plan for the old ones: the columns of `write`, then `_pos`.
        equality_deletes, key_schema: those of all files, as in a `ScanTaskGroup`.
    """

    write: WritePlan
    read: ReadPlan
    equality_deletes: tuple[EqualityDeleteGroup, ...]
    key_schema: Schema


def rewrite_targets(
    group: ScanTaskGroup, originals: Iterable[DataFile]
) -> Iterator[tuple[str, RewriteTarget]]:
    """The rewrite targets of a scan, by path.

    Args:
        group: all of the files, each as one task.
        originals: the same files, in any order.
    """
    by_path = {file.file_path: file for file in originals}
    for task in group.tasks:
        deletes = tuple(group.position_deletes[index] for index in task.position_deletes)
        alone = replace(task, position_deletes=tuple(range(len(deletes))))
        yield (
            task.file_path,
            RewriteTarget(alone, deletes, without_metrics(by_path[task.file_path])),
        )


def write_rewritten(
    plan: RewritePlan,
    batches: Iterable[pa.RecordBatch],
    *,
    partition_id: int,
    attempt_id: int,
) -> DeltaFiles:
    """Writes the rows of one task, and the unchanged rows of the files that they change.

    If anything fails, all files of the attempt are deleted and the error is raised unchanged.

    Args:
        batches: as for `write_position_delta`.

    Returns:
        The new data files, and in `replaced` the data files that they replace.

    Raises:
        InvalidDataError: a row of the table is changed twice, or a value does not fit its column.
        CorruptFileError, MissingFileError: a file to rewrite is damaged or missing.
    """
    changes = _Changes()
    rows = _all_rows(plan, changes, batches)
    files = write_batches(plan.write, rows, partition_id=partition_id, attempt_id=attempt_id)
    return DeltaFiles(
        files=tuple(files), replaced=tuple(changes.replaced), counts=dict(changes.counts)
    )


@dataclass(slots=True)
class _Changes:
    """Collects what the incoming rows change while they are written."""

    targets: dict[str, RewriteTarget] = field(default_factory=dict)
    positions: dict[str, list[_Positions]] = field(default_factory=dict)
    replaced: list[DataFile] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def rows_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch to write; records what the batch changes."""
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
            self.positions.setdefault(name, []).append(part)

    def by_path(self, plan: RewritePlan) -> Mapping[str, list[_Positions]]:
        """The positions of the changed rows, by data file."""
        names = DataFileNames(plan.write.io, self.targets, plan.write.matching.table)
        found: dict[str, list[_Positions]] = {}
        for name, parts in self.positions.items():
            found.setdefault(names.path_of(name), []).extend(parts)
        return found


def _all_rows(
    plan: RewritePlan, changes: _Changes, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The incoming rows, then the unchanged rows of the files that they change."""
    for batch in take_targets(batches, changes.targets):
        if batch.num_rows:
            rows = changes.rows_of(batch)
            if rows.num_rows:
                yield rows
    for path, parts in changes.by_path(plan).items():
        # np.unique of numpy 2.4 takes many times as long.
        positions = np.sort(np.concatenate(parts))
        if (positions[1:] == positions[:-1]).any():
            raise InvalidDataError(
                f"table {plan.write.matching.table}: a row of {path} is changed by {REPEATED}; "
                "remove source rows so that each table row matches at most one"
            )
        target = changes.targets[path]
        changes.replaced.append(target.original)
        yield from _staying(plan, target, positions)


def _staying(
    plan: RewritePlan, target: RewriteTarget, changed: _Positions
) -> Iterator[pa.RecordBatch]:
    columns = [field.name for field in plan.read.columns.fields[:-1]]
    group = ScanTaskGroup(
        (target.task,), target.position_deletes, plan.equality_deletes, plan.key_schema
    )
    for batch in read_scan_tasks(plan.read, group):
        positions = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
        stays = ~np.isin(positions, changed, assume_unique=True)
        rows = batch.select(columns)
        yield rows if stays.all() else rows.filter(pa.array(stays))


def _count(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)
