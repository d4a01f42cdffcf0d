"""Writes whose tasks have run: what these hand over is committed, or goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from icebergds.commit.snapshot_commit import Committed
from icebergds.commit.transactions import STREAMING_EPOCH_ID, STREAMING_QUERY_ID, Transaction
from icebergds.spec.manifest import DataFile
from icebergds.table.failed_writes import delete_files, is_committed
from icebergds.table.row_changes import PreparedDelta, commit_delta
from icebergds.table.writing import PreparedWrite, commit_write
from icebergds.write.deltas import DeltaFiles

PreparedJob: TypeAlias = PreparedWrite | PreparedDelta
"""A write that has been checked against its table."""

TaskResult: TypeAlias = list[DataFile] | DeltaFiles
"""What a task hands over: data files of a `PreparedWrite`, or the files of a `PreparedDelta`."""

Task: TypeAlias = Callable[..., TaskResult]
"""Called with batches and the keywords `partition_id` and `attempt_id`."""


def commit_job(job: PreparedJob, results: Sequence[Any]) -> Committed | None:
    """Commits what the tasks of a job did; None where a change of rows did nothing.

    Errors are those of `commit_write` and `commit_delta`, which leave no files of theirs where
    nothing was committed for certain.
    """
    if isinstance(job, PreparedWrite):
        return commit_write(job, _files(results))
    return commit_delta(job, results)


def commit_batch(
    job: PreparedJob, results: Sequence[Any], query_id: str, batch_id: int
) -> Committed | None:
    """Commits a micro-batch of a streaming query; None where the table has it, or it had no rows.

    Errors are those of `commit_job`.
    """
    if not _files(results) and not (isinstance(job, PreparedWrite) and job.overwrite):
        return None
    options = job.options
    named = {STREAMING_QUERY_ID: query_id, STREAMING_EPOCH_ID: str(batch_id)}
    once = replace(
        options,
        transaction=Transaction(query_id, batch_id),
        fast_append=True,
        snapshot_properties={**options.snapshot_properties, **named},
    )
    return commit_job(replace(job, options=once), results)


def discard_job(job: PreparedJob, results: Sequence[Any]) -> None:
    """Deletes what the tasks of a job wrote, unless it was committed."""
    if not is_committed(job.address, job.write_id):
        delete_files(job.io, _files(results))


def _files(results: Iterable[TaskResult]) -> list[DataFile]:
    return [
        file
        for result in results
        for file in (result.all_files if isinstance(result, DeltaFiles) else result)
    ]
