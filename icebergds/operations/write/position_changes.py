"""Plans changes of rows by position: delete files, or rewritten data files.

Changes of rows by key are in `operations.write.key_changes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import pyarrow as pa

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.commit.options import IsolationLevel
from icebergds.errors import UnsupportedFeatureError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.operations.write.append_overwrite import plan_rows
from icebergds.operations.write.commit_options import check_target_branch
from icebergds.operations.write.copy_on_write import RewritePlan, rewrite_targets, write_rewritten
from icebergds.operations.write.delta_commit import DeltaTask, PreparedDelta
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.table_settings import delete_file_format, require_delete_files
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.plan.task_groups import pack_files
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.manifest import DataFileRef
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.reserved import LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import (
    DELETE_GRANULARITY,
    DELETE_TARGET_FILE_SIZE_BYTES,
    ROW_CHANGE_MODE,
)
from icebergds.write.changes.position_delta import (
    CONTROL_COLUMNS,
    DeleteTarget,
    PositionDeltaPlan,
    pack_target,
    without_control_columns,
    write_position_delta,
)
from icebergds.write.rows.matching import plan_matching

_LINEAGE = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
RESERVED_COLUMNS = frozenset({*CONTROL_COLUMNS, *(field.name for field in _LINEAGE)})
"""Names of columns, in lower case, that changes of rows use for metadata."""

# A rewrite reads each file whole.
_UNSPLIT = SplitOptions(split_size=2**62)


class RowChangeMode(StrEnum):
    """How rows change: a value of `write.delete.mode`, `write.update.mode`, `write.merge.mode`."""

    COPY_ON_WRITE = "copy-on-write"
    MERGE_ON_READ = "merge-on-read"


def row_change_mode(state: TableState, kind: str) -> RowChangeMode:
    """The table's mode for a statement.

    Args:
        kind: `delete`, `update` or `merge`.

    Raises:
        InvalidOptionError: the table property is neither of the two modes.
        UnsupportedFeatureError: the mode needs delete files, which the format version does not
            support; or a column has the name of a control column.
    """
    metadata = state.metadata
    for field in metadata.schema().fields:
        if field.name.lower() in RESERVED_COLUMNS:
            raise UnsupportedFeatureError(
                f"table {state.name} has a column {field.name!r}, a name that row-level "
                "changes reserve for metadata; rename the column"
            )
    found = RowChangeMode(ROW_CHANGE_MODE[kind].of(metadata.properties))
    if found is RowChangeMode.MERGE_ON_READ:
        require_delete_files(state)
    return found


@dataclass(frozen=True, slots=True)
class PositionChange:
    """A change of rows that are identified by file and position.

    Attributes:
        statement: the statement, such as `merge`, for the snapshot summary.
        snapshot_id: the snapshot that the rows are in; None if the branch has none.
        files: the data files that may have rows to change, with their deletes.
        conflict_filter: the rows that the statement read.
        isolation_level: applies unless the write options set one.
    """

    mode: RowChangeMode
    statement: str
    snapshot_id: int | None
    files: Sequence[PlannedFile]
    conflict_filter: Expr = TRUE
    isolation_level: IsolationLevel = IsolationLevel.SERIALIZABLE


@dataclass(frozen=True, slots=True)
class PlannedPositionChange:
    """A checked change, ready to run.

    Attributes:
        delta: how to commit what the tasks write.
        task: what each task does with its rows.
        targets: what tasks need to know about each file that may change, by path. It travels with
            the rows (`write.changes.target_rows`).
    """

    delta: PreparedDelta
    task: DeltaTask
    targets: Mapping[str, bytes]


def plan_position_change(
    table: LoadedTable, options: WriteOptions, change: PositionChange, incoming: pa.Schema
) -> PlannedPositionChange:
    """Checks a change of rows by position against its table, and plans its tasks.

    Args:
        incoming: the Arrow schema of the batches that will come (`write.changes.position_delta`).

    Raises:
        InvalidOptionError: the options do not fit the table.
        InvalidDataError: the rows do not fit the table.
        UnsupportedFeatureError: the table's version does not support delete files, or the table
            has a feature that cannot be written.
    """
    state, metadata = table.state, table.metadata
    check_target_branch(state, options)
    schema = written_schema(metadata)
    columns = without_control_columns(incoming)
    matching = plan_matching(
        columns if len(columns) else schema_to_arrow(schema),
        schema,
        table=state.name,
        time_zone=options.time_zone,
    )
    write = plan_rows(options, state, matching)
    task: DeltaTask
    targets: Iterable[tuple[str, Any]]
    if change.mode is RowChangeMode.COPY_ON_WRITE:
        group = _whole_files(table, change.files)
        read = _read_plan(table, schema)
        plan = RewritePlan(write, read, group.equality_deletes, group.key_schema)
        task = partial(write_rewritten, plan)
        targets = rewrite_targets(group, (file.entry.data_file for file in change.files))
    else:
        require_delete_files(state)
        task = partial(
            write_position_delta,
            PositionDeltaPlan(
                write,
                metadata.format_version,
                DELETE_GRANULARITY.of(metadata.properties),
                metadata.specs_by_id,
                delete_file_format(metadata, write.file_format),
                DELETE_TARGET_FILE_SIZE_BYTES.of(metadata.properties),
            ),
        )
        targets = _delete_targets(change.files)
    prepared = PreparedDelta(
        options.address,
        options,
        write.operation_id,
        state.io,
        metadata.table_uuid,
        write.locations.data_location,
        change.snapshot_id,
        IsolationLevel(options.isolation_level or change.isolation_level),
        change.conflict_filter,
        statement=change.statement,
        rewrites=change.mode is RowChangeMode.COPY_ON_WRITE,
        had_ids=_has_row_ids(metadata, change.snapshot_id),
    )
    packed = {path: pack_target(path, target) for path, target in targets}
    return PlannedPositionChange(prepared, task, packed)


def _has_row_ids(metadata: TableMetadata, snapshot_id: int | None) -> bool:
    """Whether all rows of a snapshot have ids; those from before an upgrade to version 3 have none.

    Those of no snapshot need none.
    """
    read = None if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
    return read is None or read.first_row_id is not None


def _delete_targets(files: Iterable[PlannedFile]) -> Iterator[tuple[str, DeleteTarget]]:
    for file in files:
        data_file = file.entry.data_file
        ref = DataFileRef(data_file.file_path, data_file.spec_id, data_file.partition)
        deletes = tuple(entry.data_file for entry in file.deletes.position_deletes)
        yield data_file.file_path, DeleteTarget(ref, deletes)


def written_schema(metadata: TableMetadata) -> Schema:
    """The columns of rewritten files, including those of Row Lineage from version 3 on."""
    schema = metadata.schema()
    if metadata.format_version < 3:
        return schema
    return Schema((*schema.fields, *_LINEAGE), schema.schema_id, schema.identifier_field_ids)


def _read_plan(table: LoadedTable, schema: Schema) -> ReadPlan:
    """The plan for reading the rows that do not change."""
    metadata = table.metadata
    return ReadPlan(
        io=table.io,
        columns=Schema((*schema.fields, POS), schema.schema_id),
        table_schema=metadata.schema(),
        specs=metadata.specs_by_id,
        name_mapping=table_name_mapping(metadata),
    )


def _whole_files(table: LoadedTable, files: Sequence[PlannedFile]) -> ScanTaskGroup:
    metadata = table.metadata
    groups = list(pack_files(files, metadata, metadata.schema(), _UNSPLIT))
    assert len(groups) <= 1, "one split holds all files"
    return groups[0] if groups else ScanTaskGroup(())
