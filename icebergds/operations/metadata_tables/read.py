"""Reads the tasks of metadata tables, in this process or in those of executors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.expr.bind import field_ids
from icebergds.expr.nodes import TRUE, Expr, and_
from icebergds.formats.arrow.filter import filter_mask
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.manifests.columns import EntryColumns, Int64s
from icebergds.operations.metadata_tables.file_rows import (
    entry_rows,
    innermost_ids,
    needed_statistics,
)
from icebergds.operations.metadata_tables.metadata_rows import Row, row_batches, rows_of_lists
from icebergds.operations.metadata_tables.partition_groups import partition_groups
from icebergds.operations.metadata_tables.plan import (
    entries_of_all,
    expecting,
    live_columns,
    metadata_tasks,
)
from icebergds.operations.metadata_tables.position_delete_rows import position_delete_rows
from icebergds.operations.metadata_tables.tasks import (
    AddUpPartitions,
    MetadataTablePlan,
    MetadataTask,
    ReadManifestLists,
    ReadManifests,
    ReadPositionDeletes,
    ReadyRows,
)
from icebergds.operations.read.options import ReadOptions
from icebergds.scan.projection import unified_partition_type
from icebergds.spec.manifest import FileContent, values_key
from icebergds.spec.schema import Schema
from icebergds.spec.types import StructType

_READERS = 4
_ENTRIES_AT_A_TIME = 10_000


def read_metadata_table(
    plan: MetadataTablePlan, options: ReadOptions, condition: Expr = TRUE
) -> pa.Table:
    """All rows, read in this process; errors are those of `read_metadata_task`.

    Args:
        condition: bound to the metadata table's schema; manifests without rows that meet it are
            not read.
    """
    pruned = replace(plan, row_filter=and_(plan.row_filter, condition))

    def read(task: MetadataTask) -> list[pa.RecordBatch]:
        return list(read_metadata_task(plan, task))

    with ThreadPoolExecutor(_READERS) as pool:
        parts = pool.map(read, metadata_tasks(pruned, options))
        batches = [batch for part in parts for batch in part]
    return pa.Table.from_batches(batches, schema_to_arrow(plan.columns))


def read_metadata_task(plan: MetadataTablePlan, task: MetadataTask) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in the Arrow types of `formats.arrow.types`.

    Raises:
        MissingFileError, CorruptFileError: a file is missing or damaged.
    """
    match task:
        case ReadManifests():
            yield from _entries(plan, task)
        case AddUpPartitions():
            yield from _matching(
                plan, partial(row_batches, _added_up(plan, task), plan.table.schema)
            )
        case ReadManifestLists():
            listed = rows_of_lists(plan.state, task.snapshots)
            yield from _matching(plan, partial(row_batches, listed, plan.table.schema))
        case ReadyRows(rows=rows):
            yield from _matching(plan, partial(row_batches, rows, plan.table.schema))
        case ReadPositionDeletes(files=files):
            for file in files:
                yield from _matching(plan, partial(position_delete_rows, plan, file))


def _entries(plan: MetadataTablePlan, task: ReadManifests) -> Iterator[pa.RecordBatch]:
    used = frozenset(innermost_ids(plan.columns.fields) | field_ids(plan.row_filter))
    stats_ids = needed_statistics(used, plan.table.metrics)
    ahead = expecting(plan, task.manifests)
    for manifest in task.manifests:
        columns = live_columns(ahead, manifest, stats_ids, used)
        rows = entry_rows(columns, plan.table, plan.columns, plan.row_filter)
        for start in range(0, rows.num_rows, _ENTRIES_AT_A_TIME):
            yield rows.slice(start, _ENTRIES_AT_A_TIME)


def _added_up(plan: MetadataTablePlan, task: AddUpPartitions) -> list[Row]:
    partition_type = unified_partition_type(plan.state.metadata, active_only=True)
    totals = _PartitionTotals(partition_type, plan.committed_ms)
    # With parts, tasks already run in parallel.
    ahead = expecting(plan, task.manifests) if plan.of_parts else plan
    no_ids: frozenset[int] = frozenset()
    manifests = (live_columns(ahead, manifest, no_ids, no_ids) for manifest in task.manifests)
    for columns in manifests if plan.of_parts else entries_of_all(plan, task.manifests, no_ids):
        totals.add(columns)
    return totals.parts(task.part) if plan.of_parts else totals.rows()


def _matching(
    plan: MetadataTablePlan, make: Callable[[Schema], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The rows that match the filter, whose columns are also built but not returned."""
    if plan.row_filter == TRUE:
        yield from make(plan.columns)
        return
    compared_ids = field_ids(plan.row_filter)
    compared = Schema(
        tuple(
            field
            for field in plan.table.schema.fields
            if compared_ids & set(Schema((field,)).fields_by_id)
        )
    )
    shown = len(plan.columns.fields)
    names = [field.name for field in compared.fields]
    for batch in make(Schema((*plan.columns.fields, *compared.fields))):
        rows = pa.RecordBatch.from_arrays(batch.columns[shown:], names)
        mask = filter_mask(plan.row_filter, rows, partial(_innermost, rows, compared))
        yield batch.filter(mask).select(list(range(shown)))


def _innermost(rows: pa.RecordBatch, fields: Schema, field_id: int) -> pa.Array:
    top, *inner = fields.paths_by_id[field_id]
    column = rows.column(top)
    for name in inner:
        column = pc.struct_field(column, column.type.get_field_index(name))
    return column


_SUMS = 7


@dataclass(slots=True)
class _Partition:
    """The totals of a partition's files.

    Attributes:
        known_fields: how many of the fields its partition spec has.
        sums: rows and files of data, their bytes, rows and files of position deletes, and of
            equality deletes.
        updated_ms: when the newest file was added; -1 if its snapshot has expired.
    """

    values: tuple[Any, ...]
    known_fields: int
    spec_id: int
    sums: Int64s
    updated_ms: int
    snapshot_id: int


class _PartitionTotals:
    """Adds up files by their partitions.

    Args:
        partition_type: fields of all partition specs. Partitions of different specs count as one if
            they have the same values in these, and equally many of them, as in Java Iceberg.
        committed_ms: when each snapshot was committed, by its id.
    """

    def __init__(self, partition_type: StructType, committed_ms: Mapping[int, int]) -> None:
        self._type, self._committed_ms = partition_type, committed_ms
        self._found: dict[tuple[Hashable, ...], _Partition] = {}

    def add(self, columns: EntryColumns) -> None:
        """Adds the files of a manifest."""
        if not len(columns):
            return
        found = partition_groups(columns, self._type, self._committed_ms)
        sums = _sums(columns, found.of_entries, len(found.values))
        for values, own, updated_ms, snapshot_id in zip(
            found.values, sums, found.updated_ms, found.snapshot_ids, strict=True
        ):
            spec = found.known_fields, columns.spec_id
            self._put(_Partition(values, *spec, own, updated_ms, snapshot_id))

    def rows(self) -> list[Row]:
        """The rows, in the order of `metadata_table_schema`."""
        return [self._row(part) for part in self._found.values()]

    def parts(self, part: int) -> list[Row]:
        """The rows of one of several parts, in the order of `partition_parts_schema`."""
        # Texts of keys are the same in all processes.
        return [(*self._row(found), repr(key).encode(), part) for key, found in self._found.items()]

    def _put(self, part: _Partition) -> None:
        known = self._found.setdefault((part.known_fields, *values_key(part.values)), part)
        if known is part:
            return
        known.sums = known.sums + part.sums
        if part.updated_ms > known.updated_ms:
            known.spec_id, known.updated_ms = part.spec_id, part.updated_ms
            known.snapshot_id = part.snapshot_id

    def _row(self, part: _Partition) -> Row:
        is_known = part.updated_ms >= 0
        return (
            *((part.values, part.spec_id) if self._type.fields else ()),
            *part.sums.tolist(),
            part.updated_ms * 1000 if is_known else None,
            part.snapshot_id if is_known else None,
        )


def _sums(columns: EntryColumns, groups: Int64s, count: int) -> npt.NDArray[np.int64]:
    sums = np.zeros((count, _SUMS), np.int64)
    for content, at in (
        (FileContent.DATA, 0),
        (FileContent.POSITION_DELETES, 3),
        (FileContent.EQUALITY_DELETES, 5),
    ):
        is_of_content = columns.content == content.value
        np.add.at(sums[:, at], groups[is_of_content], columns.record_count[is_of_content])
        np.add.at(sums[:, at + 1], groups[is_of_content], 1)
    is_data = columns.content == FileContent.DATA.value
    np.add.at(sums[:, 2], groups[is_data], columns.file_size_in_bytes[is_data])
    return sums
