"""Commits row-level changes: delete files, new rows, and rewritten data files, in one snapshot."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.commit.data_files import RewriteRows
from icebergds.commit.operations import Change, TableState
from icebergds.commit.options import IsolationLevel
from icebergds.commit.retry import commit_change, require_same_table
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.snapshot_commit import Action, Committed, commit_snapshot
from icebergds.commit.staging import clean_up_if_abandoned
from icebergds.commit.validation import Isolation
from icebergds.errors import AlreadyCommittedError, CommitStateUnknownError, ValidationError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.io.fileio import FileIO
from icebergds.operations.write.cleanup import WRITE_ID, delete_files
from icebergds.operations.write.commit_options import commit_options
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.row_counts import summary_of_counts
from icebergds.spec.manifest import FileContent
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.updates.requirements import AssertLastAssignedPartitionId
from icebergds.spec.updates.table_updates import AddPartitionSpec
from icebergds.write.changes.deltas import DeltaFiles, merge_deltas, refuse_shared_keys

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedDelta:
    """A row-level change, checked against its table before anything is written.

    Attributes:
        write_id: the id in the snapshot's summary and in file names.
        io: the table's storage.
        table_uuid: the UUID of the table that was checked.
        data_location: the directory of new files.
        read_snapshot_id: the snapshot that the change is based on; None if the branch had none.
        isolation_level: which concurrent commits make it fail.
        conflict_filter: the rows that the operation read.
        new_spec: the spec of its delete files, if the table does not have it yet.
        deletes_are_global: whether equality deletes apply to all partitions of the table.
        statement: such as `merge`, for the snapshot summary.
        rewrites: whether data files are rewritten; otherwise delete files are added.
    """

    address: TableAddress
    options: WriteOptions
    write_id: str
    io: FileIO
    table_uuid: str | None
    data_location: str
    read_snapshot_id: int | None
    isolation_level: IsolationLevel
    conflict_filter: Expr = TRUE
    new_spec: PartitionSpec | None = None
    deletes_are_global: bool = False
    statement: str | None = None
    rewrites: bool = False


DeltaTask: TypeAlias = Callable[..., DeltaFiles]
"""Called with batches and the keywords `partition_id` and `attempt_id`."""


def commit_delta(
    prepared: PreparedDelta, parts: Iterable[DeltaFiles], table: LoadedTable | None = None
) -> Committed | None:
    """Commits the results of the tasks. If nothing was committed, their files are deleted.

    Returns None if there are no changes, or if the table already has this idempotent write.

    Args:
        table: the table that the change was prepared on, for the first attempt; loaded again by
            default.

    Raises:
        InvalidDataError: rows of one key were in two tasks; nothing was committed.
        CommitConflictError, ValidationError: concurrent commits conflict; nothing was committed.
        CommitStateUnknownError: it is not known whether it was committed; nothing was deleted.
    """
    parts = tuple(parts)
    delta = merge_deltas(parts)
    if not (delta.all_files or delta.replaced):
        return None
    counts = summary_of_counts(delta.counts, prepared.statement)
    summary = {**counts, WRITE_ID: prepared.write_id}
    try:
        keys = [part.keys for part in parts if part.keys is not None]
        refuse_shared_keys(keys, prepared.address.path)
        table = table or load_for_write(prepared.address)
        require_same_table(prepared.table_uuid, table.state)
        if prepared.new_spec is not None:
            table = _with_spec(table, prepared.new_spec)
        clean_up_if_abandoned(table.operations, lambda: delete_files(prepared.io, delta.all_files))
        committed = commit_snapshot(
            table.operations,
            _action(prepared, delta),
            commit_options(prepared.options, prepared.table_uuid, summary),
            table.state,
        )
    except CommitStateUnknownError:
        raise
    except AlreadyCommittedError:
        delete_files(prepared.io, delta.all_files)
        return None
    except Exception as error:
        delete_files(prepared.io, delta.all_files, error)
        raise
    has_keys = any(file.content is FileContent.EQUALITY_DELETES for file in delta.deletes)
    if prepared.deletes_are_global and has_keys:
        _warn_of_global_deletes(committed.state)
    return committed


def _warn_of_global_deletes(state: TableState) -> None:
    # Warns at the commit, because a streaming query plans each batch twice.
    schema, sources = state.metadata.schema(), state.metadata.spec().source_ids
    _LOG.warning(
        "table %s: this change wrote global equality deletes, which readers compare with the rows "
        "of every partition. To limit deletes to partitions, include the source columns of the "
        "partition spec (%s) in the keys, if rows never change them, and rewrite data files of "
        "older partition specs",
        state.name,
        ", ".join(sorted(str(schema.find_name(source)) for source in sources)),
    )


def _with_spec(table: LoadedTable, spec: PartitionSpec) -> LoadedTable:
    """Adds a partition spec to the table, under the id that the files were written with."""

    def has_spec(state: TableState) -> bool:
        return state.metadata.specs_by_id.get(spec.spec_id) == spec

    def produce(state: TableState) -> Change:
        metadata = state.metadata
        if spec.spec_id in metadata.specs_by_id or max(metadata.specs_by_id) + 1 != spec.spec_id:
            raise ValidationError(
                f"table {state.name}: a partition spec was added while rows were written for "
                f"spec {spec.spec_id}; repeat the operation"
            )
        unchanged = AssertLastAssignedPartitionId(metadata.last_partition_id)
        return Change([unchanged], [AddPartitionSpec(spec)])

    if has_spec(table.state):
        return table
    return table.at(commit_change(table.operations, produce, has_spec, table.state))


def _action(prepared: PreparedDelta, delta: DeltaFiles) -> Action:
    isolation = Isolation(prepared.isolation_level, prepared.read_snapshot_id)
    if prepared.rewrites:
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
