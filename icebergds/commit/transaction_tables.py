"""Commits a transaction on several tables of a catalog: all of them at once, or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from icebergds.commit.operations import Change, TableCommit, TableState
from icebergds.commit.retry import commit_changes
from icebergds.commit.staging import StagedOperations
from icebergds.commit.transaction import TransactionSteps
from icebergds.errors import CommitStateUnknownError
from icebergds.interrupts import interrupts_held


class CommitsTables(Protocol):
    """Commits to several tables at once."""

    def __call__(self, commits: Sequence[TableCommit]) -> Sequence[TableState]:
        """Commits all or none; outcomes are those of `TableOperations.commit`.

        Returns:
            The tables after the commit, in the order of `commits`.

        Raises:
            CommitConflictError: another commit to one of the tables came first.
            CommitStateUnknownError: whether they were committed is not known.
            NoSuchTableError: one of the tables does not exist (any more).
        """
        ...


def commit_staged_tables(
    tables: Mapping[tuple[str, ...], StagedOperations], commit: CommitsTables, *, is_atomic: bool
) -> list[TableState]:
    """Commits all steps of a transaction on several tables; after a conflict, tries again.

    Args:
        tables: by their identifiers, each with steps.
        is_atomic: whether `commit` changes either all of the tables or none.

    Returns:
        The tables with the steps, in the order of `tables`.

    Other errors are those of `commit_staged`, and files are kept and deleted as there.
    """
    parts = [TransactionSteps(staged) for staged in tables.values()]
    target = _Target(tables, commit)

    def produce(states: Sequence[TableState]) -> list[Change]:
        return [part.produce(state) for part, state in zip(parts, states, strict=True)]

    def is_committed(states: Sequence[TableState]) -> bool:
        found = list(zip(parts, states, strict=True))
        # If one table proves the whole commit, look for snapshots, which nobody else adds: a
        # property may have been set to the same value, or changed again, by another commit.
        decisive = [each for each in found if is_atomic and each[0].adds_snapshots]
        decisive = decisive or [each for each in found if each[0].changes_table]
        return all_or_none(target.name, ((state, part.is_in(state)) for part, state in decisive))

    with interrupts_held():
        try:
            bases = [staged.base for staged in tables.values()]
            committed = commit_changes(target, produce, is_committed, bases)
        except CommitStateUnknownError:
            raise
        except (Exception, KeyboardInterrupt):
            for staged in tables.values():
                staged.abandon()
            raise
        for part, state in zip(parts, committed, strict=True):
            part.settle(state)
        return list(committed)


def all_or_none(what: str, found: Iterable[tuple[TableState, bool]]) -> bool:
    """Whether a commit to several tables is in them.

    Args:
        what: the tables in messages.
        found: each table, and whether its part of the commit is in it.

    Raises:
        CommitStateUnknownError: some of the tables have their parts, the others have not.
    """
    parts = list(found)
    having = [state.name for state, is_in in parts if is_in]
    if len(having) in (0, len(parts)):
        return bool(having)
    raise CommitStateUnknownError(
        f"{what}: of one commit to all of them, only {', '.join(having)} has its part so far; look "
        "at the tables before you repeat the transaction. No files were deleted"
    )


@dataclass(frozen=True, slots=True)
class _Target:
    """Implements `CommitTarget` for the tables of a transaction."""

    tables: Mapping[tuple[str, ...], StagedOperations]
    commit_tables: CommitsTables

    @property
    def name(self) -> str:
        return "tables " + ", ".join(staged.name for staged in self.tables.values())

    def refresh(self) -> list[TableState]:
        return [staged.operations.refresh() for staged in self.tables.values()]

    def commit(
        self, bases: Sequence[TableState], changes: Sequence[Change]
    ) -> Sequence[TableState]:
        commits = [
            TableCommit(identifier, base, change.requirements, change.updates)
            for identifier, base, change in zip(self.tables, bases, changes, strict=True)
        ]
        return self.commit_tables(commits)
