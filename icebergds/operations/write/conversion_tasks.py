"""Writes position deletes of the rows that equality deletes delete, in a task."""

from __future__ import annotations

from dataclasses import dataclass

from icebergds.commit.compared_files import CompressedFiles
from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.deletes.key_hash import Hashes
from icebergds.formats.deletes.positions import Positions, PositionSet
from icebergds.operations.runner import TaskAttempt
from icebergds.scan.read.deleted_keys import DeletedByKey, KeyHashing, read_deleted_by_key
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import DataFileRef
from icebergds.write import files
from icebergds.write.deletes.position_deletes import FilePositions
from icebergds.write.deletes.row_deletes import DeleteSettings, write_deletes
from icebergds.write.locations import FileNames, LocationProvider


@dataclass(frozen=True, slots=True)
class ConversionPlan:
    """What all tasks of a conversion share.

    Attributes:
        read: how to read data files and deletes.
        locations: chooses the locations of new files.
        operation_id: unique id of the operation, part of the names of new files.
        settings: how to write position deletes.
        hashing: the hashes of keys that tasks return; None if they are not needed.
        row_filter: bound to the table's schema; selects at least the rows that are deleted.
    """

    read: ReadPlan
    locations: LocationProvider
    operation_id: str
    settings: DeleteSettings
    hashing: KeyHashing | None = None
    row_filter: Expr = TRUE


@dataclass(frozen=True, slots=True)
class ConvertedRows:
    """What a task has written.

    Attributes:
        rows: how many rows of each data file of the task the new deletes delete.
        deletes: the new position delete files, or deletion vectors with the deletes of the ones
            that they replace.
        keys: for each data file, hashes of the keys of these rows; None where they are not known.
        row_ids: for each data file, the ids of these rows, as in `DeletedByKey`.
    """

    rows: tuple[int, ...]
    deletes: CompressedFiles
    keys: tuple[Hashes | None, ...] = ()
    row_ids: tuple[Positions | None, ...] = ()


def write_converted(
    plan: ConversionPlan, task_group: ScanTaskGroup, attempt: TaskAttempt
) -> ConvertedRows:
    """Writes position deletes of the rows of a task's files that equality deletes delete.

    If anything fails, all files of the attempt are deleted and the error is raised unchanged.

    Args:
        task_group: tasks of whole files.

    Raises:
        CorruptFileError, MissingFileError: a data or delete file is damaged or missing.
    """
    names = FileNames(attempt.partition_id, attempt.attempt_id, plan.operation_id)
    rows, deletes = list[int](), list[FilePositions]()
    keys, row_ids = list[Hashes | None](), list[Positions | None]()
    with files.TaskAttempt(plan.read.io, plan.locations, names, plan.read.table_schema) as written:
        for found in read_deleted_by_key(plan.read, task_group, plan.hashing, plan.row_filter):
            rows.append(len(found.positions))
            keys.append(found.keys)
            row_ids.append(found.row_ids)
            if found.positions:
                deletes.append(_positions(plan, found))
        new = write_deletes(written, deletes, plan.settings, plan.read.specs)
    return ConvertedRows(tuple(rows), CompressedFiles.of(new), tuple(keys), tuple(row_ids))


def _positions(plan: ConversionPlan, found: DeletedByKey) -> FilePositions:
    task, positions = found.task, found.positions
    # A data file has only one deletion vector, which replaces all other position deletes.
    if plan.settings.format_version >= 3 and found.deleted_before is not None:
        positions = PositionSet.union([found.deleted_before, positions])
    return FilePositions(DataFileRef(task.file_path, task.spec_id, task.partition), positions)
