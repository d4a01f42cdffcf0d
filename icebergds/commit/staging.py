"""Collects the commits of a transaction, each of which sees those before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from icebergds.commit.operations import Change, TableOperations, TableState
from icebergds.errors import MissingFileError, ValidationError
from icebergds.spec.updates.apply_updates import apply_updates
from icebergds.spec.updates.requirements import TableRequirement, check_requirements
from icebergds.spec.updates.table_updates import AddSnapshot, TableUpdate
from icebergds.spec.values.dates import now_ms


@dataclass(frozen=True, slots=True)
class StagedStep:
    """A commit that waits for the transaction.

    Attributes:
        produce: makes the change again on another state of the table.
        change: as made on the state of the transaction.
        depends_on_rows: whether the change was computed from rows of the table, so that it holds
            only as long as nobody else changes them.
        settle: called once, with the table after the transaction, or None if it failed.
    """

    produce: Callable[[TableState], Change]
    change: Change
    depends_on_rows: bool
    settle: Callable[[TableState | None], None]


@dataclass(frozen=True, slots=True)
class StagedMark:
    """A point in a transaction: how much was staged, and the table with it."""

    steps: int
    cleanups: int
    state: TableState


class StagedOperations:
    """Refreshes a table and commits to it, all in memory; `commit_staged` commits for good.

    Attributes:
        operations: the operations of the table itself.
        base: the table as the transaction found it.
        steps: what was committed here, in order.
    """

    def __init__(self, operations: TableOperations, base: TableState) -> None:
        self.operations = operations
        self.base = base
        self.steps: list[StagedStep] = []
        self._state = base
        self._has_moved = False
        self._cleanups: list[Callable[[], None]] = []

    @property
    def name(self) -> str:
        """The table's name in messages."""
        return self.operations.name

    def refresh(self) -> TableState:
        """The table with all that was committed here."""
        return self._state

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        """Stages updates that do not depend on what others commit."""
        return self.stage(lambda state: Change(requirements, updates))

    def stage(
        self,
        produce: Callable[[TableState], Change],
        *,
        depends_on_rows: bool = False,
        settle: Callable[[TableState | None], None] | None = None,
    ) -> TableState:
        """Applies a change to the state in memory; arguments are those of `StagedStep`.

        Raises what `produce` and `apply_updates` raise; then nothing is staged.
        """
        if depends_on_rows and self._has_moved:
            raise ValidationError(
                f"table {self.name}: the snapshot that this transaction began with has expired, so "
                "that rows it read may have changed; nothing was committed. Run the transaction "
                "again"
            )
        try:
            change = produce(self._state)
        except MissingFileError:
            # Maintenance may have deleted manifests of the base since it was loaded.
            found = self.operations.refresh()
            is_same = found.metadata.table_uuid == self.base.metadata.table_uuid
            if self.steps or depends_on_rows or not is_same:
                raise
            self.base = self._state = found
            self._has_moved = True
            change = produce(found)
        check_requirements(change.requirements, self._state.metadata, self.name)
        self._state = applied(self._state, change)
        self.steps.append(StagedStep(produce, change, depends_on_rows, settle or _nothing))
        return self._state

    def clean_up_with(self, cleanup: Callable[[], None]) -> None:
        """Registers a function that deletes a step's files if the transaction commits nothing."""
        self._cleanups.append(cleanup)

    def mark(self) -> StagedMark:
        """The current point of the transaction, for `undo` to go back to."""
        return StagedMark(len(self.steps), len(self._cleanups), self._state)

    def undo(self, mark: StagedMark) -> None:
        """Forgets what was staged after a mark, and deletes its files."""
        for step in self.steps[mark.steps :]:
            step.settle(None)
        for cleanup in self._cleanups[mark.cleanups :]:
            cleanup()
        del self.steps[mark.steps :], self._cleanups[mark.cleanups :]
        self._state = mark.state

    def abandon(self) -> None:
        """Deletes the files of all steps, because nothing was committed."""
        self.undo(StagedMark(0, 0, self.base))


def clean_up_if_abandoned(operations: TableOperations, cleanup: Callable[[], None]) -> None:
    """Registers a clean-up to run if the commit is part of a transaction that fails."""
    if isinstance(operations, StagedOperations):
        operations.clean_up_with(cleanup)


def applied(state: TableState, change: Change) -> TableState:
    """The table with a change, in memory."""
    metadata = apply_updates(state.metadata, change.updates, now_ms=now_ms())
    # No server knows it yet.
    return replace(state, metadata=metadata, planner=None)


def snapshot_ids(changes: Sequence[Change]) -> list[int]:
    """The ids of the snapshots that changes add."""
    return [
        update.snapshot.snapshot_id
        for change in changes
        for update in change.updates
        if isinstance(update, AddSnapshot)
    ]


def _nothing(state: TableState | None) -> None:
    pass
