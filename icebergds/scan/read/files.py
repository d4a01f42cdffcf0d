"""Reads the files of a scan task group and applies their deletes (spec: Scan Planning).

Tasks are read one after the other: open the file, read the columns that the output, the filter and
equality deletes need by field id, drop deleted and filtered rows, project to the output columns.
The first rows of remote files are read ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.expr.bind import field_ids
from icebergds.expr.nodes import FALSE, TRUE, Expr
from icebergds.expr.residual import residual
from icebergds.formats.arrow.filter import filter_mask
from icebergds.formats.data_reader import PositionedBatch, ReadRequest
from icebergds.formats.deletes.positions import PositionSet
from icebergds.io.locations import is_local
from icebergds.io.ranged_file import Open
from icebergds.scan.column_paths import column_at, locate
from icebergds.scan.read.begun_ahead import Part, begun_ahead
from icebergds.scan.read.deletes import load_positions, opens_for_positions
from icebergds.scan.read.key_set import EqualityKeySet
from icebergds.scan.read.metadata_columns import OutputColumns, identity_constants
from icebergds.scan.read.task_file import open_task_file
from icebergds.scan.read.task_keys import KeyLoader, TaskKeys
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import FileScanTask, ScanTaskGroup
from icebergds.spec.reserved import DELETED
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField

_Mask = npt.NDArray[np.bool_]
_Step: TypeAlias = pa.RecordBatch | None


def read_scan_tasks(plan: ReadPlan, task_group: ScanTaskGroup) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a task group, in the Arrow storage types of `plan.columns`.

    Raises:
        CorruptFileError: a data or delete file is damaged.
        MissingFileError: a data or delete file does not exist.
        UnsupportedFeatureError: a file uses an unsupported feature; the message names it.
    """
    plan = replace(plan, io=plan.io.expecting(_opens(plan, task_group)))
    yield from begun_ahead(_parts(plan, task_group))


def _parts(plan: ReadPlan, task_group: ScanTaskGroup) -> Iterator[Part[pa.RecordBatch]]:
    """The rows of each task; those of remote files may be read ahead."""
    loader = KeyLoader(plan, task_group)
    held: frozenset[int] = frozenset()
    for number, task in enumerate(task_group.tasks):
        groups = frozenset(task.equality_groups)
        is_remote = not is_local(plan.io.locate(task.file_path))

        def read(number: int = number, task: FileScanTask = task) -> Iterator[_Step]:
            return _read_task(plan, task_group, task, loader.keys_of(number))

        # Otherwise keys of two tasks would be in memory at once.
        yield Part(read, is_remote and groups <= held, task.length)
        held = groups


def _opens(plan: ReadPlan, task_group: ScanTaskGroup) -> Iterator[Open]:
    """The files that tasks open, in their order."""
    for task in task_group.tasks:
        yield from opens_for_positions(plan, task_group, task.position_deletes)
        if task.change is not None and task.change.is_partial:
            yield from opens_for_positions(plan, task_group, task.change.position_deletes)
        yield Open(task.file_path, task.file_size_in_bytes)


@dataclass(frozen=True, slots=True)
class _KeyProbe:
    """A set of deleted keys, and the paths of its key columns in a batch."""

    keys: EqualityKeySet
    paths: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class _Deletes:
    """The deletes of one file."""

    positions: PositionSet | None
    probes: Sequence[_KeyProbe]
    data_sequence_number: int

    def mask(self, read: PositionedBatch) -> _Mask | None:
        """Marks the deleted rows of a batch; None if there are no deletes."""
        deleted: _Mask | None = None
        if self.positions is not None:
            deleted = self.positions.mask(read.first_position, read.num_rows)
        for probe in self.probes:
            columns = [column_at(read.batch, path) for path in probe.paths]
            found = probe.keys.contains(columns, self.data_sequence_number)
            deleted = found if deleted is None else deleted | found
        return deleted

    def are_covered_by(self, before: _Deletes) -> bool:
        """Whether `before` certainly deletes all these rows, as far as known without reading."""
        if self.probes:
            return False
        if self.positions is None:
            return True
        known = before.positions
        return known is not None and self.positions.issubset(known)


def _read_task(
    plan: ReadPlan,
    task_group: ScanTaskGroup,
    task: FileScanTask,
    loaded: TaskKeys,
) -> Iterator[_Step]:
    """The rows of a task; None for each batch of the file without any."""
    spec = plan.specs[task.spec_id]
    row_filter = plan.row_filter
    if not task.contradicted:
        row_filter = residual(row_filter, spec, plan.table_schema, task.partition)
    if row_filter == FALSE:
        return
    output = OutputColumns.of(plan, task)
    groups = {index: task_group.equality_deletes[index] for index in loaded.sets}
    key_ids = {field_id for group in groups.values() for field_id in group.equality_ids}
    read_fields = _fields_to_read(
        output.stored_fields,
        (plan.table_schema, field_ids(row_filter)),
        (task_group.key_schema, frozenset(key_ids)),
    )
    request = ReadRequest(
        Schema(read_fields),
        identity_constants(spec, task.partition),
        row_filter,
        plan.batch_size,
    )

    def deletes_of(positions: Sequence[int], keys: Sequence[int]) -> _Deletes:
        probes = [
            _KeyProbe(
                loaded.sets[index],
                tuple(_path(read_fields, field_id) for field_id in groups[index].equality_ids),
            )
            for index in keys
            if index in loaded.sets
        ]
        found = [loaded.positions[index] for index in keys if index in loaded.positions]
        stored = load_positions(plan, task_group, task, positions)
        if found:
            stored = PositionSet.union([*found, *filter(None, [stored])])
        return _Deletes(stored or None, probes, task.data_sequence_number)

    deletes = deletes_of(task.position_deletes, task.equality_deletes)
    changing: _Deletes | None = None
    if task.change is not None and task.change.is_partial:
        changing = deletes_of(task.change.position_deletes, task.change.equality_deletes)
        if changing.are_covered_by(deletes):
            return
    keep_deleted = locate(plan.columns.fields, DELETED.field_id) is not None
    with open_task_file(plan, task) as reader:
        for read in reader.batches(request, task.start, task.length_to_read):
            changed = None if changing is None else changing.mask(read)
            if changing is not None and (changed is None or not changed.any()):
                yield None
                continue
            deleted = deletes.mask(read)
            kept = None if deleted is None or keep_deleted else ~deleted
            kept = _and(kept, changed)
            kept = _and(kept, _selected_rows(read.batch, row_filter, read_fields))
            if kept is not None and not kept.any():
                yield None
                continue
            batch = output.assemble(read, deleted)
            yield batch if kept is None or kept.all() else batch.filter(pa.array(kept))


def _fields_to_read(
    output_fields: Sequence[NestedField], *needed: tuple[Schema, frozenset[int]]
) -> tuple[NestedField, ...]:
    """Output columns first, then those that only the filter or the deletes need."""
    fields = list(output_fields)
    for schema, wanted in needed:
        absent = [field_id for field_id in wanted if locate(fields, field_id) is None]
        if absent:
            fields.extend(schema.select(absent).fields)
    return tuple(fields)


def _path(fields: Sequence[NestedField], field_id: int) -> tuple[int, ...]:
    path = locate(fields, field_id)
    assert path is not None, f"field {field_id} is read by construction"
    return path


def _selected_rows(
    batch: pa.RecordBatch, row_filter: Expr, fields: Sequence[NestedField]
) -> _Mask | None:
    if row_filter == TRUE:
        return None
    mask = filter_mask(
        row_filter, batch, lambda field_id: column_at(batch, _path(fields, field_id))
    )
    selected: _Mask = mask.to_numpy(zero_copy_only=False)
    return selected


def _and(left: _Mask | None, right: _Mask | None) -> _Mask | None:
    if left is None or right is None:
        return left if right is None else right
    return left & right
