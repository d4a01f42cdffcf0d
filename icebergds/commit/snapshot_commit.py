"""Commits an action as a new snapshot: validated, retried, cleaned up after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from icebergds.commit.base import CommitBase, commit_base
from icebergds.commit.new_snapshot import NewSnapshot, snapshot_change
from icebergds.commit.operations import TableOperations, TableState
from icebergds.commit.options import CommitOptions
from icebergds.commit.retry import Change, commit_change
from icebergds.commit.workspace import Workspace
from icebergds.errors import CommitStateUnknownError, ValidationError
from icebergds.spec.snapshot import Snapshot


class Action(Protocol):
    """What is done to a table, described once and applied to its state at each attempt."""

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Validates against the table as it is, and writes the manifests of the new snapshot.

        Raises:
            ValidationError: a concurrent commit changed what the operation had read.
        """
        ...


@dataclass(frozen=True, slots=True)
class Committed:
    """A snapshot that is in a table, and the table as it was found with it."""

    state: TableState
    snapshot: Snapshot


def commit_snapshot(
    operations: TableOperations, action: Action, options: CommitOptions | None = None
) -> Committed:
    """Does an action to a table, in one atomic commit.

    When it raises, nothing was committed and what it wrote is deleted again, unless it raises
    CommitStateUnknownError or the process is being stopped: then everything stays. Data files are
    the caller's in every case.

    Raises:
        AlreadyCommittedError: the branch has the idempotent write of the options.
        CommitConflictError: other commits kept coming first.
        ValidationError: a concurrent commit changed what the operation had read, or the table is
            another one of the same name.
        CommitStateUnknownError: whether the commit landed is not known.
        InvalidDataError, InvalidOptionError, InvalidFilterError: the action does not fit the table.
    """
    options = options or CommitOptions()
    attempts = _Attempts(action, options)
    try:
        state = commit_change(operations, attempts.produce, attempts.is_in)
    except CommitStateUnknownError:
        raise
    except Exception:
        if attempts.work is not None:
            attempts.work.delete_all()
        raise
    assert attempts.work is not None
    assert attempts.snapshot is not None
    found = state.metadata.snapshot_by_id(attempts.work.snapshot_id)
    if found is None:
        # The catalog shows another state already, or still: which files are used is not certain.
        return Committed(state, attempts.snapshot)
    attempts.work.delete_unused(found.manifest_list)
    return Committed(state, found)


class _Attempts:
    """The attempts of one commit, which share their files."""

    def __init__(self, action: Action, options: CommitOptions) -> None:
        self._action = action
        self._options = options
        self._table_uuid = options.table_uuid
        self.work: Workspace | None = None
        self.snapshot: Snapshot | None = None

    def produce(self, state: TableState) -> Change:
        """What the next attempt commits."""
        self._refuse_other_table(state)
        idempotent_write, branch = self._options.idempotent_write, self._options.branch
        if idempotent_write is not None:
            idempotent_write.validate(state.metadata, branch, state.name)
        if self.work is None:
            self.work = Workspace(state.io, state.metadata)
        base = commit_base(state, branch)
        new = self._action.produce(self.work, base)
        change, self.snapshot = snapshot_change(self.work, base, new, self._options)
        return change

    def is_in(self, state: TableState) -> bool:
        """Whether a table has the snapshot."""
        return self.work is not None and self.work.snapshot_id in state.metadata.snapshots_by_id

    def _refuse_other_table(self, state: TableState) -> None:
        found = state.metadata.table_uuid
        if self._table_uuid is not None and found != self._table_uuid:
            raise ValidationError(
                f"table {state.name} was dropped and made again while this was written: its UUID "
                f"is {found}, expected {self._table_uuid}; read the table again and repeat the "
                "operation"
            )
        self._table_uuid = found
