"""Retries commits on fresh metadata after conflicts.

Only conflicts are retried, and only on the same table: not on one that was re-created under its
name. After an unknown outcome, the table is checked: if it has the change, the commit has
succeeded; otherwise the outcome stays unknown, because the commit may still land.

Ctrl-C waits for the outcome of an attempt: KeyboardInterrupt comes before an attempt, or after the
commit has succeeded. What deletes files after a failure must hold Ctrl-C back as well.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Protocol

from icebergds.commit.operations import Change, TableOperations, TableState
from icebergds.commit.staging import StagedOperations
from icebergds.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    IcebergError,
    MissingFileError,
    NotFoundError,
    StorageError,
    ValidationError,
)
from icebergds.interrupts import check_stopped, interrupts_held, interrupts_released, pause
from icebergds.metrics import CommitReport, commit_metrics
from icebergds.reporting import committed
from icebergds.spec import table_properties as names
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.updates.table_updates import AddSnapshot

_LOG = logging.getLogger(__name__)


class CommitTarget(Protocol):
    """The tables that a commit changes together: one, or several."""

    @property
    def name(self) -> str:
        """The tables in messages, such as `table lake.db.t`."""
        ...

    def refresh(self) -> Sequence[TableState]:
        """The tables as they are now. Raises NoSuchTableError."""
        ...

    def commit(
        self, bases: Sequence[TableState], changes: Sequence[Change]
    ) -> Sequence[TableState]:
        """Commits a change of each table; outcomes are those of `TableOperations.commit`."""
        ...


def commit_change(
    operations: TableOperations,
    produce: Callable[[TableState], Change],
    is_committed: Callable[[TableState], bool],
    base: TableState | None = None,
) -> TableState:
    """Commits the change that `produce` returns; after a conflict, tries again.

    In a transaction, the change is staged.

    Args:
        produce: called once per attempt, with the metadata to build on; its errors end the commit.
        is_committed: whether a table loaded later has the change.
        base: the table as loaded for this change, for the first attempt; loaded by default. If
            others have committed since, that attempt is repeated at once and is not a retry.

    Returns:
        The table with the change.

    Raises:
        CommitConflictError: all retries that the table properties `commit.retry.*` allow lost
            against other commits.
        ValidationError: the table was dropped and re-created meanwhile.
        CommitStateUnknownError: whether the change was committed is not known. All other errors
            mean that it was not.
        StorageError: the storage or the catalog's database failed.
    """
    if isinstance(operations, StagedOperations):
        return operations.stage(produce)
    (committed,) = commit_changes(
        _OneTable(operations),
        lambda states: [produce(state) for state in states],
        lambda states: all(is_committed(state) for state in states),
        None if base is None else [base],
    )
    return committed


def commit_changes(
    target: CommitTarget,
    produce: Callable[[Sequence[TableState]], Sequence[Change]],
    is_committed: Callable[[Sequence[TableState]], bool],
    bases: Sequence[TableState] | None = None,
) -> Sequence[TableState]:
    """Commits the changes that `produce` returns; after a conflict, tries again.

    The table that allows the fewest retries sets their number.

    Args:
        is_committed: whether tables loaded later have the changes; raises CommitStateUnknownError
            if that cannot be determined.

    Other arguments and errors are those of `commit_change`.
    """
    try:
        with interrupts_held():
            states = _commit_changes(target, produce, is_committed, bases)
            committed()
            return states
    except StorageError as error:
        error.add_outcome(f"nothing was committed to {target.name}")
        raise


@dataclass(frozen=True, slots=True)
class _OneTable:
    """Implements `CommitTarget` for one table."""

    operations: TableOperations

    @property
    def name(self) -> str:
        return f"table {self.operations.name}"

    def refresh(self) -> list[TableState]:
        return [self.operations.refresh()]

    def commit(self, bases: Sequence[TableState], changes: Sequence[Change]) -> list[TableState]:
        return [
            self.operations.commit(base, change.requirements, change.updates)
            for base, change in zip(bases, changes, strict=True)
        ]


def _commit_changes(
    target: CommitTarget,
    produce: Callable[[Sequence[TableState]], Sequence[Change]],
    is_committed: Callable[[Sequence[TableState]], bool],
    bases: Sequence[TableState] | None,
) -> Sequence[TableState]:
    started, attempt = time.perf_counter(), 0
    with interrupts_released():
        states = target.refresh() if bases is None else bases
    uuids = [state.metadata.table_uuid for state in states]
    may_be_old = bases is not None
    waits = min(map(_retries, _properties(states)), key=_number_of_retries).waits()
    # Parsed before the commit: a malformed property must not hide the outcome.
    checks = max(map(_status_checks, _properties(states)), key=_number_of_retries)
    while True:
        check_stopped()
        try:
            with interrupts_released():
                changes = produce(states)
        except MissingFileError:
            # Maintenance may have deleted manifests of the base since it was loaded.
            if not may_be_old:
                raise
            states, may_be_old = target.refresh(), False
            _require_same_tables(uuids, states)
            continue
        attempt += 1
        try:
            states = target.commit(states, changes)
            _tell(target.name, states, changes, attempt, started)
            return states
        except CommitConflictError as conflict:
            wait, may_be_old = 0.0 if may_be_old else next(waits, None), False
            _log_conflict(target.name, attempt, conflict, wait)
            pause(wait or 0)
            # A catalog client that repeated a request may conflict with its own commit: check
            # the table before retrying.
            try:
                states = target.refresh()
            except NotFoundError:
                raise
            except Exception as error:
                return _check_status(target, uuids, checks, is_committed, error)
            _require_same_tables(uuids, states)
            if is_committed(states):
                _tell(target.name, states, changes, attempt, started)
                return states
            if wait is None:
                raise CommitConflictError(
                    f"{conflict}; repeat it, or raise the table's property "
                    f"{names.COMMIT_NUM_RETRIES}"
                ) from conflict
        except IcebergError as error:
            if not error.outcome_unknown:
                raise
            return _check_status(target, uuids, checks, is_committed, error)
        except Exception as error:
            return _check_status(target, uuids, checks, is_committed, error)
        except KeyboardInterrupt as interrupt:
            # Not by a signal, which is held back, but raised in the thread by some notebook.
            raise _unknown(target, interrupt) from interrupt


def _check_status(
    target: CommitTarget,
    uuids: Sequence[str | None],
    checks: _Backoff,
    is_committed: Callable[[Sequence[TableState]], bool],
    error: Exception,
) -> Sequence[TableState]:
    """Returns the tables if they have the changes after all.

    Raises:
        CommitStateUnknownError: no check found the changes.
    """
    _LOG.warning(
        "%s: it is not known whether the commit succeeded (%s); looking for it", target.name, error
    )
    for wait in chain((0.0,), checks.waits()):
        pause(wait)
        try:
            states = target.refresh()
            _require_same_tables(uuids, states)
            found = is_committed(states)
        except Exception as failure:
            _LOG.info("%s: it could not be looked for: %s", target.name, failure)
            continue
        if found:
            _LOG.info("%s: the commit had succeeded", target.name)
            return states
    raise _unknown(target, error) from error


def _unknown(target: CommitTarget, error: BaseException) -> CommitStateUnknownError:
    why = str(error) or type(error).__name__
    return CommitStateUnknownError(
        f"{target.name}: it is not known whether the commit succeeded ({why}); look at the newest "
        "snapshots before you repeat the write. No files were deleted"
    )


def _require_same_tables(uuids: Sequence[str | None], states: Sequence[TableState]) -> None:
    for uuid, state in zip(uuids, states, strict=True):
        require_same_table(uuid, state)


def _tell(
    what: str,
    states: Sequence[TableState],
    changes: Sequence[Change],
    attempt: int,
    started: float,
) -> None:
    """Logs and reports a commit."""
    duration = time.perf_counter() - started
    _log_commit(what, changes, attempt, duration)
    for state, change in zip(states, changes, strict=True):
        for update in change.updates:
            if isinstance(update, AddSnapshot):
                state.report(partial(_report, state.name, update.snapshot, attempt, duration))


def _report(table: str, snapshot: Snapshot, attempts: int, duration: float) -> CommitReport:
    return CommitReport(
        table,
        snapshot.snapshot_id,
        snapshot.sequence_number,
        snapshot.operation or "",
        commit_metrics(snapshot.summary, attempts),
        duration,
    )


def _log_commit(what: str, changes: Sequence[Change], attempt: int, duration: float) -> None:
    if not _LOG.isEnabledFor(logging.INFO):
        return
    updates = [update for change in changes for update in change.updates]
    snapshots = [u.snapshot for u in updates if isinstance(u, AddSnapshot)]
    added = [f"{s.operation} as snapshot {s.snapshot_id}" for s in snapshots]
    _LOG.info(
        "%s: committed %s in attempt %d, after %.0f ms",
        what,
        ", ".join(added or [type(update).__name__ for update in updates]),
        attempt,
        1000 * duration,
    )


def _log_conflict(
    what: str, attempt: int, conflict: CommitConflictError, wait: float | None
) -> None:
    what_next = "that was the last" if wait is None else f"the next follows in {1000 * wait:.0f} ms"
    _LOG.info("%s: attempt %d to commit failed (%s); %s", what, attempt, conflict, what_next)


def _properties(states: Sequence[TableState]) -> list[Mapping[str, str]]:
    return [state.metadata.properties for state in states]


def _number_of_retries(backoff: _Backoff) -> int:
    return backoff.retries


@dataclass(frozen=True, slots=True)
class _Backoff:
    """How often, and after which waits, to try again."""

    retries: int
    min_wait_ms: int
    max_wait_ms: int
    total_ms: int

    def waits(self) -> Iterator[float]:
        """Seconds to wait before each further try: exponential, with jitter."""
        deadline = time.monotonic() + self.total_ms / 1000
        wait_ms = self.min_wait_ms
        for _ in range(self.retries):
            # Jitter keeps writers that conflicted once from conflicting again.
            wait = min(wait_ms, self.max_wait_ms) * random.uniform(1.0, 1.5) / 1000
            if time.monotonic() + wait > deadline:
                return
            yield wait
            wait_ms *= 2


def _retries(properties: Mapping[str, str]) -> _Backoff:
    return _Backoff(
        names.COMMIT_NUM_RETRIES.of(properties),
        names.COMMIT_MIN_RETRY_WAIT_MS.of(properties),
        names.COMMIT_MAX_RETRY_WAIT_MS.of(properties),
        names.COMMIT_TOTAL_RETRY_TIME_MS.of(properties),
    )


def _status_checks(properties: Mapping[str, str]) -> _Backoff:
    return _Backoff(
        names.COMMIT_NUM_STATUS_CHECKS.of(properties),
        names.COMMIT_STATUS_CHECKS_MIN_WAIT_MS.of(properties),
        names.COMMIT_STATUS_CHECKS_MAX_WAIT_MS.of(properties),
        names.COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS.of(properties),
    )


def require_same_table(uuid: str | None, state: TableState) -> None:
    """Checks that a table was not dropped and re-created under its name.

    Args:
        uuid: the UUID of the table that the operation began with; None if it has none.

    Raises:
        ValidationError: the table has another UUID.
    """
    found = state.metadata.table_uuid
    if uuid is not None and found != uuid:
        raise ValidationError(
            f"table {state.name} was dropped and re-created during this operation: its UUID is "
            f"{found}, expected {uuid}; read the table again and repeat the operation"
        )
