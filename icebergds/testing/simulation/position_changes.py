"""Updates and merges rows by their positions, as statements of Spark do.

Python decides here what Spark decides there; planning, files and commits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from icebergds.api.table import Table
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.snapshot_commit import Committed
from icebergds.expr.nodes import TRUE
from icebergds.expr.sql import parse_filter
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.operations.read.planned_scan import plan_scan
from icebergds.operations.write.delta_commit import commit_delta
from icebergds.operations.write.isolation import isolation_of
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.position_changes import (
    PositionChange,
    RowChangeMode,
    plan_position_change,
)
from icebergds.spec.snapshot import MAIN_BRANCH
from icebergds.spec.table_properties import ROW_CHANGE_MODE
from icebergds.write.changes.position_delta import (
    FILE_COLUMN,
    POS_COLUMN,
    TARGET_COLUMN,
    WRITE_COLUMN,
)

_ROW_ID, _LAST_UPDATED = "_row_id", "_last_updated_sequence_number"

Values: TypeAlias = Mapping[str, Any]
Decision: TypeAlias = Callable[[Values], "Values | None"]
"""The new values of a row; None to leave it as it is."""


def begin_change(table: Table) -> LoadedTable:
    """The table as a statement reads it."""
    loaded = table._current().keeping_reads()
    table._state = loaded.state
    return loaded


def end_change(table: Table, committed: Committed | None) -> Committed | None:
    """Has the table see what a statement committed."""
    if committed is not None:
        table._state = committed.state
    return committed


def change_matching(
    table: Table,
    verb: str,
    decide: Decision,
    new_rows: Callable[[list[Values]], list[Values]] = lambda _: [],
    *,
    condition: str | None,
    branch: str,
    step: Mapping[str, str],
    options: Mapping[str, str],
) -> Committed | None:
    """Runs an UPDATE or MERGE in this process.

    Args:
        verb: `update` or `merge`.
        new_rows: the rows to insert, from all that were read.
        condition: the rows that the statement reads.
        step: entries of the snapshot's summary.
    """
    loaded = begin_change(table)
    metadata, state = loaded.metadata, loaded.state
    head = metadata.head_of(branch)
    lineage = [_ROW_ID] if metadata.format_version >= 3 else []
    names = [field.name for field in metadata.schema().fields]
    write = WriteOptions.of(loaded.address, options, step, branch=branch)
    row_filter = TRUE if condition is None else parse_filter(condition)
    on = branch if branch != MAIN_BRANCH and branch in metadata.refs else None
    wanted = [*names, *lineage, FILE_COLUMN, POS_COLUMN]
    scan = table.scan(condition, wanted, branch=on)
    files = plan_scan(state, scan._read_options(None), for_native=False).files
    found = scan.to_arrow().to_pylist()
    changes = list(_changes(found, decide, names, lineage))
    added = new_rows([{name: row[name] for name in names} for row in found])
    changes += [{**row, WRITE_COLUMN: True} for row in added]
    if not changes:
        return None
    change = PositionChange(
        RowChangeMode(ROW_CHANGE_MODE[verb].of(metadata.properties)),
        verb,
        None if head is None else head.snapshot_id,
        files,
        row_filter,
        isolation_of(write, loaded, verb),
    )
    columns = [*schema_to_arrow(metadata.schema())]
    incoming = pa.schema(
        [
            pa.field(FILE_COLUMN, pa.string()),
            pa.field(POS_COLUMN, pa.int64()),
            pa.field(WRITE_COLUMN, pa.bool_()),
            *(pa.field(column.name, column.type) for column in columns),
            *(pa.field(name, pa.int64()) for name in (_ROW_ID, _LAST_UPDATED) if lineage),
            pa.field(TARGET_COLUMN, pa.binary()),
        ]
    )
    planned = plan_position_change(loaded, write, change, incoming)
    targets = [{FILE_COLUMN: path, TARGET_COLUMN: it} for path, it in planned.targets.items()]
    rows = [*changes, *targets]
    arrays = [pa.array([row.get(f.name) for row in rows], f.type) for f in incoming]
    batch = pa.RecordBatch.from_arrays(arrays, schema=incoming)
    delta = planned.task([batch], partition_id=0, attempt_id=0)
    return end_change(table, commit_delta(planned.delta, [delta], loaded))


def _changes(
    found: list[dict[str, Any]], decide: Decision, names: list[str], lineage: list[str]
) -> Any:
    for row in found:
        values = decide({name: row[name] for name in names})
        if values is not None:
            place = {FILE_COLUMN: row[FILE_COLUMN], POS_COLUMN: row[POS_COLUMN]}
            kept = {name: row[name] for name in lineage}
            yield {**place, **values, **kept, WRITE_COLUMN: True}
