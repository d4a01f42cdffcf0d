"""Finds the rows of data files that equality deletes delete, reading the key columns alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from icebergds.formats.data_reader import ReadRequest, open_data_file
from icebergds.formats.deletes.positions import PositionCollector, PositionSet
from icebergds.formats.wrong_counts import Recorded
from icebergds.scan.column_paths import column_at, locate
from icebergds.scan.read.deletes import load_key_set, load_positions
from icebergds.scan.read.key_set import EqualityKeySet
from icebergds.scan.read.metadata_columns import identity_constants
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import FileScanTask, ScanTaskGroup
from icebergds.spec.schema import Schema


@dataclass(frozen=True, slots=True)
class DeletedByKey:
    """The rows of a data file that its equality deletes delete.

    Attributes:
        task: the scan of the whole file.
        positions: of the rows that no position delete deletes.
        deleted_before: what the task's position deletes delete; None if nothing.
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
    key_sets: dict[int, EqualityKeySet] = {}
    for task in task_group.tasks:
        # Kept while consecutive tasks use them, even if they are too large for the cache.
        key_sets = {
            index: key_sets.get(index)
            or load_key_set(plan, task_group.key_schema, task_group.equality_deletes[index])
            for index in task.equality_deletes
        }
        before = load_positions(plan, task_group, task, task.position_deletes)
        yield DeletedByKey(task, _deleted(plan, task_group, task, key_sets, before), before)


def _deleted(
    plan: ReadPlan,
    task_group: ScanTaskGroup,
    task: FileScanTask,
    key_sets: Mapping[int, EqualityKeySet],
    before: PositionSet | None,
) -> PositionSet:
    ids = {index: task_group.equality_deletes[index].equality_ids for index in key_sets}
    keys = task_group.key_schema.select({i for of_set in ids.values() for i in of_set})
    paths = {index: [_path(keys, i) for i in ids_of_set] for index, ids_of_set in ids.items()}
    constants = identity_constants(plan.specs[task.spec_id], task.partition)
    found = PositionCollector()
    with open_data_file(
        plan.io,
        task.file_path,
        task.file_format,
        table_schema=plan.table_schema,
        name_mapping=plan.name_mapping,
        recorded=Recorded(task.record_count, task.file_size_in_bytes, plan.wrong_counts),
    ) as reader:
        request = ReadRequest(keys, constants, batch_size=plan.batch_size)
        for read in reader.batches(request):
            deleted = np.zeros(read.num_rows, np.bool_)
            for index, key_set in key_sets.items():
                columns = [column_at(read.batch, path) for path in paths[index]]
                deleted |= key_set.contains(columns, task.data_sequence_number)
            known = None if before is None else before.mask(read.first_position, read.num_rows)
            if known is not None:
                deleted &= ~known
            positions = np.flatnonzero(deleted)
            if len(positions):
                found.add(positions + read.first_position)
    return found.result()


def _path(keys: Schema, field_id: int) -> tuple[int, ...]:
    path = locate(keys.fields, field_id)
    assert path is not None, f"key column {field_id} is in the key schema by construction"
    return path
