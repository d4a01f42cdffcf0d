"""Finds the rows of data files that equality deletes delete; reads only key columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from icebergds.formats.deletes.positions import PositionCollector, Positions, PositionSet
from icebergds.scan.read.deletes import load_positions
from icebergds.scan.read.key_positions import positions_of_keys
from icebergds.scan.read.task_keys import KeyLoader, TaskKeys
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import FileScanTask, ScanTaskGroup

_POSITIONS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class DeletedByKey:
    """The rows of a data file that its equality deletes delete.

    Attributes:
        task: the scan of the whole file.
        positions: of these rows, without those that position deletes delete.
        deleted_before: the positions that the task's position deletes delete; None if none.
    """

    task: FileScanTask
    positions: PositionSet
    deleted_before: PositionSet | None


def read_deleted_by_key(plan: ReadPlan, task_group: ScanTaskGroup) -> Iterator[DeletedByKey]:
    """Finds the rows that equality deletes delete, one file after the other.

    The columns and the filter of the plan are not used.

    Args:
        task_group: tasks of whole files.

    Raises:
        CorruptFileError: a data or delete file is damaged.
        MissingFileError: a data or delete file does not exist.
        UnsupportedFeatureError: a file uses an unsupported feature; the message names it.
    """
    loader = KeyLoader(plan, task_group)
    for number, task in enumerate(task_group.tasks):
        before = load_positions(plan, task_group, task, task.position_deletes)
        keys = loader.keys_of(number)
        yield DeletedByKey(task, _deleted(plan, task_group, task, keys, before), before)


def _deleted(
    plan: ReadPlan,
    task_group: ScanTaskGroup,
    task: FileScanTask,
    keys: TaskKeys,
    before: PositionSet | None,
) -> PositionSet:
    found = PositionCollector()

    def add(positions: Positions) -> None:
        new = positions if before is None else positions[~before.contains(positions)]
        if len(new):
            found.add(new)

    if keys.sets:
        for positions in positions_of_keys(plan, task_group, task, keys.sets):
            add(positions)
    for of_group in keys.positions.values():
        for positions in of_group.parts(_POSITIONS_AT_ONCE):
            add(positions)
    return found.result()
