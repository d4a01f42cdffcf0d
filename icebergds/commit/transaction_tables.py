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
    tables: Mapping[tuple[str, ...], StagedOperations], commit: CommitsTables
) -> list[TableState]:
    """Commits all steps of a transaction on several tables; after a conflict, tries again.

    Args:
        tables: by their identifiers, each with steps.

    Returns:
        The tables with the steps, in the order of `tables`.

    Other errors are those of `commit_staged`, and files are kept and deleted as there.
    """
    parts = [TransactionSteps(staged) for staged in tables.values()]
    target = _Target(tables, commit)

    def produce(states: Sequence[TableState]) -> list[Change]:
        return [part.produce(state) for part, state in zip(parts, states, strict=True)]

    def is_committed(states: Sequence[TableState]) -> bool:
        found = zip(parts, states, strict=True)
        return all_or_none(
            target.name, ((state, part.adds_snapshots, part.is_in(state)) for part, state in found)
        )

    try:
        bases = [staged.base for staged in tables.values()]
        committed = commit_changes(target, produce, is_committed, bases)
    except CommitStateUnknownError:
        raise
    except Exception:
        for staged in tables.values():
            staged.abandon()
        raise
    for part, state in zip(parts, committed, strict=True):
        part.settle(state)
    return list(committed)


def all_or_none(what: str, found: Iterable[tuple[TableState, bool, bool]]) -> bool:
    """Whether a commit to several tables is in them.

    Snapshots decide, because nobody else makes the same: a property may have the value by another
    commit, or may have lost it again.

    Args:
        what: the tables in messages.
        found: for each table, whether the commit adds snapshots to it, and whether it is in it.

    Raises:
        CommitStateUnknownError: it is in some of the tables only.
    """
    parts = list(found)
    decisive = [part for part in parts if part[1]] or parts
    if all(is_in for _, _, is_in in decisive):
        return True
    having = [state.name for state, adds_snapshots, is_in in decisive if adds_snapshots and is_in]
    if not having:
        return False
    raise CommitStateUnknownError(
        f"{what}: of one commit to all of them, only {', '.join(having)} has its part so far; look "
        "at the newest snapshots before you repeat the transaction. No files were deleted"
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
