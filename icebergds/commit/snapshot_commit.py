"""Commits an action as a new snapshot: validates, retries, cleans up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from icebergds.commit.base import CommitBase, commit_base
from icebergds.commit.new_snapshot import NewSnapshot, snapshot_change
from icebergds.commit.operations import Change, TableOperations, TableState
from icebergds.commit.options import CommitOptions
from icebergds.commit.retry import commit_change, require_same_table
from icebergds.commit.staging import StagedOperations
from icebergds.commit.workspace import Workspace
from icebergds.encryption.key_metadata import data_key_length
from icebergds.errors import CommitStateUnknownError, ValidationError
from icebergds.interrupts import interrupts_held
from icebergds.spec.manifest import ManifestFile
from icebergds.spec.snapshot import Snapshot


class Action(Protocol):
    """A change of a table, applied at each attempt to the table as last loaded."""

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        """Validates against the base and writes the new snapshot's manifests.

        Raises:
            ValidationError: a concurrent commit changed what the operation had read.
        """
        ...


def depends_on_rows(action: Action) -> bool:
    """Whether an action was computed from rows of the table; true unless it says otherwise."""
    return bool(getattr(action, "depends_on_rows", True))


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed snapshot, and the table's state with it.

    Attributes:
        manifests: the manifests of the snapshot.
    """

    state: TableState
    snapshot: Snapshot
    manifests: Sequence[ManifestFile]


def commit_snapshot(
    operations: TableOperations,
    action: Action,
    options: CommitOptions | None = None,
    base: TableState | None = None,
) -> Committed:
    """Commits an action to a table in one atomic commit.

    If it raises, nothing was committed, and the manifests and manifest lists that it wrote are
    deleted; except on CommitStateUnknownError or if the process is being killed: then all files
    stay. Data files and delete files are always left to the caller.

    Args:
        base: the table as loaded for this action, for the first attempt; loaded by default.

    Raises:
        AlreadyCommittedError: the branch has the idempotent write of the options.
        CommitConflictError: all retries lost against other commits.
        ValidationError: a concurrent commit changed what the operation had read, or the table was
            re-created under the same name.
        CommitStateUnknownError: whether the commit succeeded is not known.
        InvalidDataError, InvalidOptionError, InvalidFilterError: the action does not fit the table.
    """
    attempts = SnapshotAttempts(action, options or CommitOptions())
    state = commit_attempts(operations, attempts, base, depends_on_rows=depends_on_rows(action))
    assert attempts.work is not None
    assert attempts.snapshot is not None
    found = state.metadata.snapshot_by_id(attempts.work.snapshot_id)
    return Committed(state, found or attempts.snapshot, attempts.manifests)


class Attempts(Protocol):
    """The attempts of one commit."""

    def produce(self, state: TableState) -> Change:
        """The change that the next attempt commits; what it raises ends the commit."""
        ...

    def is_in(self, state: TableState) -> bool:
        """Whether the table has the change."""
        ...

    def settle(self, state: TableState | None) -> None:
        """Deletes files that are not used, given the table after the commit; None: it failed."""
        ...


def commit_attempts(
    operations: TableOperations,
    attempts: Attempts,
    base: TableState | None,
    *,
    depends_on_rows: bool,
) -> TableState:
    """Commits what attempts produce, or stages it; errors are those of `commit_snapshot`.

    Args:
        depends_on_rows: whether it is computed from rows of the table.
    """
    with interrupts_held():
        try:
            if isinstance(operations, StagedOperations):
                return operations.stage(
                    attempts.produce, depends_on_rows=depends_on_rows, settle=attempts.settle
                )
            state = commit_change(operations, attempts.produce, attempts.is_in, base)
        except CommitStateUnknownError:
            raise
        except (Exception, KeyboardInterrupt):
            attempts.settle(None)
            raise
        attempts.settle(state)
        return state


class SnapshotAttempts:
    """The attempts to commit an action, which share a workspace."""

    def __init__(self, action: Action, options: CommitOptions) -> None:
        self._action = action
        self._options = options
        self._table_uuid = options.table_uuid
        self.work: Workspace | None = None
        self.snapshot: Snapshot | None = None
        self.manifests: Sequence[ManifestFile] = ()

    def produce(self, state: TableState) -> Change:
        """The change that the next attempt commits."""
        require_same_table(self._table_uuid, state)
        self._table_uuid = state.metadata.table_uuid
        idempotent_write, branch = self._options.idempotent_write, self._options.branch
        if idempotent_write is not None:
            idempotent_write.validate(state.metadata, branch, state.name)
        key_length = data_key_length(state.metadata.properties)
        if self.work is None:
            self.work = Workspace(state.io, state.metadata, key_length)
        elif (self.work.key_length is None) != (key_length is None):
            raise ValidationError(
                f"table {state.name} was encrypted during this operation, which has written plain "
                "files; nothing was committed. Repeat it"
            )
        base = commit_base(state, branch)
        new = self._action.produce(self.work, base)
        change, self.snapshot = snapshot_change(self.work, base, new, self._options)
        self.work.settle()
        self.manifests = new.manifests
        return change

    def settle(self, state: TableState | None) -> None:
        """Deletes files that are not used, given the table after the commit; None: it failed."""
        if self.work is None:
            return
        if state is None:
            self.work.delete_all()
            return
        if (settle := getattr(self._action, "settle", None)) is not None:
            settle()
        found = state.metadata.snapshot_by_id(self.work.snapshot_id)
        # Without it, the state is a newer or older one, which does not show which files are used.
        if found is not None:
            self.work.delete_unused(found.manifest_list)

    def is_in(self, state: TableState) -> bool:
        """Whether the table has the snapshot."""
        return self.work is not None and self.work.snapshot_id in state.metadata.snapshots_by_id
