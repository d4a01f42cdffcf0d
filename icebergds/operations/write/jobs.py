"""Commits or deletes the files of finished tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.commit.idempotent_writes import (
    STREAMING_EPOCH_ID,
    STREAMING_QUERY_ID,
    IdempotentWrite,
)
from icebergds.commit.merge_manifests import can_merge
from icebergds.commit.operations import Change, TableState
from icebergds.commit.options import CommitOptions
from icebergds.commit.retry import commit_change, require_same_table
from icebergds.commit.rewrite_manifests import MergeManifests
from icebergds.commit.snapshot_commit import Committed, commit_snapshot
from icebergds.errors import CommitConflictError, ValidationError
from icebergds.operations.runner import Runner
from icebergds.operations.write.append_overwrite import PreparedWrite, commit_write
from icebergds.operations.write.cleanup import delete_files, delete_files_of_write, is_committed
from icebergds.operations.write.delta_commit import PreparedDelta, commit_delta
from icebergds.operations.write.resolve_keys import FoundRows
from icebergds.spec.manifest import DataFile, ManifestContent
from icebergds.write.changes.deltas import DeltaFiles

PreparedJob: TypeAlias = PreparedWrite | PreparedDelta
"""A write that has been checked against its table."""

TaskResult: TypeAlias = list[DataFile] | DeltaFiles
"""What a task returns: data files for a `PreparedWrite`, or the files of a `PreparedDelta`."""

Task: TypeAlias = Callable[..., TaskResult]
"""Called with batches and the keywords `partition_id` and `attempt_id`."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A write that is ready to run.

    Attributes:
        job: what any process needs to commit it.
        task: the function that each task runs.
        table: the base of the commit, in this process.
    """

    job: PreparedJob
    task: Task
    table: LoadedTable


def with_catalog_properties(job: PreparedJob, properties: Mapping[str, str]) -> PreparedJob:
    """The job with other properties of its catalog; empty ones for a job that tasks may see."""
    address = replace(job.address, catalog_properties=properties)
    options = replace(job.options, address=address)
    if isinstance(job, PreparedWrite) and job.new_table is not None:
        job = replace(job, new_table=replace(job.new_table, address=address))
    return replace(job, address=address, options=options)


def commit_job(
    job: PreparedJob,
    results: Sequence[Any],
    table: LoadedTable | None = None,
    runner: Runner | None = None,
    found: FoundRows | None = None,
) -> Committed | None:
    """Commits the results of a job's tasks; returns None if there was nothing to commit.

    Args:
        table: the table of the `PlannedJob`, in the process that planned it.
        runner, found: as for `commit_delta`.

    Errors are those of `commit_write` and `commit_delta`, which delete the files if it is certain
    that nothing was committed.
    """
    if isinstance(job, PreparedWrite):
        return commit_write(job, written_files(results), table)
    return commit_delta(job, results, table, runner, found)


def commit_batch(
    job: PreparedJob,
    results: Sequence[Any],
    query_id: str,
    batch_id: int,
    *,
    may_miss_batches: bool,
    table: LoadedTable | None = None,
) -> Committed | None:
    """Commits a micro-batch of a streaming query.

    Appends keep the manifests of the table; enough small ones are merged in a commit after that of
    the batch.

    Returns:
        None if the table already has the batch, or the batch has no rows.

    Args:
        may_miss_batches: commit even if the table has no earlier batch of the query.
        table: as this process loaded it last, for the first attempt; loaded again by default, or if
            the job belongs to another one.

    Raises:
        ValidationError: the table has no earlier batch of the query, or as for `commit_job`.

    Other errors are those of `commit_job`.
    """
    options = job.options
    follows = batch_id > 0 and not may_miss_batches
    batch = IdempotentWrite(query_id, batch_id, follows, is_batch=True)
    if not written_files(results) and not (isinstance(job, PreparedWrite) and _is_needed(job)):
        if batch_id == 0:
            _record_empty_batch(job, batch)
        return None
    named = {STREAMING_QUERY_ID: query_id, STREAMING_EPOCH_ID: str(batch_id)}
    once = replace(
        options,
        idempotent_write=batch,
        fast_append=True,
        snapshot_properties={**options.snapshot_properties, **named},
    )
    if table is not None and table.metadata.table_uuid != job.table_uuid:
        table = None
    committed = commit_job(replace(job, options=once), results, table)
    if committed is not None:
        _merge_manifests_after(committed, job.address, options.branch)
    return committed


def _is_needed(job: PreparedWrite) -> bool:
    """Whether a write changes the table even without rows."""
    return job.overwrite or job.new_table is not None


def _record_empty_batch(job: PreparedJob, batch: IdempotentWrite) -> None:
    """Records an empty first batch in the table, so that later batches find an earlier batch."""
    branch = job.options.branch

    def is_recorded(state: TableState) -> bool:
        return batch.is_committed(state.metadata, branch)

    def produce(state: TableState) -> Change:
        return Change([], batch.property_updates(state.metadata, branch, None))

    table = load_for_write(job.address)
    require_same_table(job.table_uuid, table.state)
    if not is_recorded(table.state):
        commit_change(table.operations, produce, is_recorded, table.state)


def discard_unreported(planned: PlannedJob) -> int:
    """Deletes files of a job that failed before its tasks could report them. Never raises.

    Returns:
        How many were found.
    """
    job = planned.job
    return delete_files_of_write(job.io, job.data_location, job.write_id)


def discard_job(job: PreparedJob, results: Sequence[Any]) -> None:
    """Deletes the files that a job's tasks reported, unless the job was committed."""
    if not is_committed(job.address, job.write_id):
        delete_files(job.io, written_files(results))


def written_files(results: Iterable[TaskResult]) -> list[DataFile]:
    """The data and delete files of tasks."""
    return [
        file
        for result in results
        for file in (result.all_files if isinstance(result, DeltaFiles) else result)
    ]


def _merge_manifests_after(
    committed: Committed, address: TableAddress, branch: str
) -> Committed | None:
    """Merges the manifests of a branch if a commit left enough of them. Never raises.

    Micro-batches leave the manifests as they are; this limits their number. The commit stands,
    whatever happens here; the next one tries again.

    Returns:
        None if nothing was merged.
    """
    try:
        return _merge(committed, address, branch)
    except (ValidationError, CommitConflictError) as error:
        # If several streams find the same manifests, one of them merges them.
        _LOG.info("manifests of table %s were not merged: %s", committed.state.name, error)
        return None
    except Exception as error:
        _LOG.warning("manifests of table %s were not merged: %s", committed.state.name, error)
        return None


def _merge(committed: Committed, address: TableAddress, branch: str) -> Committed | None:
    metadata = committed.state.metadata
    kinds = (
        [manifest for manifest in committed.manifests if manifest.content is content]
        for content in ManifestContent
    )
    if not any(can_merge(metadata.properties, manifests) for manifests in kinds):
        return None
    options = CommitOptions(branch, table_uuid=metadata.table_uuid)
    return commit_snapshot(address.operations(), MergeManifests(), options, committed.state)
