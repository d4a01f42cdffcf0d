"""Reads the tasks of metadata tables, in this process or in those of executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.expr.bind import field_ids
from icebergds.expr.nodes import TRUE
from icebergds.formats.arrow.filter import filter_mask
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.operations.metadata_tables.file_rows import (
    entry_rows,
    innermost_ids,
    needed_statistics,
)
from icebergds.operations.metadata_tables.metadata_rows import Row, manifest_row
from icebergds.operations.metadata_tables.partition_rows import PartitionTotals
from icebergds.operations.metadata_tables.plan import (
    entries_of_all,
    expecting,
    live_columns,
    metadata_tasks,
)
from icebergds.operations.metadata_tables.position_delete_rows import position_delete_rows
from icebergds.operations.metadata_tables.ready_rows import row_batches
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
from icebergds.spec.schema import Schema

_READERS = 4
_ENTRIES_AT_A_TIME = 10_000


def read_metadata_table(plan: MetadataTablePlan, options: ReadOptions) -> pa.Table:
    """All rows, read in this process; errors are those of `read_metadata_task`."""

    def read(task: MetadataTask) -> list[pa.RecordBatch]:
        return list(read_metadata_task(plan, task))

    with ThreadPoolExecutor(_READERS) as pool:
        parts = pool.map(read, metadata_tasks(plan, options))
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
            listed = _listed(plan, task)
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
    totals = PartitionTotals(partition_type, plan.committed_ms)
    # Of parts, tasks already work side by side.
    ahead = expecting(plan, task.manifests) if plan.of_parts else plan
    no_ids: frozenset[int] = frozenset()
    manifests = (live_columns(ahead, manifest, no_ids, no_ids) for manifest in task.manifests)
    for columns in manifests if plan.of_parts else entries_of_all(plan, task.manifests, no_ids):
        totals.add(columns)
    return totals.parts(task.part) if plan.of_parts else totals.rows()


def _listed(plan: MetadataTablePlan, task: ReadManifestLists) -> Iterator[Row]:
    for snapshot in task.snapshots:
        for manifest in read_snapshot_manifests(plan.state.io, snapshot):
            yield (
                *manifest_row(plan.state.metadata, manifest),
                snapshot.snapshot_id,
                manifest.key_metadata,
            )


def _matching(
    plan: MetadataTablePlan, make: Callable[[Schema], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The rows that match the filter, whose columns are made too, but not returned."""
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
