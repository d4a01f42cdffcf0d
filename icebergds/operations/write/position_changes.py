"""Changes of rows that are named by file and position: prepared, and committed.

By delete files where the table merges on read, or by files that replace those that hold the rows
where it copies on write. Changes of rows by key are prepared by `operations.write.key_changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from icebergds.catalog.address import TableAddress
from icebergds.commit.base import check_branch
from icebergds.commit.operations import TableOperations, TableState
from icebergds.commit.options import IsolationLevel
from icebergds.commit.retry import Change, commit_change
from icebergds.commit.rewrite_rows import RewriteRows
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.snapshot_commit import Action, Committed, commit_snapshot
from icebergds.commit.validation import Isolation
from icebergds.errors import (
    AlreadyCommittedError,
    CommitStateUnknownError,
    InvalidOptionError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.expr.bind import bind
from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.sql import parse_filter
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.io.fileio import FileIO
from icebergds.operations.write.append_overwrite import file_format_property, plan_rows
from icebergds.operations.write.cleanup import WRITE_ID, delete_files
from icebergds.operations.write.commit_options import commit_options
from icebergds.operations.write.copy_on_write import RewritePlan, write_rewritten
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.row_change_options import RowChangeOptions, WriteOperation
from icebergds.operations.write.row_counts import summary_of_counts
from icebergds.scan.plan.files import PlannedFile, pack_files, plan_files
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.manifest import DataFileRef, FileFormat
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.table_properties import (
    DEFAULT_FILE_FORMAT,
    DELETE_TARGET_FILE_SIZE_BYTES,
    DELETE_TARGET_FILE_SIZE_BYTES_DEFAULT,
    int_property,
)
from icebergds.spec.updates.requirements import AssertLastAssignedPartitionId
from icebergds.spec.updates.table_updates import AddPartitionSpec
from icebergds.write.changes.deltas import DeltaFiles, merge_deltas
from icebergds.write.changes.key_hashes import refuse_shared_keys
from icebergds.write.changes.position_delta import (
    DeleteTarget,
    PositionDeltaPlan,
    without_control_columns,
    write_position_delta,
)
from icebergds.write.rows.matching import plan_matching

DELETE_GRANULARITY = "write.delete.granularity"
DELETE_FILE_FORMAT = "write.delete.format.default"

_LINEAGE = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
# Files are read whole where they are rewritten.
_UNSPLIT = SplitOptions(split_size=2**62)


@dataclass(frozen=True, slots=True)
class PreparedDelta:
    """A change of rows that has been checked against its table, before anything is written.

    Attributes:
        write_id: what its snapshot and files are found by.
        io: the storage of the table.
        table_uuid: of the table that was checked.
        read_snapshot_id: what the change is based on; None where the branch had no snapshot.
        isolation_level: which concurrent commits it does not go together with.
        conflict_filter: what it looked at.
        new_spec: of its delete files, where the table is yet to be given it.
    """

    address: TableAddress
    options: WriteOptions
    write_id: str
    io: FileIO
    table_uuid: str | None
    read_snapshot_id: int | None
    isolation_level: IsolationLevel
    conflict_filter: Expr
    new_spec: PartitionSpec | None = None


DeltaTask: TypeAlias = Callable[..., DeltaFiles]
"""Called with batches and the keywords `partition_id` and `attempt_id`."""


def prepare_row_change(
    options: WriteOptions, change: RowChangeOptions, incoming: pa.Schema
) -> tuple[PreparedDelta, DeltaTask]:
    """Checks a change of rows by position against its table, and plans its tasks.

    Args:
        incoming: the Arrow schema of the batches that will come (`write.changes.position_delta`).

    Raises:
        NoSuchTableError: the table is not there.
        InvalidOptionError, InvalidFilterError: the options do not fit the table.
        InvalidDataError: the rows do not fit the table.
        UnsupportedFeatureError: the table's version knows no delete files, or it has what cannot
            be written.
        ValidationError: the snapshot whose rows are named is gone.
    """
    state = options.address.operations().refresh()
    check_branch(state, options.branch)
    metadata = state.metadata
    if change.read_schema_id not in (None, metadata.current_schema_id):
        raise ValidationError(
            f"table {state.name}: its schema was changed while this operation read it; load the "
            "table again and repeat the operation"
        )
    conflict_filter = _conflict_filter(options, change)
    bound = bind(conflict_filter, metadata.schema(), case_sensitive=False)
    snapshot = _read_snapshot(state, change)
    files = plan_files(state.io, metadata, snapshot, metadata.schema(), bound)
    schema = _written_schema(metadata)
    columns = without_control_columns(incoming)
    matching = plan_matching(
        columns if len(columns) else schema_to_arrow(schema), schema, table=state.name
    )
    write = plan_rows(options, state, matching)
    task: DeltaTask
    if change.operation is WriteOperation.REWRITE:
        read, task_group = _rewritten(state, schema, files)
        originals = {file.entry.data_file.file_path: file.entry.data_file for file in files}
        task = partial(write_rewritten, RewritePlan(write, read, task_group, originals))
    else:
        require_delete_files(state)
        task = partial(
            write_position_delta,
            PositionDeltaPlan(
                write,
                metadata.format_version,
                _granularity(metadata),
                {file.entry.data_file.file_path: _target(file) for file in files},
                metadata.specs_by_id,
                delete_file_format(metadata, write.file_format),
                delete_file_size(metadata),
            ),
        )
    prepared = PreparedDelta(
        options.address,
        options,
        write.operation_id,
        state.io,
        metadata.table_uuid,
        change.read_snapshot_id,
        IsolationLevel(options.isolation_level),
        conflict_filter,
    )
    return prepared, task


def commit_delta(prepared: PreparedDelta, parts: Iterable[DeltaFiles]) -> Committed | None:
    """Commits what the tasks did. If that fails, files are deleted.

    Gives None if they did nothing, or if the table has this idempotent write already.

    Raises:
        InvalidDataError: rows of one key were in two tasks; nothing was committed.
        CommitConflictError, ValidationError: others changed the table; nothing was committed.
        CommitStateUnknownError: whether it was committed is not known; nothing was deleted.
    """
    parts = tuple(parts)
    delta = merge_deltas(parts)
    if not (delta.all_files or delta.replaced):
        return None
    options = prepared.options
    change = options.row_change
    statement = None if change is None else change.statement
    counts = summary_of_counts(delta.counts, statement)
    summary = {**counts, WRITE_ID: prepared.write_id}
    try:
        keys = [part.keys for part in parts if part.keys is not None]
        refuse_shared_keys(keys, prepared.address.path)
        operations = prepared.address.operations()
        if prepared.new_spec is not None:
            _add_spec(operations, prepared.new_spec)
        return commit_snapshot(
            operations,
            _action(prepared, delta),
            commit_options(options, prepared.table_uuid, summary),
        )
    except CommitStateUnknownError:
        raise
    except AlreadyCommittedError:
        delete_files(prepared.io, delta.all_files)
        return None
    except Exception:
        delete_files(prepared.io, delta.all_files)
        raise


def require_delete_files(state: TableState, *, by_key: bool = False) -> None:
    """Refuses delete files for a table whose version does not know them.

    Args:
        by_key: of changes by key, for which there is no other way.

    Raises:
        UnsupportedFeatureError: it is of version 1.
    """
    version = state.metadata.format_version
    if version < 2:
        raise UnsupportedFeatureError(
            f"table {state.name} has format version {version}, which knows no delete files; "
            "upgrade it with load_table(...).upgrade(2)"
            + (
                ""
                if by_key
                else ", or set write.delete.mode, write.update.mode and write.merge.mode to "
                "copy-on-write"
            )
        )


def delete_file_format(metadata: TableMetadata, data_format: FileFormat) -> FileFormat:
    """The format of delete files; that of data files where the table does not say.

    Raises:
        InvalidOptionError: the table's property is none of the formats.
    """
    for name in (DELETE_FILE_FORMAT, DEFAULT_FILE_FORMAT):
        if name in metadata.properties:
            return file_format_property(name, metadata.properties[name])
    return data_format


def delete_file_size(metadata: TableMetadata) -> int:
    """The size at which delete files end, in bytes."""
    return int_property(
        metadata.properties, DELETE_TARGET_FILE_SIZE_BYTES, DELETE_TARGET_FILE_SIZE_BYTES_DEFAULT
    )


def _conflict_filter(options: WriteOptions, change: RowChangeOptions) -> Expr:
    if change.conflict_filter is None:
        return TRUE
    return parse_filter(change.conflict_filter, time_zone=options.time_zone)


def _read_snapshot(state: TableState, change: RowChangeOptions) -> Snapshot | None:
    if change.read_snapshot_id is None:
        return None
    snapshot = state.metadata.snapshot_by_id(change.read_snapshot_id)
    if snapshot is None:
        raise ValidationError(
            f"table {state.name}: snapshot {change.read_snapshot_id}, whose rows this operation "
            "changes, has expired since they were read; repeat the operation"
        )
    return snapshot


def _written_schema(metadata: TableMetadata) -> Schema:
    """The columns of new files: with those of Row Lineage from version 3 on."""
    schema = metadata.schema()
    if metadata.format_version < 3:
        return schema
    return Schema((*schema.fields, *_LINEAGE), schema.schema_id, schema.identifier_field_ids)


def _rewritten(
    state: TableState, schema: Schema, files: Sequence[PlannedFile]
) -> tuple[ReadPlan, ScanTaskGroup]:
    """How the rows are read that stay as they are."""
    metadata = state.metadata
    table_schema = metadata.schema()
    read = ReadPlan(
        io=state.io,
        columns=Schema((*schema.fields, POS), schema.schema_id),
        table_schema=table_schema,
        specs=metadata.specs_by_id,
        name_mapping=table_name_mapping(metadata),
    )
    task_groups = pack_files(files, metadata, table_schema, _UNSPLIT)
    assert len(task_groups) <= 1, "one split holds all files"
    return read, task_groups[0] if task_groups else ScanTaskGroup(())


def _target(file: PlannedFile) -> DeleteTarget:
    data_file = file.entry.data_file
    return DeleteTarget(
        DataFileRef(data_file.file_path, data_file.spec_id, data_file.partition),
        tuple(entry.data_file for entry in file.deletes.position_deletes),
    )


def _granularity(metadata: TableMetadata) -> str:
    text = metadata.properties.get(DELETE_GRANULARITY, "partition")
    if text.lower() not in ("file", "partition"):
        raise InvalidOptionError(
            f"table property {DELETE_GRANULARITY} = {text!r}: expected file or partition"
        )
    return text.lower()


def _add_spec(operations: TableOperations, spec: PartitionSpec) -> None:
    """Gives a table a partition spec under the id that files have been written with."""

    def has_spec(state: TableState) -> bool:
        return state.metadata.specs_by_id.get(spec.spec_id) == spec

    def produce(state: TableState) -> Change:
        metadata = state.metadata
        if spec.spec_id in metadata.specs_by_id or max(metadata.specs_by_id) + 1 != spec.spec_id:
            raise ValidationError(
                f"table {state.name}: its partition specs changed while rows were written for "
                f"spec {spec.spec_id}; repeat the operation"
            )
        unchanged = AssertLastAssignedPartitionId(metadata.last_partition_id)
        return Change([unchanged], [AddPartitionSpec(spec)])

    if not has_spec(operations.refresh()):
        commit_change(operations, produce, has_spec)


def _action(prepared: PreparedDelta, delta: DeltaFiles) -> Action:
    change = prepared.options.row_change
    assert change is not None, "only changes of rows come here"
    isolation = Isolation(prepared.isolation_level, prepared.read_snapshot_id)
    if change.operation is WriteOperation.REWRITE:
        return RewriteRows(
            delta.replaced, delta.files, isolation, prepared.conflict_filter, case_sensitive=False
        )
    return RowDelta(
        delta.files,
        delta.deletes,
        delta.replaced,
        delta.referenced,
        isolation,
        prepared.conflict_filter,
        case_sensitive=False,
    )
