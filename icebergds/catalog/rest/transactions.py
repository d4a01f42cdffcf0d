"""Commits to several tables in one request (REST catalog specification: transactions/commit).

Servers may commit to one table after another, and stop at one that conflicts. So, regardless of the
answer, each table is checked for its part.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from icebergds.catalog.rest.failures import RestError, unknown_outcome
from icebergds.catalog.rest.operations import (
    PreparedCommit,
    RestTableOperations,
    has_snapshots,
    is_in_effect,
)
from icebergds.commit.operations import TableCommit, TableState
from icebergds.commit.transaction_tables import all_or_none
from icebergds.errors import CommitConflictError, IcebergError, NoSuchTableError

_LOG = logging.getLogger(__name__)
_NO_CONTENT = 204
# Statuses of requests that the server did not process.
_UNHEARD = (401, 419, 429)


def commit_tables(
    commits: Sequence[tuple[RestTableOperations, TableCommit]],
) -> list[TableState]:
    """Commits to all tables or to none.

    Args:
        commits: to tables of one catalog, each with the table's operations.

    Returns:
        The tables after the commit, in the same order.

    Raises:
        CommitConflictError: a requirement does not hold.
        NoSuchTableError: one of the tables does not exist.
        CommitStateUnknownError: it is unknown whether they were committed.
        StorageError: the server refused it, or was not reached.
    """
    prepared = [
        (operations, each, operations.prepare(each.base, each.requirements, each.updates))
        for operations, each in commits
    ]
    parts = [_Part(operations, each, p) for operations, each, p in prepared if p is not None]
    states = iter(_send(parts) if parts else ())
    return [each.base if part is None else next(states) for _, each, part in prepared]


@dataclass(frozen=True, slots=True)
class _Part:
    """The commit to one of the tables."""

    operations: RestTableOperations
    commit: TableCommit
    prepared: PreparedCommit

    def is_in(self, state: TableState) -> bool:
        return is_in_effect(self.prepared.updates, self.commit.base, state)


def _send(parts: Sequence[_Part]) -> list[TableState]:
    session = parts[0].operations.session
    body = {
        "table-changes": [
            part.operations.body(part.prepared.requirements, part.prepared.updates)
            for part in parts
        ]
    }
    try:
        answer = session.change("POST", session.routes.transaction(), body)
    except RestError as error:
        if error.maybe_done:
            return _looked_for(parts, error)
        heard = error.status is not None and error.status not in _UNHEARD
        if heard and (states := _found(parts, error)) is not None:
            # A proxy sent it twice, and it conflicts with itself.
            return states
        raise _refused(parts, error) from None
    if answer.status != _NO_CONTENT:
        reason = f"the server answered {answer.status}, expected {_NO_CONTENT}"
        return _looked_for(parts, RestError(reason, maybe_done=True))
    return _committed(parts)


def _committed(parts: Sequence[_Part]) -> list[TableState]:
    """The tables after the server has confirmed the commit.

    Raises:
        CommitStateUnknownError: a table does not have the new snapshot.
    """
    after = [_after(part) for part in parts]
    lacking = [state.name for state, is_whole in after if not is_whole]
    if lacking:
        reason = f"the server confirmed it, but the new snapshot is not in {', '.join(lacking)}"
        raise unknown_outcome(_what(parts), RestError(reason, maybe_done=True))
    return [state for state, _ in after]


def _after(part: _Part) -> tuple[TableState, bool]:
    """The table after a commit, and whether it has the new snapshots.

    If the table or its snapshots cannot be loaded, returns the state that the commit implies.
    """
    try:
        state = part.operations.refresh()
        return state, has_snapshots(part.prepared.updates, state)
    except Exception as error:
        _LOG.warning("table %s: committed, but not loaded since: %s", part.operations.name, error)
        return replace(part.commit.base, metadata=part.prepared.changed), True


def _looked_for(parts: Sequence[_Part], error: RestError) -> list[TableState]:
    """The tables, if they have the updates.

    Raises:
        CommitStateUnknownError: they do not have them, and may still get them.
    """
    states = _found(parts, error)
    if states is None:
        raise unknown_outcome(_what(parts), error)
    return states


def _found(parts: Sequence[_Part], error: RestError) -> list[TableState] | None:
    """The tables, if they have the updates.

    Raises:
        CommitStateUnknownError: they cannot be checked, or only some of them have the updates.
    """
    found, states = [], []
    for part in parts:
        try:
            state = part.operations.refresh_whole()
        except NoSuchTableError:
            found.append((part.commit.base, False))
            continue
        except Exception as failure:
            raise unknown_outcome(_what(parts), error, failure) from None
        states.append(state)
        found.append((state, part.is_in(state)))
    return states if all_or_none(_what(parts), found) else None


def _refused(parts: Sequence[_Part], error: RestError) -> IcebergError:
    why = error.explanation or error.reason
    match error.status:
        case 404:
            for part in parts:
                session = part.operations.session
                session.seen.forget(session.routes.table(part.operations.identifier))
            return NoSuchTableError(
                f"{_what(parts)}: one of the tables does not exist in its catalog: {why}"
            )
        case 409:
            return CommitConflictError(f"{_what(parts)}: another commit came first: {why}")
        case _:
            return error


def _what(parts: Sequence[_Part]) -> str:
    return "commit to tables " + ", ".join(part.operations.name for part in parts)
