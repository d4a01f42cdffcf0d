"""How a commit is made, whatever it does: on which branch, staged or not, what its summary says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from icebergds.commit.idempotent_writes import IdempotentWrite
from icebergds.spec.snapshot import MAIN_BRANCH


class IsolationLevel(StrEnum):
    """What concurrent commits an overwrite does not go together with.

    `NONE` checks nothing. `SNAPSHOT` fails if others deleted rows where it overwrites,
    `SERIALIZABLE` also if others added some.
    """

    NONE = "none"
    SNAPSHOT = "snapshot"
    SERIALIZABLE = "serializable"


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """How a snapshot is committed.

    Attributes:
        branch: what moves to the snapshot. A branch that does not exist starts at main's head.
        wap_id: stages the snapshot under this id (write, audit, publish): it is added to the
            table, and no branch moves.
        snapshot_properties: entries of the snapshot's summary; names that commits compute
            themselves, such as `added-data-files`, are theirs.
        table_uuid: of the table that the files were written for, lest they go to another one that
            took its name since; None does not check that.
        transaction: makes the commit one that a branch gets once at most.
    """

    branch: str = MAIN_BRANCH
    wap_id: str | None = None
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    table_uuid: str | None = None
    transaction: IdempotentWrite | None = None
