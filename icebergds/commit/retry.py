"""Commits that are tried again on fresh metadata when another one came first.

Only conflicts are retried. A commit whose outcome is unknown is looked for in the table: found it
has succeeded, not found it stays unknown, for it may still land.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from icebergds.commit.operations import TableOperations, TableState
from icebergds.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    IcebergError,
    NotFoundError,
)
from icebergds.spec import table_properties as names
from icebergds.spec.table_properties import int_property
from icebergds.spec.updates.requirements import TableRequirement
from icebergds.spec.updates.table_updates import TableUpdate


@dataclass(frozen=True, slots=True)
class Change:
    """What an attempt commits."""

    requirements: Sequence[TableRequirement]
    updates: Sequence[TableUpdate]


def commit_change(
    operations: TableOperations,
    produce: Callable[[TableState], Change],
    is_committed: Callable[[TableState], bool],
) -> TableState:
    """Commits what `produce` makes of the table as it is, again after each conflict.

    Args:
        produce: called once an attempt, with fresh metadata. What it raises ends the commit.
        is_committed: whether a table that was loaded later has the change.

    Returns:
        The table with the change.

    Raises:
        CommitConflictError: other commits kept coming first, as often and as long as the table's
            properties `commit.retry.*` allow.
        CommitStateUnknownError: whether the change landed is not known. Every other error means
            that it did not.
    """
    state = operations.refresh()
    waits = _retries(state.metadata.properties).waits()
    # Read before the commit: a property that is malformed must not hide its outcome.
    checks = _status_checks(state.metadata.properties)
    while True:
        change = produce(state)
        try:
            return operations.commit(state, change.requirements, change.updates)
        except CommitConflictError:
            wait = next(waits, None)
            time.sleep(wait or 0)
            # A catalog that repeated a request by itself may have met its own commit, so the
            # conflict is only certain once the table has been looked at.
            try:
                state = operations.refresh()
            except NotFoundError:
                raise
            except Exception as error:
                return _found_later(operations, checks, is_committed, error)
            if is_committed(state):
                return state
            if wait is None:
                raise
        except IcebergError as error:
            if not error.outcome_unknown:
                raise
            return _found_later(operations, checks, is_committed, error)
        except Exception as error:
            return _found_later(operations, checks, is_committed, error)


def _found_later(
    operations: TableOperations,
    checks: _Backoff,
    is_committed: Callable[[TableState], bool],
    error: Exception,
) -> TableState:
    """The table if it turns out to have the change."""
    for wait in chain((0.0,), checks.waits()):
        time.sleep(wait)
        try:
            state = operations.refresh()
        except Exception:
            continue
        if is_committed(state):
            return state
    raise CommitStateUnknownError(
        f"table {operations.name}: whether the commit landed is not known ({error}); look at the "
        "table's newest snapshots before you write the same again. No files were deleted"
    ) from error


@dataclass(frozen=True, slots=True)
class _Backoff:
    """How often and after which waits something is tried again."""

    retries: int
    min_wait_ms: int
    max_wait_ms: int
    total_ms: int

    def waits(self) -> Iterator[float]:
        """Seconds to wait before each further try: doubled each time, with jitter."""
        deadline = time.monotonic() + self.total_ms / 1000
        wait_ms = self.min_wait_ms
        for _ in range(self.retries):
            # The jitter parts writers that met once.
            wait = min(wait_ms, self.max_wait_ms) * random.uniform(1.0, 1.5) / 1000
            if time.monotonic() + wait > deadline:
                return
            yield wait
            wait_ms *= 2


def _retries(properties: Mapping[str, str]) -> _Backoff:
    return _Backoff(
        int_property(properties, names.COMMIT_NUM_RETRIES, names.COMMIT_NUM_RETRIES_DEFAULT),
        int_property(
            properties, names.COMMIT_MIN_RETRY_WAIT_MS, names.COMMIT_MIN_RETRY_WAIT_MS_DEFAULT
        ),
        int_property(
            properties, names.COMMIT_MAX_RETRY_WAIT_MS, names.COMMIT_MAX_RETRY_WAIT_MS_DEFAULT
        ),
        int_property(
            properties, names.COMMIT_TOTAL_RETRY_TIME_MS, names.COMMIT_TOTAL_RETRY_TIME_MS_DEFAULT
        ),
    )


def _status_checks(properties: Mapping[str, str]) -> _Backoff:
    return _Backoff(
        int_property(
            properties, names.COMMIT_NUM_STATUS_CHECKS, names.COMMIT_NUM_STATUS_CHECKS_DEFAULT
        ),
        int_property(
            properties,
            names.COMMIT_STATUS_CHECKS_MIN_WAIT_MS,
            names.COMMIT_STATUS_CHECKS_MIN_WAIT_MS_DEFAULT,
        ),
        int_property(
            properties,
            names.COMMIT_STATUS_CHECKS_MAX_WAIT_MS,
            names.COMMIT_STATUS_CHECKS_MAX_WAIT_MS_DEFAULT,
        ),
        int_property(
            properties,
            names.COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS,
            names.COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS_DEFAULT,
        ),
    )
