"""Defines the options of a commit: branch, staging, summary properties, isolation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from icebergds.commit.idempotent_writes import IdempotentWrite
from icebergds.commit.operations import TableState
from icebergds.spec.snapshot import MAIN_BRANCH


class IsolationLevel(StrEnum):
    """Which concurrent commits fail the validation of an overwrite.

    `NONE` checks nothing. `SNAPSHOT` fails if others deleted rows that the overwrite selects,
    `SERIALIZABLE` also if others added some.
    """

    NONE = "none"
    SNAPSHOT = "snapshot"
    SERIALIZABLE = "serializable"


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """How a snapshot is committed.

    Attributes:
        branch: the branch to commit to. A branch that does not exist starts at main's head.
        wap_id: stages the snapshot under this id (write, audit, publish): it is added to the
            table, and no branch moves.
        snapshot_properties: entries of the snapshot's summary; computed ones, such as
            `added-data-files`, override them.
        table_uuid: UUID of the table that the files were written for; the commit fails if another
            table has its name now. None skips the check.
        idempotent_write: makes the commit fail if the branch has this write already.
    """

    branch: str = MAIN_BRANCH
    wap_id: str | None = None
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    table_uuid: str | None = None
    idempotent_write: IdempotentWrite | None = None


class NothingToCommitError(Exception):
    """Raised by an action whose table needs no change; the caller of the commit catches it.

    Attributes:
        state: the table that needs none.
    """

    def __init__(self, state: TableState) -> None:
        super().__init__(f"table {state.name}: there is nothing to commit")
        self.state = state
