"""Finds the positions of rows that equality deletes delete; reads only the key columns.

This way, a key set that is too large for memory can be applied in parts, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.data_reader import ReadRequest
from icebergds.formats.deletes.positions import PositionCollector, Positions, PositionSet
from icebergds.interrupts import until_stopped
from icebergds.scan.column_paths import column_at, locate
from icebergds.scan.read.deletes import read_key_sets
from icebergds.scan.read.key_set import EqualityKeySet
from icebergds.scan.read.metadata_columns import identity_constants, row_ids_of
from icebergds.scan.read.task_file import open_task_file
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import FileScanTask, ScanTaskGroup
from icebergds.spec.reserved import ROW_ID
from icebergds.spec.schema import Schema


def positions_of_keys(
    plan: ReadPlan,
    task_group: ScanTaskGroup,
    task: FileScanTask,
    key_sets: Mapping[int, EqualityKeySet],
    seen: Callable[[Positions, list[pa.Array]], None] | None = None,
    with_row_ids: bool = False,
    row_filter: Expr = TRUE,
) -> Iterator[Positions]:
    """Finds the rows of a task that key sets delete, per batch and set, in any order.

    A row that several sets delete is returned several times. The columns and the filter of the plan
    are not used.

    Args:
        key_sets: by the index of the equality delete group.
        seen: called with the positions that are returned, and the key columns of these rows.
        with_row_ids: whether the ids of these rows follow their key columns.
        row_filter: bound to the table's schema; selects at least the rows that key sets delete.

    Raises:
        CorruptFileError, MissingFileError: the data file is damaged or missing.
    """
    ids = {index: task_group.equality_deletes[index].equality_ids for index in key_sets}
    keys = task_group.key_schema.select({i for of_set in ids.values() for i in of_set})
    paths = {index: [_path(keys, i) for i in ids_of_set] for index, ids_of_set in ids.items()}
    constants = identity_constants(plan.specs[task.spec_id], task.partition)
    with open_task_file(plan, task) as reader:
        stored = Schema((*keys.fields, ROW_ID)) if with_row_ids else keys
        request = ReadRequest(stored, constants, row_filter, plan.batch_size)
        for read in until_stopped(reader.batches(request, task.start, task.length_to_read)):
            for index, key_set in key_sets.items():
                columns = [column_at(read.batch, path) for path in paths[index]]
                rows = key_set.find(columns, task.data_sequence_number)
                if not len(rows):
                    continue
                positions = rows + read.first_position
                if seen is not None:
                    taken = pa.array(rows)
                    if with_row_ids:
                        at = len(keys.fields)
                        columns.append(row_ids_of(read, at, task.first_row_id))
                    seen(positions, [column.take(taken) for column in columns])
                yield positions


def positions_of_large_set(
    plan: ReadPlan, task_group: ScanTaskGroup, index: int
) -> dict[int, PositionSet]:
    """Finds the rows that a key set too large for memory deletes.

    Args:
        index: of the equality delete group.

    Returns:
        Positions by task number, for all tasks that use the group.

    Raises:
        CorruptFileError, MissingFileError: a file is damaged or missing.
    """
    group = task_group.equality_deletes[index]
    found = {
        number: PositionCollector()
        for number, task in enumerate(task_group.tasks)
        if index in task.equality_groups
    }
    for key_set in read_key_sets(plan, task_group.key_schema, group):
        for number, collected in found.items():
            task = task_group.tasks[number]
            for positions in positions_of_keys(plan, task_group, task, {index: key_set}):
                collected.add(positions)
        # Two parts would not fit in memory.
        del key_set
    return {number: collected.result() for number, collected in found.items()}


def _path(keys: Schema, field_id: int) -> tuple[int, ...]:
    path = locate(keys.fields, field_id)
    assert path is not None, f"key column {field_id} is in the key schema by construction"
    return path
