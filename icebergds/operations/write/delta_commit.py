"""Commits row-level changes: delete files, new rows, and rewritten data files, in one snapshot."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.commit.data_files import RewriteRows
from icebergds.commit.operations import Change, TableState
from icebergds.commit.options import IsolationLevel, NothingToCommitError
from icebergds.commit.retry import commit_change, require_same_table
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.snapshot_commit import Action, Committed, commit_snapshot
from icebergds.commit.staging import clean_up_if_abandoned
from icebergds.commit.validation import Isolation
from icebergds.errors import AlreadyCommittedError, CommitStateUnknownError, ValidationError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.interrupts import interrupts_held
from icebergds.io.fileio import FileIO
from icebergds.operations.runner import Runner
from icebergds.operations.write.cleanup import WRITE_ID, delete_files
from icebergds.operations.write.commit_options import commit_options
from icebergds.operations.write.key_resolver import KeyResolver
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.resolve_keys import (
    DeleteResolvedKeys,
    FoundRows,
    resolves,
    upsert_mode,
)
from icebergds.operations.write.row_counts import KEYS_DELETED_BY, summary_of_counts
from icebergds.scan.read.deleted_keys import KeyHashing
from icebergds.spec.manifest import DataFile, FileContent
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.updates.requirements import AssertLastAssignedPartitionId
from icebergds.spec.updates.table_updates import AddPartitionSpec
from icebergds.write.changes.deltas import (
    NO_HASHES,
    DeltaFiles,
    merge_deltas,
    refuse_shared_keys,
)

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
        key_spec: the partition spec of equality deletes, if rows are changed by key.
        had_ids: whether the rows that the change was computed from have row ids.
        key_hashing: how keys are hashed, in the order of the key columns.
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
    key_spec: PartitionSpec | None = None
    had_ids: bool = True
    key_hashing: KeyHashing | None = None


DeltaTask: TypeAlias = Callable[..., DeltaFiles]
"""Called with batches and the keywords `partition_id` and `attempt_id`."""


def commit_delta(
    prepared: PreparedDelta,
    parts: Iterable[DeltaFiles],
    table: LoadedTable | None = None,
    runner: Runner | None = None,
    found: FoundRows | None = None,
) -> Committed | None:
    """Commits the results of the tasks. If nothing was committed, their files are deleted.

    Returns None if there are no changes, or if the table already has this idempotent write.

    Args:
        table: the table that the change was prepared on, for the first attempt; loaded again by
            default.
        runner: finds rows by key if there is much to read; None reads in this process.
        found: what `find_rows` has found by the keys of `parts`; called here by default.

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
    resolver = None if found is None else found.resolver
    committed: Committed | None = None
    try:
        keys = [part.keys for part in parts if part.keys is not None]
        refuse_shared_keys(keys, prepared.address.path)
        table = table or load_for_write(prepared.address)
        require_same_table(prepared.table_uuid, table.state)
        if (once := prepared.options.idempotent_write) is not None:
            # Before rows are looked up.
            once.validate(table.metadata, prepared.options.branch, table.name)
        clean_up_if_abandoned(table.operations, lambda: delete_files(prepared.io, delta.all_files))
        action = _action(prepared, delta)
        if isinstance(action, RowDelta):
            table = table.keeping_reads() if found is None else table
            by_key = [file for file in delta.deletes if _is_by_key(file)]
            hashing = prepared.key_hashing
            if hashing is not None and delta.deleted_keys is not None:
                # Streams plan the tasks and the commit in different processes.
                hashing = replace(hashing, seed=delta.deleted_keys.seed)
            found = found or find_rows(prepared, by_key, table, runner, hashing)
            resolver = found.resolver
            if resolver is not None:
                summary = {WRITE_ID: prepared.write_id}
                positions = tuple(file for file in delta.deletes if not _is_by_key(file))
                action = DeleteResolvedKeys(
                    resolver,
                    replace(action, deletes=positions),
                    delta.counts,
                    NO_HASHES if delta.deleted_keys is None else delta.deleted_keys.hashes,
                    found.reason,
                    found.replaced,
                )
                clean_up_if_abandoned(table.operations, partial(resolver.clean_up, ()))
            elif found.reason:
                summary[KEYS_DELETED_BY] = found.reason
        if prepared.new_spec is not None and resolver is None:
            table = _with_spec(table, prepared.new_spec)
        options = commit_options(prepared.options, prepared.table_uuid, summary)
        # Ctrl-C that comes when it is committed raises afterwards.
        with interrupts_held():
            committed = commit_snapshot(table.operations, action, options, table.state)
    except CommitStateUnknownError:
        raise
    except (AlreadyCommittedError, NothingToCommitError):
        discard_delta(prepared, delta, resolver)
        return None
    except (Exception, KeyboardInterrupt) as error:
        if committed is None:
            discard_delta(prepared, delta, resolver, error)
        raise
    if prepared.deletes_are_global and resolver is None and any(map(_is_by_key, delta.deletes)):
        _warn_of_global_deletes(committed.state)
    return committed


def find_rows(
    prepared: PreparedDelta,
    keys: Sequence[DataFile],
    table: LoadedTable,
    runner: Runner | None,
    hashing: KeyHashing | None = None,
) -> FoundRows:
    """Chooses how a change by key deletes rows, and finds these rows if their ids are needed.

    Args:
        keys: equality deletes of the keys.
        table: as the change was prepared on; keeps the manifests that are read for the commit.
        runner: as for `commit_delta`.
        hashing: of the keys; with ids of rows if new rows get those of the rows they replace.

    Raises:
        InvalidOptionError: rows are to be deleted by position, which would read too much.
        CorruptFileError, MissingFileError: a file of the table is damaged or missing.
    """
    change, branch = prepared.options.row_change, prepared.options.branch
    if change is None or prepared.key_spec is None or not keys:
        return FoundRows()
    resolver = KeyResolver(
        table,
        keys,
        prepared.key_spec,
        write_id=prepared.write_id,
        data_location=prepared.data_location,
        runner=runner,
        hashing=hashing,
    )
    mode = upsert_mode(table.metadata, change.mode)
    is_resolved, why = resolves(resolver, mode, branch, change.resolve_limit)
    reason = f"{'positions' if is_resolved else 'equality-deletes'}: {why}"
    _LOG.info("table %s: keys are deleted by %s", table.name, reason)
    if not is_resolved:
        return FoundRows(reason=reason)
    try:
        with_row_ids = hashing is not None and hashing.with_row_ids
        replaced = resolver.replaced(branch) if with_row_ids else None
    except BaseException:
        resolver.clean_up(())
        raise
    return FoundRows(resolver, reason, replaced)


def _is_by_key(file: DataFile) -> bool:
    return file.content is FileContent.EQUALITY_DELETES


def discard_delta(
    prepared: PreparedDelta,
    delta: DeltaFiles,
    resolver: KeyResolver | None,
    error: BaseException | None = None,
) -> None:
    """Deletes the files of a change that was not committed. Never raises."""
    delete_files(prepared.io, delta.all_files, error)
    if resolver is not None:
        resolver.clean_up(())


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
            delta.replaced,
            delta.files,
            isolation,
            prepared.conflict_filter,
            case_sensitive=False,
            had_ids=prepared.had_ids,
        )
    return RowDelta(
        delta.files,
        delta.deletes,
        delta.replaced,
        delta.referenced,
        isolation,
        prepared.conflict_filter,
        case_sensitive=False,
        had_ids=prepared.had_ids,
    )
